//! Decision sink: sends answers by UDP, and records to event queues.

use pollux_mempool::PoolCache;
use pollux_na62::l0::{Decision, L0Record};
use pollux_na62::stages::Answer;
use pollux_output::EventQueues;
use pollux_pipelines::Output;
use pollux_pmd::TxQueue;
use pollux_pmd::endpoint::PortEndpoint;
use pollux_pmd::lcore::{JitterMeter, StopFlag};
use pollux_pmd::ledger::SentView;

use crate::clock::RunClock;
use crate::event_display::Sampler;
use crate::tap::Tap;

/// The sink of the pipeline.
pub struct DecisionSink {
    pub answer: Answer<RunClock>,
    /// The ports, in order.
    pub endpoints: Vec<PortEndpoint>,
    /// The port that sends answers.
    pub answer_by: usize,
    pub cache: PoolCache,
    /// Cache for freed event buffers.
    pub events: PoolCache,
    pub taps: Vec<Tap>,
    /// Samples events for the page.
    pub sampler: Option<Sampler>,
    /// Queues of events with their hits, to recordings and outputs.
    pub queues: EventQueues,
    /// With a tap or a queue: decisions that wait for their packet, which determines whether
    /// they are late.
    pub waiting: Vec<Decision>,
    /// The input is a recording, which can wait: no record is lost to a slow consumer.
    pub patient: bool,
    pub stop: StopFlag,
    pub jitter: JitterMeter<RunClock>,
    /// Decisions so far.
    pub decisions: u64,
}

impl Output<Decision> for DecisionSink {
    #[inline]
    fn push(&mut self, decision: Decision) {
        if !self.answer.push(&decision) {
            self.flush();
            // It fits into an empty packet.
            let _ = self.answer.push(&decision);
        }
        self.decisions += 1;
        // Between two events, so that a gap never includes the work of several events.
        let now = self.jitter.tick();
        if let Some(sampler) = &mut self.sampler {
            sampler.offer(&decision, now, &mut self.events);
        }
        if self.taps.is_empty() && self.queues.is_empty() {
            self.events.free(decision.into());
        } else {
            self.waiting.push(decision);
        }
        if self.answer.is_due(now) {
            self.flush();
        }
    }
}

impl DecisionSink {
    /// Whether each output takes at least one more event. Only a recording waits for its outputs; a
    /// live run loses what a slow consumer has no room for, counted.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        if !self.patient || self.stop.is_set() {
            return true;
        }
        let tapped = self.taps.iter_mut().all(|tap| tap.producer.has_room());
        tapped && self.queues.have_room()
    }

    /// The counts of the queue that sends answers.
    pub fn answers(&mut self) -> Option<SentView> {
        queue(&mut self.endpoints, self.answer_by).map(|tx| tx.sent())
    }

    /// Sends the collected decisions, and passes the events on.
    #[inline]
    pub fn flush(&mut self) {
        let tx = queue(&mut self.endpoints, self.answer_by);
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
                    Ok(()) => tap.counts.queue.handed.add(1),
                    Err(_) => tap.counts.queue.missed.add(1),
                }
            }
            let (patient, stop) = (self.patient, &self.stop);
            self.queues
                .push(n as u32, event, &mut self.events, |queue| {
                    while patient && !queue.has_room() && !stop.is_set() {
                        std::thread::yield_now();
                    }
                });
        }
    }
}

#[inline]
fn queue(endpoints: &mut [PortEndpoint], place: usize) -> Option<&mut TxQueue> {
    endpoints.get_mut(place)?.tx()
}
