//! Answer: decisions to the experiment, as MTP primitives by UDP.
//!
//! The end of the chain, so not a [`Stage`](pollux_pipelines::Stage): it owns the latency budget, and sends
//! with the queue and the cache of the poll loop.

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, PoolCache};
use pollux_pipelines::stage::Batch;
use pollux_pmd::net::{UDP_HEADERS, UdpTemplate};
use pollux_pmd::{Clock, Count, LatencyHistogram, LatencyView, TscClock, TxQueue};
use std::sync::Arc;

use crate::formats::mtp::{MAX_PACKET, MAX_PRIMITIVES, MtpWriter, Primitive};
use crate::l0::{Decision, PrimitiveId};

/// What became of the decisions.
#[derive(Debug, Default)]
pub struct AnswerCounts {
    /// Decisions that were sent.
    pub sent: Count,
    /// Packets that carried them.
    pub packets: Count,
    /// Decisions that nobody is to be told: they were made, and that is all.
    pub untold: Count,
    /// Decisions lost because the transmit queue, the pool or its buffers had no room: an answer
    /// that has to wait would come too late, and make the next ones late too.
    pub no_room: Count,
    /// Decisions lost because the address has not been resolved yet.
    pub unresolved: Count,
    /// Decisions that departed (or were made, if nobody is to be told) after their budget.
    pub late: Count,
    /// Those of them that bear no mark: the core stood still between the last look at the clock and
    /// the departure.
    pub unmarked: Count,
    /// Times that the budget was missed: late decisions within one budget of each other are one
    /// miss, as a core that is held up once makes many of them.
    pub missed: Count,
}

/// How long decisions wait for others to share their packet. A few events' work: a packet of one
/// decision would cost as much again as the decision.
const PATIENCE: Ns = Ns(20_000);

/// A packet still has to be written and sent when its decisions are marked, so a decision is late
/// when so small a part of its budget is left: 10 us of a millisecond.
const LAST_PART: u64 = 100;

/// Where answers go.
enum Peer {
    /// Nowhere: decisions are only recorded.
    None,
    /// To an address whose station is not known yet.
    Unresolved,
    Known(UdpTemplate),
}

/// Collects decisions into packets and sends them.
pub struct Answer<C = TscClock> {
    peer: Peer,
    source_id: u8,
    writer: Option<MtpWriter<[u8; MAX_PACKET]>>,
    /// Arrivals of the events whose decisions are in the packet.
    arrivals: Batch<Tsc>,
    /// When the packet was begun.
    begun: Tsc,
    /// For each decision of the last packet, whether it was late.
    marks: Batch<bool>,
    marks_late: bool,
    clock: C,
    budget_cycles: u64,
    patience_cycles: u64,
    total: LatencyHistogram,
    /// When the last late decision departed.
    last_late: Option<Tsc>,
    counts: Arc<AnswerCounts>,
    outbox: Burst<1>,
}

impl Answer {
    /// An answer stage with a budget from the arrival of an event's first frame to its decision's
    /// departure. It sends nothing until it is given a [peer](Self::set_peer).
    #[must_use]
    pub fn new(source_id: u8, budget: Ns, wants_peer: bool) -> Self {
        Self::by(TscClock::get(), source_id, budget, wants_peer)
    }
}

impl<C: Clock> Answer<C> {
    /// The same by another clock: the one that arrivals are stamped by.
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
            outbox: Burst::new(),
        }
    }

    /// The same for a recording, over which two runs are to say the same: no decision is marked as
    /// late, and none is [due](Self::is_due) before its packet is full, as both would tell how fast
    /// the recording is read.
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

    /// Whether answers wait for their address to be resolved.
    #[must_use]
    pub fn is_unresolved(&self) -> bool {
        matches!(self.peer, Peer::Unresolved)
    }

    /// What became of the decisions.
    #[must_use]
    pub fn counts(&self) -> Arc<AnswerCounts> {
        Arc::clone(&self.counts)
    }

    /// From the arrival of an event's first frame to its decision's departure, in nanoseconds.
    #[must_use]
    pub fn total(&self) -> LatencyView {
        self.total.view()
    }

    /// Adds a decision to the packet; whether there was room for it. If not, the packet has to be
    /// [flushed](Self::flush) first.
    #[must_use = "a decision that found no room is lost"]
    #[inline]
    pub fn push(&mut self, decision: &Decision) -> bool {
        let head = decision.head();
        let time = decision.view().time();
        let primitive = Primitive {
            id: PrimitiveId::of(decision).to_bits(),
            // The format has 32 bits of the time: 107 s. The run goes on beyond; who reads them
            // takes the nearest slot that they may mean.
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

    /// Marks what is late, and sends the packet; for each decision in it, whether it was marked.
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

    /// Sends the packet; whether its decisions departed, which they have if nobody is to be told.
    fn send(
        &mut self,
        writer: MtpWriter<[u8; MAX_PACKET]>,
        tx: Option<&mut TxQueue>,
        cache: &mut PoolCache,
    ) -> bool {
        let (fate, departed) = match &self.peer {
            Peer::None => (&self.counts.untold, true),
            Peer::Unresolved => (&self.counts.unresolved, false),
            Peer::Known(template) => {
                let (payload, len) = writer.finish();
                let sent = cache.alloc().is_some_and(|mut mbuf| {
                    let written = mbuf.append(UDP_HEADERS + len).and_then(|frame| {
                        frame[UDP_HEADERS..].copy_from_slice(&payload[..len]);
                        template.write(frame, len)
                    });
                    // There is room for one: it is emptied below.
                    drop(self.outbox.push(mbuf));
                    written.is_some() && tx.is_some_and(|tx| tx.tx(cache, &mut self.outbox) == 1)
                });
                cache.free_burst(&mut self.outbox);
                self.counts.packets.add(u64::from(sent));
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
        fate.add(self.arrivals.as_slice().len() as u64);
        departed
    }

    /// Counts the latencies of the decisions that departed now.
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
