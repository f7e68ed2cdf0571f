//! Decision sink: sends answers by UDP, and records to event queues.

use pollux_mempool::PoolCache;
use pollux_na62::l0::{Decision, L0Record};
use pollux_na62::stages::Answer;
use pollux_pipelines::Output;
use pollux_pmd::TxQueue;
use pollux_pmd::endpoint::PortEndpoint;
use pollux_pmd::lcore::{JitterMeter, StopFlag};

use crate::clock::RunClock;
use crate::event_display::Sampler;
use crate::record_queue::RecordQueue;
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
    /// Queue of events to be recorded.
    pub record_queue: Option<RecordQueue>,
    /// With a tap or a recording: decisions that wait for their packet, which determines whether
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
        if self.taps.is_empty() && self.record_queue.is_none() {
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
        tapped && self.record_queue.as_ref().is_none_or(RecordQueue::has_room)
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
                    Ok(()) => tap.counts.handed.add(1),
                    Err(_) => tap.counts.missed.add(1),
                }
            }
            let verdict = event.verdict();
            match &mut self.record_queue {
                Some(record_queue) if verdict.accepted() || verdict.monitored => {
                    while self.patient && !record_queue.has_room() && !self.stop.is_set() {
                        std::thread::yield_now();
                    }
                    record_queue.push(event, &mut self.events);
                }
                _ => self.events.free(event.into()),
            }
        }
    }
}

#[inline]
fn queue(endpoints: &mut [PortEndpoint], place: usize) -> Option<&mut TxQueue> {
    endpoints.get_mut(place)?.tx()
}
