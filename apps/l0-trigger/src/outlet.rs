//! Where decisions leave the poll loop: answers by UDP, records by event queue.

use std::sync::Arc;

use pollux_mempool::PoolCache;
use pollux_pipelines::Sink;
use pollux_pipelines::l0::{Decision, L0Record};
use pollux_pipelines::stages::Answer;
use pollux_pmd::event::{EventProducer, EventRecord};
use pollux_pmd::lcore::{JitterMeter, StopFlag};
use pollux_pmd::{Count, TxQueue};

use crate::clock::RunClock;
use crate::display::Sampler;
use crate::keeper::Keeper;
use crate::side::PortSide;

/// A consumer of event records, and how many it missed.
pub struct Tap {
    pub producer: EventProducer,
    /// Records that found the queue full.
    pub lost: Arc<Count>,
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
    /// The records of the decisions that wait for their packet, which says whether they are late.
    pub records: Vec<EventRecord>,
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
        if !self.taps.is_empty() {
            let record = L0Record::of(&decision).to_event(self.decisions as u32);
            self.records.push(record);
        }
        self.decisions += 1;
        // Between two events, so that a gap is never the sum of many events' work.
        let now = self.jitter.tick();
        if let Some(sampler) = &mut self.sampler {
            sampler.offer(&decision, now, &mut self.events);
        }
        if self.answer.is_due(now) {
            self.flush();
        }
        self.give(decision);
    }
}

impl Outlet {
    /// An event goes to the recording, if it is to be there, or else back.
    #[inline]
    fn give(&mut self, event: Decision) {
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

    /// Sends what has been decided, and records it.
    #[inline]
    pub fn flush(&mut self) {
        let tx = queue(&mut self.sides, self.answer_by);
        let marks = self.answer.flush(tx, &mut self.cache);
        for (mut record, &late) in self.records.drain(..).zip(marks) {
            if late {
                L0Record::mark_late(&mut record);
            }
            for tap in &mut self.taps {
                while self.patient && !tap.producer.has_room() && !self.stop.is_set() {
                    std::thread::yield_now();
                }
                if tap.producer.push(&record).is_err() {
                    tap.lost.add(1);
                }
            }
        }
    }
}

#[inline]
fn queue(sides: &mut [PortSide], place: usize) -> Option<&mut TxQueue> {
    sides.get_mut(place)?.tx.as_mut()
}
