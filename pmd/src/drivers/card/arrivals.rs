//! When frames came, by the card's time.

use pollux_mempool::Mbuf;
use pollux_mempool::time::{Ns, Tsc, WireTime};

use crate::arrival::{Line, Waited};
use crate::clock::Clock;

/// How long a frame may be under way from the wire to the announcement of its buffer, besides the
/// time for which the card holds it back, and how far the clocks may drift apart meanwhile.
const UNDER_WAY: Ns = Ns(100_000);

/// Takes the stamps of a queue's frames to the line of the loop's clock.
///
/// The card's time goes from the first start of burst on, and each further one sets it back; an
/// external clock may stay away. So stamps are believed as far as polls bear them out: no frame came
/// before its queue was last found empty, but for those that the card was holding back. If one says
/// so, the card's time was set, and the frames that are waiting cannot tell how it stands now. They,
/// and frames without a stamp, came when the poll says, as if the card had no time.
pub(super) struct Arrivals<C> {
    clock: C,
    line: Line<C>,
    waited: Waited,
    /// Cycles for which a frame may have been on the card without being announced.
    held: u64,
    /// When the queue was last found empty.
    empty: Tsc,
    /// It has been empty since the card's time was set, so that fresh frames tell how it stands.
    is_measured: bool,
}

impl<C: Clock> Arrivals<C> {
    /// For a queue of so many frames, from a card that holds each back for so long.
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

    /// Says of the frames that a poll has taken, where `asked` for so many, when they came. The poll
    /// was from `begun` to `now`, and they bear the latter.
    #[inline]
    pub(super) fn stamp(&mut self, begun: Tsc, now: Tsc, asked: usize, frames: &mut [Mbuf]) {
        self.waited.charge(now, asked, frames);
        if !frames.is_empty() {
            // Stamps are compared with each other: any time that goes on will do.
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
