//! Output of the switch: a bounded queue in front of a transmit queue, with a rate.

use std::collections::VecDeque;
use std::sync::Arc;

use pollux_pmd::mempool::time::Tsc;
use pollux_pmd::mempool::{Burst, Mbuf, PoolCache};
use pollux_pmd::{Cause, Clock, Tally, TallyView, TxQueue};

use crate::config::{MIN_FRAME, SwitchConfig};
use crate::counts::OutputCounts;
use crate::pace::Pace;

/// Frames sent at once.
const BURST: usize = 32;

/// A frame that waits.
struct Waiting {
    frame: Mbuf,
    /// When its last bit leaves.
    leaves: Tsc,
    /// A copy of a flooded frame, which the ledger does not count.
    is_copy: bool,
}

/// Output of a port.
pub(crate) struct Output {
    tx: TxQueue,
    queue: VecDeque<Waiting>,
    /// Frames that have left the link and that the port has not taken yet.
    left: Burst<BURST>,
    /// Bit n: frame n of `left` is a copy.
    copies: u64,
    /// Bytes of all frames here.
    bytes: usize,
    buffer: usize,
    pace: Pace,
    tally: Tally,
    pub(crate) counts: Arc<OutputCounts>,
}

/// Bytes of a frame on the wire.
fn size(frame: &Mbuf) -> usize {
    frame.total_len().max(MIN_FRAME)
}

impl Output {
    pub(crate) fn new(tx: TxQueue, config: &SwitchConfig, clock: &impl Clock) -> Self {
        Self {
            tx,
            queue: VecDeque::with_capacity(config.longest_queue()),
            left: Burst::new(),
            copies: 0,
            bytes: 0,
            buffer: config.buffer,
            pace: Pace::new(config.rate, clock),
            tally: Tally::new(),
            counts: Arc::default(),
        }
    }

    pub(crate) fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// Whether frames wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Counts a frame for this output; returns whether there is room for it, and counts it as lost at
    /// this output if there is none.
    pub(crate) fn admit(&mut self, frame: &Mbuf) -> bool {
        self.counts.offered.add(1);
        self.counts.offered_bytes.add(frame.total_len() as u64);
        let has_room = self.bytes + size(frame) <= self.buffer;
        if !has_room {
            self.counts.output_full.add(1);
        }
        has_room
    }

    /// Counts an admitted frame of which no copy could be made.
    pub(crate) fn count_no_copy(&mut self) {
        self.counts.no_mbuf.add(1);
    }

    /// Counts a received frame as dropped here.
    pub(crate) fn count_dropped(&mut self, cause: Cause) {
        self.tally.count_dropped(cause, 1);
    }

    /// Queues an admitted frame.
    pub(crate) fn push(&mut self, frame: Mbuf, is_copy: bool, now: Tsc) {
        let bytes = size(&frame);
        self.bytes += bytes;
        if self.bytes as u64 > self.counts.peak_bytes.get() {
            self.counts.peak_bytes.set(self.bytes as u64);
        }
        let leaves = self.pace.leave(now, bytes);
        self.queue.push_back(Waiting {
            frame,
            leaves,
            is_copy,
        });
    }

    /// Sends the frames that have left the link by now; returns how many the port took.
    pub(crate) fn send(&mut self, now: Tsc, cache: &mut PoolCache) -> usize {
        let mut sent = 0;
        loop {
            self.take_due(now);
            let due = self.left.len();
            if due == 0 {
                return sent;
            }
            let taken = self.send_left(cache);
            sent += taken;
            // A port that took less than all has no room for more.
            if taken < due {
                return sent;
            }
        }
    }

    /// Makes the driver send frames that the kernel refused before.
    pub(crate) fn kick(&mut self, cache: &mut PoolCache) {
        self.send_left(cache);
    }

    /// Moves the frames that have left the link by now out of the queue.
    fn take_due(&mut self, now: Tsc) {
        while !self.left.is_full()
            && let Some(waiting) = self.queue.pop_front_if(|waiting| waiting.leaves <= now)
        {
            self.copies |= u64::from(waiting.is_copy) << self.left.len();
            // There is room for it.
            let _ = self.left.push(waiting.frame);
        }
    }

    fn send_left(&mut self, cache: &mut PoolCache) -> usize {
        let bytes = |left: &Burst<BURST>| left.iter().map(size).sum::<usize>();
        let before = bytes(&self.left);
        let taken = self.tx.tx(cache, &mut self.left);
        if taken > 0 {
            self.bytes -= before - bytes(&self.left);
            let copies = self.copies & ((1 << taken) - 1);
            self.copies >>= taken;
            self.tally
                .count_delivered(taken as u64 - u64::from(copies.count_ones()));
            self.counts.sent.add(taken as u64);
        }
        taken
    }

    /// Frees the frames that still wait, as aborted; returns the queue of the port.
    pub(crate) fn finish(mut self, cache: &mut PoolCache) -> TxQueue {
        let mut aborted = self.left.len() as u64;
        let mut copies = u64::from(self.copies.count_ones());
        cache.free_burst(&mut self.left);
        for waiting in self.queue.drain(..) {
            aborted += 1;
            copies += u64::from(waiting.is_copy);
            cache.free(waiting.frame);
        }
        self.counts.aborted.add(aborted);
        self.tally.count_dropped(Cause::Aborted, aborted - copies);
        self.tx
    }
}
