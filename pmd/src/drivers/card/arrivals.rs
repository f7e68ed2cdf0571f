//! Arrival times of frames, from the card's time stamps.

use pollux_mempool::Mbuf;
use pollux_mempool::time::{Ns, Tsc, WireTime};

use crate::arrival::{Line, Waited};
use crate::clock::Clock;

/// Maximum time from the wire to the announcement of a frame's buffer, besides the time for which
/// the card holds the frame back, including the drift of the clocks meanwhile.
const UNDER_WAY: Ns = Ns(100_000);

/// Converts the time stamps of a queue's frames to the loop's clock.
///
/// The card's time runs from the first start of burst on; each further one sets it back, and an
/// external clock may fail. Time stamps are therefore accepted only as far as polls confirm them:
/// no frame arrived before its queue was last found empty, except those that the card was holding
/// back. A time stamp that contradicts that shows that the card's time was set, and the waiting
/// frames cannot show its new value. They, and frames without a time stamp, get the arrival time of
/// the poll, as if the card had no clock.
pub(super) struct Arrivals<C> {
    clock: C,
    line: Line<C>,
    waited: Waited,
    /// Cycles for which a frame may be on the card before it is announced.
    held: u64,
    /// Time at which the queue was last found empty.
    empty: Tsc,
    /// The queue has been empty since the card's time was set, so that fresh frames show its value.
    is_measured: bool,
}

impl<C: Clock> Arrivals<C> {
    /// For a queue of so many frames, and a card that holds each back for `hold`.
    pub(super) fn new(clock: C, frames: usize, hold: Ns) -> Self {
        Self {
            line: Line::of_device(clock.clone()),
            waited: Waited::new(&clock, frames),
            held: clock.to_cycles(hold + UNDER_WAY),
            empty: clock.now(),
            is_measured: false,
            clock,
        }
    }

    /// Sets the arrival time of the frames that a poll has taken, where `asked` is the number that
    /// it requested. The poll lasted from `begun` to `now`; the frames carry `now`.
    #[inline]
    pub(super) fn stamp(&mut self, begun: Tsc, now: Tsc, asked: usize, frames: &mut [Mbuf]) {
        self.waited.charge(now, asked, frames);
        if !frames.is_empty() {
            // Time stamps are only compared with each other: any clock that advances will do.
            self.line.begin(now, WireTime(self.clock.to_ns(now.0).0));
            for frame in &mut *frames {
                self.stamp_one(frame);
            }
        }
        if frames.len() < asked {
            (self.empty, self.is_measured) = (begun, true);
        }
    }

    #[inline]
    fn stamp_one(&mut self, frame: &mut Mbuf) {
        let Some(stamp) = frame.wire_time() else {
            return;
        };
        let earliest = Tsc(self.empty.0.saturating_sub(self.held));
        match self.line.arrival_since(earliest, stamp) {
            Some(arrival) if self.is_measured => frame.set_arrival(arrival),
            Some(_) => {}
            None => self.is_measured = false,
        }
    }
}
