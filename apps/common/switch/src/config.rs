//! Configuration of a switch.

use std::ops::RangeInclusive;

use pollux_pmd::CauseError;
use pollux_pmd::mempool::time::Ns;

/// Smallest size of a frame on Ethernet, in bytes without the check sequence (IEEE 802.3, 4A.2.3.2.4).
/// A shorter frame is padded on the wire, and counts so here.
pub(crate) const MIN_FRAME: usize = 60;

/// Configuration of a [`Switch`](crate::Switch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Rate of each output in bit/s, of frames without preamble, check sequence and gap. `None`: an
    /// output sends as fast as its port takes frames.
    pub rate: Option<u64>,
    /// Size of each output's queue in bytes. A frame counts in it with its length, but at least with
    /// 60 bytes, until its last bit has left.
    pub buffer: usize,
    /// Number of addresses that the switch can know at once.
    pub addresses: usize,
    /// Time after which an address that sends nothing is forgotten.
    pub age: Ns,
    /// Number of frames after which the switch receives no more. `None`: no limit.
    pub count: Option<u64>,
}

impl Default for SwitchConfig {
    /// No rate, queues of 256 KiB, 8192 addresses, and the ageing time that IEEE 802.1D-2004 recommends
    /// (table 7-5): 300 s.
    fn default() -> Self {
        Self {
            rate: None,
            buffer: 256 << 10,
            addresses: 8192,
            age: Ns(300_000_000_000),
            count: None,
        }
    }
}

impl SwitchConfig {
    /// Valid rates in bit/s.
    pub const RATES: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
    /// Valid sizes of an output's queue in bytes.
    pub const BUFFERS: RangeInclusive<usize> = MIN_FRAME..=64 << 20;
    /// Valid sizes of the address table.
    pub const ADDRESSES: RangeInclusive<usize> = 1..=1 << 20;

    /// Checks the numbers.
    ///
    /// # Errors
    /// The number that is out of its range.
    pub fn check(&self) -> Result<(), SwitchError> {
        if let Some(rate) = self.rate.filter(|rate| !Self::RATES.contains(rate)) {
            return Err(SwitchError::Rate(rate));
        }
        if !Self::BUFFERS.contains(&self.buffer) {
            return Err(SwitchError::Buffer(self.buffer));
        }
        if !Self::ADDRESSES.contains(&self.addresses) {
            return Err(SwitchError::Addresses(self.addresses));
        }
        if self.age.0 == 0 {
            return Err(SwitchError::Age);
        }
        Ok(())
    }

    /// Largest number of frames that wait at one output.
    #[must_use]
    pub fn longest_queue(&self) -> usize {
        self.buffer / MIN_FRAME
    }
}

/// Error: a switch cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SwitchError {
    /// The rate is out of range.
    #[error("a switch with outputs of {0} bit/s: the rate must be 10^3 to 10^12 bit/s")]
    Rate(u64),
    /// The buffer is out of range.
    #[error("a switch with buffers of {0} bytes: an output's buffer has 60 bytes to 64 MiB")]
    Buffer(usize),
    /// The table is out of range.
    #[error("a switch with room for {0} addresses: the table has 1 to 1048576")]
    Addresses(usize),
    /// The ageing time is zero.
    #[error("a switch that forgets addresses at once: give an ageing time above 0")]
    Age,
    /// The number of ports is out of range.
    #[error("a switch with {0} ports: it has 1 to 1024")]
    Ports(usize),
    /// A drop cause of the switch cannot be declared.
    #[error(transparent)]
    Cause(#[from] CauseError),
}
