//! Packets that a port has taken and may not have sent yet: what was in them, for when it could not.

/// Most packets: a capture buffers fewer before it writes them, and a ring has fewer descriptors.
const MOST: usize = 8192;

/// The last packets that a queue has taken, with the number of decisions of each.
pub(super) struct Handed {
    /// 0: there is none, or it was refused.
    decisions: Box<[u16; MOST]>,
    next: usize,
    /// Frames that the queue has refused.
    errors: u64,
}

impl Handed {
    pub(super) fn new() -> Self {
        Self {
            decisions: Box::new([0; MOST]),
            next: 0,
            errors: 0,
        }
    }

    /// The queue has taken a packet.
    #[inline]
    pub(super) fn push(&mut self, decisions: usize) {
        self.decisions[self.next % MOST] = decisions as u16;
        self.next = self.next.wrapping_add(1);
    }

    /// The queue has refused so many frames in all: packets and decisions that are lost by the last ones. Frames
    /// of a queue that fails are refused in their order, so that they are the last ones.
    #[inline]
    pub(super) fn refuse(&mut self, errors: u64) -> (u64, u64) {
        if errors == self.errors {
            return (0, 0);
        }
        self.take_last(errors)
    }

    #[cold]
    fn take_last(&mut self, errors: u64) -> (u64, u64) {
        let mut left = errors.saturating_sub(self.errors);
        self.errors = errors;
        let (mut packets, mut decisions) = (0, 0);
        for back in 1..=MOST {
            if left == 0 {
                break;
            }
            let place = self.next.wrapping_sub(back) % MOST;
            let lost = std::mem::take(&mut self.decisions[place]);
            if lost > 0 {
                left -= 1;
                packets += 1;
                decisions += u64::from(lost);
            }
        }
        (packets, decisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_packets_are_those_that_are_refused() {
        let mut handed = Handed::new();
        assert_eq!(handed.refuse(0), (0, 0));
        for decisions in 1..=5 {
            handed.push(decisions);
        }
        assert_eq!(handed.refuse(2), (2, 5 + 4));
        assert_eq!(handed.refuse(2), (0, 0));
        handed.push(7);
        // That one, and the last one that was not refused yet.
        assert_eq!(handed.refuse(4), (2, 7 + 3));
        // Frames of others count in the queue's errors, too.
        assert_eq!(handed.refuse(10), (2, 2 + 1));
        for n in 0..3 * MOST {
            handed.push(1 + n % 2);
        }
        let all = (MOST as u64, 3 * MOST as u64 / 2);
        assert_eq!(handed.refuse(1 << 40), all);
    }
}
