//! Link state, which all these NICs report in the same bits of their status register (section
//! 10.2.2.2 of the datasheet of the 82574, 8.2.2 of that of the 82576).

use std::sync::{Mutex, PoisonError};

use crate::driver::{Link, Megabits};
use crate::port::RxState;

/// Value of every register of a device that is gone.
pub(crate) const GONE: u32 = u32::MAX;

const UP: u32 = 1 << 1;
const SPEED_SHIFT: u32 = 6;

/// Speed of the link; `None` if it is down or the device gone.
pub(crate) fn speed(status: u32) -> Option<Megabits> {
    let speed = match status >> SPEED_SHIFT & 3 {
        0 => 10,
        1 => 100,
        _ => 1000,
    };
    (status != GONE && status & UP != 0).then_some(Megabits(speed))
}

/// State of receive queues whose device has this link status; `lost` if no frame can arrive whatever
/// the link.
pub(crate) fn rx_state(status: u32, lost: bool) -> RxState {
    match status {
        GONE => RxState::Gone,
        status if speed(status).is_some() && !lost => RxState::Live,
        _ => RxState::Down,
    }
}

/// Reads of the status register that are repeated because of a change meanwhile. The bound is
/// needed as a faulty device may report changes for ever.
const AGAIN: usize = 4;

/// Counts the changes of a link from one read to the next.
pub(crate) struct Watched(Mutex<Seen>);

struct Seen {
    link: Link,
    /// The device has reported a change since the last read.
    told: bool,
}

impl Watched {
    /// A link that was down.
    pub(crate) fn new() -> Self {
        let (link, told) = (Link::DOWN, false);
        Self(Mutex::new(Seen { link, told }))
    }

    /// Whether the device reports a change (`told`, which clears on read). The change is kept for
    /// the next [`look`](Self::look).
    pub(crate) fn ask(&self, told: impl Fn() -> bool) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = told();
        seen.told |= told;
        told
    }

    /// The link, by the status register and the device's report of a change. It is down if the
    /// device is `gone`, or if no frame can arrive whatever the register says (`lost`).
    pub(crate) fn look(
        &self,
        status: impl Fn() -> u32,
        told: impl Fn() -> bool,
        lost: bool,
        gone: bool,
    ) -> Link {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut was_told = std::mem::take(&mut seen.told) | told();
        let mut now = status();
        // A change reported during the read may already be in the value read: it is no second
        // change.
        for _ in 0..AGAIN {
            if !told() {
                break;
            }
            was_told = true;
            now = status();
        }
        let gone = gone || now == GONE;
        let speed = speed(now).filter(|_| !lost && !gone);
        let up = speed.is_some();
        let more = match (up == seen.link.up, was_told) {
            (false, _) => 1,
            // The link has changed twice.
            (true, true) => 2,
            (true, false) => 0,
        };
        seen.link = Link {
            up,
            gone,
            speed,
            changes: seen.link.changes + more,
        };
        seen.link
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A device: its link, and whether a change is pending.
    #[derive(Default)]
    struct Device {
        up: Cell<bool>,
        tells: Cell<bool>,
        /// The link changes in the moment before something is read for the n-th time.
        changes_before: Cell<u32>,
        reads: Cell<u32>,
    }

    impl Device {
        fn change(&self) {
            self.up.set(!self.up.get());
            self.tells.set(true);
        }

        fn read<T>(&self, what: impl Fn() -> T) -> T {
            self.reads.set(self.reads.get() + 1);
            if self.reads.get() == self.changes_before.get() {
                self.change();
            }
            what()
        }

        fn look(&self, watched: &Watched) -> Link {
            let status = || self.read(|| u32::from(self.up.get()) * UP);
            let told = || self.read(|| self.tells.take());
            watched.look(status, told, false, false)
        }
    }

    #[test]
    fn a_change_is_one_whenever_it_happens() {
        for moment in 1..8 {
            let (watched, device) = (Watched::new(), Device::default());
            device.changes_before.set(moment);
            let looks = [(); 3].map(|()| device.look(&watched));
            assert_eq!(
                (looks[2].up, looks[2].changes),
                (true, 1),
                "before {moment}"
            );
        }
    }

    #[test]
    fn there_and_back_again_is_two() {
        let (watched, device) = (Watched::new(), Device::default());
        device.change();
        assert!(watched.ask(|| device.tells.take()) && !watched.ask(|| device.tells.take()));
        device.change();
        assert_eq!(device.look(&watched).changes, 2);
        // Of one that tells for ever, no more than that.
        assert_eq!(watched.look(|| 0, || true, false, false).changes, 4);
    }
}
