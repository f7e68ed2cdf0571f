//! Answers: sends decisions to the experiment, as MTP primitives over UDP.
//!
//! The end of the chain, so not a [`Stage`](pollux_pipelines::Stage): it owns the latency budget,
//! and sends with the queue and the cache of the poll loop.

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, PoolCache};
use pollux_pipelines::stage::Batch;
use pollux_pmd::net::{UDP_HEADERS, UdpTemplate};
use pollux_pmd::{Clock, Count, LatencyHistogram, LatencyView, TscClock, TxQueue};
use std::sync::Arc;

use super::handed::Handed;
use crate::formats::mtp::{MAX_PACKET, MAX_PRIMITIVES, MtpWriter, Primitive};
use crate::l0::{Decision, PrimitiveId};

/// Counters of decisions.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct AnswerCounts {
    /// Decisions that the port has taken to send.
    pub sent: Count,
    /// Packets that carried them.
    pub packets: Count,
    /// Of these decisions, lost because the port could not send them then, as far as it has said: a capture on a
    /// full disk, for instance.
    pub refused: Count,
    /// Packets that carried those.
    pub refused_packets: Count,
    /// Decisions without a destination: they are made but not sent.
    pub no_destination: Count,
    /// Decisions lost because the transmit queue, the pool or its buffers were full: an answer that
    /// has to wait would be late, and would delay the next ones.
    pub no_room: Count,
    /// Decisions lost because the address is not resolved yet.
    pub unresolved: Count,
    /// Decisions sent (or made, without a destination) after their budget had passed.
    pub late: Count,
    /// Those of them that are not marked as late: the core was interrupted between the last reading
    /// of the clock and the transmission.
    pub unmarked: Count,
    /// Budget misses: late decisions within one budget of each other count as one miss, since a
    /// single interruption of a core makes many decisions late.
    pub missed: Count,
}

/// Time for which decisions wait for others to share their packet: the processing time of a few
/// events. A packet with a single decision would double the cost of the decision.
const PATIENCE: Ns = Ns(20_000);

/// After its decisions are marked, a packet must still be written and sent. So a decision counts as
/// late if no more than this fraction of its budget is left: 10 us of a millisecond.
const LAST_PART: u64 = 100;

/// Destination of answers.
enum Peer {
    /// None: decisions are only recorded.
    None,
    /// An address whose neighbour is not resolved yet.
    Unresolved,
    Known(UdpTemplate),
}

/// Collects decisions into packets and sends them.
pub struct Answer<C = TscClock> {
    peer: Peer,
    source_id: u8,
    writer: Option<MtpWriter<[u8; MAX_PACKET]>>,
    /// Arrival times of the events whose decisions are in the packet.
    arrivals: Batch<Tsc>,
    /// Time at which the packet was begun.
    begun: Tsc,
    /// For each decision of the last packet, whether it was late.
    marks: Batch<bool>,
    marks_late: bool,
    clock: C,
    budget_cycles: u64,
    patience_cycles: u64,
    total: LatencyHistogram,
    /// Transmission time of the last late decision.
    last_late: Option<Tsc>,
    counts: Arc<AnswerCounts>,
    handed: Handed,
    outbox: Burst<1>,
}

impl Answer {
    /// An answer stage with a budget from the arrival of an event's first frame to the transmission
    /// of its decision. It sends nothing until it has a [peer](Self::set_peer).
    #[must_use]
    pub fn new(source_id: u8, budget: Ns, wants_peer: bool) -> Self {
        Self::by(TscClock::get(), source_id, budget, wants_peer)
    }
}

impl<C: Clock> Answer<C> {
    /// As above, with another clock: the one that stamps arrivals.
    #[must_use]
    pub fn by(clock: C, source_id: u8, budget: Ns, wants_peer: bool) -> Self {
        Self {
            peer: if wants_peer {
                Peer::Unresolved
            } else {
                Peer::None
            },
            source_id,
            writer: None,
            arrivals: Batch::with_capacity(MAX_PRIMITIVES),
            begun: Tsc::default(),
            marks: Batch::with_capacity(MAX_PRIMITIVES),
            marks_late: true,
            budget_cycles: clock.to_cycles(budget),
            patience_cycles: clock.to_cycles(PATIENCE),
            clock,
            total: LatencyHistogram::new(),
            last_late: None,
            counts: Arc::default(),
            handed: Handed::new(),
            outbox: Burst::new(),
        }
    }

    /// As above, for a recording, where two runs must have the same output: no decision is marked
    /// as late, and none is [due](Self::is_due) before its packet is full, since both depend on the
    /// speed of reading.
    #[must_use]
    pub fn of_recording(self) -> Self {
        Self {
            marks_late: false,
            patience_cycles: u64::MAX,
            ..self
        }
    }

    /// Sets or changes the headers that answers are sent with.
    pub fn set_peer(&mut self, template: UdpTemplate) {
        self.peer = Peer::Known(template);
    }

    /// Whether answers wait for address resolution.
    #[must_use]
    pub fn is_unresolved(&self) -> bool {
        matches!(self.peer, Peer::Unresolved)
    }

    /// Counters of decisions.
    #[must_use]
    pub fn counts(&self) -> Arc<AnswerCounts> {
        Arc::clone(&self.counts)
    }

    /// Time from the arrival of an event's first frame to the transmission of its decision, in
    /// nanoseconds.
    #[must_use]
    pub fn total(&self) -> LatencyView {
        self.total.view()
    }

    /// Adds a decision to the packet; returns whether it fits. If not, [flush](Self::flush) the
    /// packet first.
    #[must_use = "a decision that found no room is lost"]
    #[inline]
    pub fn push(&mut self, decision: &Decision) -> bool {
        let head = decision.head();
        let time = decision.view().time();
        let primitive = Primitive {
            id: PrimitiveId::of(decision).to_bits(),
            // The format has 32 bits for the time: 107 s. A longer run continues; receivers use the
            // nearest slot with these bits.
            timestamp: time.slot as u32,
            fine: time.fine,
        };
        if self.writer.is_none() {
            self.begun = self.clock.now();
            self.writer = MtpWriter::new([0; MAX_PACKET], self.source_id, 0).ok();
        }
        let written = self.writer.as_mut().map(|writer| writer.push(primitive));
        // A packet has no more primitives than this batch.
        matches!(written, Some(Ok(()))) && self.arrivals.push(head.arrival).is_ok()
    }

    /// Whether the packet has waited long enough for more decisions.
    #[must_use]
    #[inline]
    pub fn is_due(&self, now: Tsc) -> bool {
        !self.arrivals.is_empty() && now.since(self.begun) > self.patience_cycles
    }

    /// Marks late decisions and sends the packet; returns for each of its decisions whether it was
    /// marked.
    #[inline]
    pub fn flush(&mut self, tx: Option<&mut TxQueue>, cache: &mut PoolCache) -> &[bool] {
        self.marks.clear();
        if let Some(mut writer) = self.writer.take() {
            self.mark(&mut writer);
            let departed = self.send(writer, tx, cache);
            if departed {
                self.depart();
            }
            self.arrivals.clear();
        }
        self.marks.as_slice()
    }

    fn mark(&mut self, writer: &mut MtpWriter<[u8; MAX_PACKET]>) {
        let now = self.clock.now();
        let limit = self.budget_cycles - self.budget_cycles / LAST_PART;
        let mut any = false;
        for &arrival in self.arrivals.as_slice() {
            let late = self.marks_late && now.since(arrival) > limit;
            any |= late;
            // It fits: both batches have the same capacity.
            let _ = self.marks.push(late);
        }
        if any {
            let marks = self.marks.as_slice();
            let late = |n: usize| marks.get(n).is_some_and(|&late| late);
            writer.set_bits(|n| if late(n) { PrimitiveId::LATE } else { 0 });
        }
    }

    /// Sends the packet; returns whether its decisions are sent, which they also are without a
    /// destination.
    fn send(
        &mut self,
        writer: MtpWriter<[u8; MAX_PACKET]>,
        mut tx: Option<&mut TxQueue>,
        cache: &mut PoolCache,
    ) -> bool {
        let decisions = self.arrivals.as_slice().len();
        let (outcome, departed) = match &self.peer {
            Peer::None => (&self.counts.no_destination, true),
            Peer::Unresolved => (&self.counts.unresolved, false),
            Peer::Known(template) => {
                let (payload, len) = writer.finish();
                let sent = cache.alloc().is_some_and(|mut mbuf| {
                    let written = mbuf.append(UDP_HEADERS + len).and_then(|frame| {
                        frame[UDP_HEADERS..].copy_from_slice(&payload[..len]);
                        template.write(frame, len)
                    });
                    // It fits: the burst is emptied below.
                    drop(self.outbox.push(mbuf));
                    let tx = tx.as_mut().filter(|_| written.is_some());
                    tx.is_some_and(|tx| tx.tx(cache, &mut self.outbox) == 1)
                });
                cache.free_burst(&mut self.outbox);
                self.counts.packets.add(u64::from(sent));
                if sent {
                    self.handed.push(decisions);
                }
                (
                    if sent {
                        &self.counts.sent
                    } else {
                        &self.counts.no_room
                    },
                    sent,
                )
            }
        };
        outcome.add(decisions as u64);
        if let Some(tx) = tx {
            self.settle(tx.errors());
        }
        departed
    }

    /// Counts what was in the packets that the port has taken and could not send: its queue has refused so many
    /// frames in all. Call it with the count of a queue that was stopped, too: a capture is written then.
    #[inline]
    pub fn settle(&mut self, errors: u64) {
        let (packets, decisions) = self.handed.refuse(errors);
        if packets > 0 {
            self.counts.refused_packets.add(packets);
            self.counts.refused.add(decisions);
        }
    }

    /// Records the latencies of the decisions that were sent now.
    fn depart(&mut self) {
        let now = self.clock.now();
        for (&arrival, &marked) in self.arrivals.as_slice().iter().zip(self.marks.as_slice()) {
            let cycles = now.since(arrival);
            self.total.record(self.clock.to_ns(cycles).0);
            if cycles > self.budget_cycles {
                self.counts.late.add(1);
                self.counts
                    .unmarked
                    .add(u64::from(self.marks_late && !marked));
                let apart = |last| now.since(last) > self.budget_cycles;
                self.counts
                    .missed
                    .add(u64::from(self.last_late.is_none_or(apart)));
                self.last_late = Some(now);
            }
        }
    }
}
