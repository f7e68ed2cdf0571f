//! The link, which all these NICs tell in the same bits of their status register (section 10.2.2.2
//! of the datasheet of the 82574, 8.2.2 of that of the 82576).

use std::sync::{Mutex, PoisonError};

use crate::driver::{Link, Megabits};

/// What all registers read where there is no device any more.
pub(crate) const GONE: u32 = u32::MAX;

const UP: u32 = 1 << 1;
const SPEED_SHIFT: u32 = 6;

/// How fast the link is; `None` if it is down, or the device gone.
pub(crate) fn speed(status: u32) -> Option<Megabits> {
    let speed = match status >> SPEED_SHIFT & 3 {
        0 => 10,
        1 => 100,
        _ => 1000,
    };
    (status != GONE && status & UP != 0).then_some(Megabits(speed))
}

/// Counts the changes of a link from look to look.
pub(crate) struct Watched(Mutex<Seen>);

struct Seen {
    link: Link,
    /// The device has told of a change since the last look.
    told: bool,
}

impl Watched {
    /// A link that was down.
    pub(crate) fn new() -> Self {
        let (link, told) = (Link::DOWN, false);
        Self(Mutex::new(Seen { link, told }))
    }

    /// The device tells of a change, over which the next look may come too late.
    pub(crate) fn tell(&self) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.told = true;
    }

    /// The link, by the status register, which was read behind whatever has been told. It is down
    /// where the device is `gone`, and where nothing can come, whatever the register says (`lost`).
    pub(crate) fn look(&self, status: u32, lost: bool, gone: bool) -> Link {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = gone || status == GONE;
        let speed = speed(status).filter(|_| !lost && !gone);
        let up = speed.is_some();
        let told = std::mem::take(&mut seen.told);
        let more = match (up == seen.link.up, told) {
            (false, _) => 1,
            // There and back again.
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
