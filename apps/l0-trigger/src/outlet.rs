//! Where decisions leave the poll loop: answers by UDP, records by event queue.

use std::sync::Arc;

use pollux_mempool::PoolCache;
use pollux_na62::l0::{Decision, L0Record};
use pollux_na62::stages::Answer;
use pollux_pipelines::Sink;
use pollux_pmd::TxQueue;
use pollux_pmd::event::EventProducer;
use pollux_pmd::lcore::{JitterMeter, StopFlag};

use crate::clock::RunClock;
use crate::display::Sampler;
use crate::keeper::Keeper;
use crate::scribe::FileCounts;
use crate::side::PortSide;

/// The way to a consumer of event records.
pub struct Tap {
    pub producer: EventProducer,
    /// Whether records say their burst.
    pub bursts: bool,
    pub counts: Arc<FileCounts>,
}

/// The sink behind the pipeline.
pub struct Outlet {
    pub answer: Answer<RunClock>,
    /// The ports, in order.
    pub sides: Vec<PortSide>,
    /// The port that answers leave by.
    pub answer_by: usize,
    pub cache: PoolCache,
    /// Takes back the buffers of events.
    pub events: PoolCache,
    pub taps: Vec<Tap>,
    /// Takes events for the page.
    pub sampler: Option<Sampler>,
    /// Takes events to be recorded.
    pub keeper: Option<Keeper>,
    /// If somebody takes events: those that wait for their packet, which says whether they are late.
    pub waiting: Vec<Decision>,
    /// The input is a recording, which can wait: no record is lost to a slow consumer.
    pub patient: bool,
    pub stop: StopFlag,
    pub jitter: JitterMeter<RunClock>,
    /// Decisions so far.
    pub decisions: u64,
}

impl Sink<Decision> for Outlet {
    #[inline]
    fn push(&mut self, decision: Decision) {
        if !self.answer.push(&decision) {
            self.flush();
            // An empty packet has room.
            let _ = self.answer.push(&decision);
        }
        self.decisions += 1;
        // Between two events, so that a gap is never the sum of many events' work.
        let now = self.jitter.tick();
        if let Some(sampler) = &mut self.sampler {
            sampler.offer(&decision, now, &mut self.events);
        }
        if self.taps.is_empty() && self.keeper.is_none() {
            self.events.free(decision.into());
        } else {
            self.waiting.push(decision);
        }
        if self.answer.is_due(now) {
            self.flush();
        }
    }
}

impl Outlet {
    /// Sends what has been decided, and hands the events on.
    #[inline]
    pub fn flush(&mut self) {
        let tx = queue(&mut self.sides, self.answer_by);
        let marks = self.answer.flush(tx, &mut self.cache);
        let first = self.decisions - self.waiting.len() as u64;
        for ((n, mut event), &late) in (first..).zip(self.waiting.drain(..)).zip(marks) {
            if late {
                event.mark_late();
            }
            for tap in &mut self.taps {
                while self.patient && !tap.producer.has_room() && !self.stop.is_set() {
                    std::thread::yield_now();
                }
                let record = L0Record {
                    burst: if tap.bursts { event.head().burst } else { 0 },
                    ..L0Record::of(&event)
                };
                match tap.producer.push(&record.to_event(n as u32)) {
                    Ok(()) => tap.counts.handed.add(1),
                    Err(_) => tap.counts.missed.add(1),
                }
            }
            let verdict = event.verdict();
            match &mut self.keeper {
                Some(keeper) if verdict.accepted() || verdict.monitored => {
                    while self.patient && !keeper.has_room() && !self.stop.is_set() {
                        std::thread::yield_now();
                    }
                    keeper.keep(event, &mut self.events);
                }
                _ => self.events.free(event.into()),
            }
        }
    }
}

#[inline]
fn queue(sides: &mut [PortSide], place: usize) -> Option<&mut TxQueue> {
    sides.get_mut(place)?.tx.as_mut()
}
