//! A link that is slower than its senders: frames wait in its queue, are marked where the queue is
//! long (explicit congestion notification, RFC 3168), and are lost where it is full.

use pollux_mempool::time::Ns;

use crate::dice::FaultError;

/// The link and its queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BottleneckOptions {
    /// Rate in bits a second.
    pub rate: f64,
    /// A frame that finds more bytes than this in the queue is marked, if its sender supports marks.
    pub mark_above: u64,
    /// A frame that would make the queue longer than so many bytes is lost.
    pub capacity: u64,
}

/// What becomes of a frame at the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The queue was full.
    Lost,
    /// It leaves the link at this time.
    Leaves {
        /// The time.
        at: Ns,
        /// It is to be marked.
        is_marked: bool,
    },
}

/// The state of the link.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    options: BottleneckOptions,
    /// When all that waits has left, in ns.
    idle_at: f64,
}

impl BottleneckOptions {
    /// Checks the numbers.
    ///
    /// # Errors
    /// The number that cannot be.
    pub fn check(&self) -> Result<(), FaultError> {
        if !(self.rate >= 1e3 && self.rate <= 1e12) {
            return Err(FaultError::Rate(self.rate));
        }
        if self.mark_above > self.capacity {
            return Err(FaultError::Queue(self.mark_above, self.capacity));
        }
        Ok(())
    }
}

impl Bottleneck {
    pub(crate) fn new(options: BottleneckOptions) -> Self {
        Self {
            options,
            idle_at: 0.0,
        }
    }

    /// Takes a frame of so many bytes that arrives at `due`. Frames arrive in the order of their time.
    pub(crate) fn pass(&mut self, due: Ns, bytes: usize) -> Passage {
        let ns_per_byte = 8e9 / self.options.rate;
        let start = self.idle_at.max(due.0 as f64);
        let waiting = ((start - due.0 as f64) / ns_per_byte) as u64;
        if waiting + bytes as u64 > self.options.capacity {
            return Passage::Lost;
        }
        self.idle_at = start + bytes as f64 * ns_per_byte;
        Passage::Leaves {
            at: Ns(self.idle_at as u64),
            is_marked: waiting > self.options.mark_above,
        }
    }
}

/// Marks a frame: sets both bits of ECN in its IPv4 header, and corrects the checksum of the header.
/// Returns whether it did: not where the frame is no IPv4, or its sender does not support marks (RFC
/// 3168, 5).
#[must_use]
pub fn mark_congestion(frame: &mut [u8]) -> bool {
    const ETHERNET: usize = 14;
    let Some((ethernet, ip)) = frame.split_at_mut_checked(ETHERNET) else {
        return false;
    };
    let is_ipv4 = ethernet[12..] == [8, 0] && ip.len() >= 20 && ip[0] >> 4 == 4;
    if !is_ipv4 || ip[1] % 4 == 0 {
        return false;
    }
    let old = u16::from_be_bytes([ip[0], ip[1]]);
    ip[1] |= 3;
    let new = u16::from_be_bytes([ip[0], ip[1]]);
    // RFC 1624, equation 3.
    let sum = u32::from(!u16::from_be_bytes([ip[10], ip[11]])) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 Mbit/s: 1000 ns a byte.
    const OPTIONS: BottleneckOptions = BottleneckOptions {
        rate: 8e6,
        mark_above: 200,
        capacity: 400,
    };

    #[test]
    fn frames_wait_are_marked_and_are_lost() {
        let mut link = Bottleneck::new(OPTIONS);
        let leaves = |at, is_marked| Passage::Leaves {
            at: Ns(at),
            is_marked,
        };
        // Four at once: each waits for those before it.
        for (at, is_marked) in [(100, false), (200, false), (300, false), (400, true)] {
            assert_eq!(link.pass(Ns(0), 100), leaves(at * 1000, is_marked));
        }
        assert_eq!(link.pass(Ns(0), 1), Passage::Lost);
        // Half has left.
        assert_eq!(link.pass(Ns(200_000), 100), leaves(500_000, false));
        // All has, long ago.
        assert_eq!(link.pass(Ns(1_000_000), 50), leaves(1_050_000, false));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(OPTIONS.check(), Ok(()));
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(BottleneckOptions { rate, ..OPTIONS }.check().is_err());
        }
        let mark_above = 401;
        let wrong = BottleneckOptions {
            mark_above,
            ..OPTIONS
        };
        assert_eq!(wrong.check(), Err(FaultError::Queue(401, 400)));
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        let sum = |ip: &[u8]| {
            let words = ip
                .chunks(2)
                .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
            let sum: u32 = words.sum();
            let sum = (sum & 0xffff) + (sum >> 16);
            (sum & 0xffff) + (sum >> 16)
        };
        for tos in 0..=255_u8 {
            let mut frame = [0; 60];
            frame[12..14].copy_from_slice(&[8, 0]);
            frame[14..34].copy_from_slice(&[
                0x45, tos, 0, 46, 0x12, 0x34, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ]);
            let checksum = !(sum(&frame[14..34]) as u16);
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
            assert_eq!(sum(&frame[14..34]), 0xffff);
            let before = frame;
            let is_marked = mark_congestion(&mut frame);
            assert_eq!(is_marked, tos & 3 != 0);
            assert_eq!(sum(&frame[14..34]), 0xffff, "{tos:#x}");
            assert_eq!(frame[15], if is_marked { tos | 3 } else { tos });
            assert_eq!(
                (frame[..15] == before[..15], frame[26..] == before[26..]),
                (true, true)
            );
        }
        assert!(!mark_congestion(&mut [0; 13]));
        assert!(!mark_congestion(&mut [0xff; 60]));
    }
}
