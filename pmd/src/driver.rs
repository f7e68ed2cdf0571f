//! What a driver implements. One folder per driver under `drivers/`.

mod description;
pub mod filter;
mod option;
pub mod steer;

use std::borrow::Cow;
use std::fmt;
use std::os::fd::BorrowedFd;

use pollux_mempool::time::Tsc;
use pollux_mempool::{BurstMut, Mbuf, PoolCache};

use crate::arrival::ArrivalTime;
use crate::ledger::{Sent, Tally};
use crate::net::MacAddr;
use crate::port::{PortConfig, PortError, RxState};

pub use self::description::{Description, Feature, Support, Target};
pub use self::option::SpecOption;

/// What a device offers.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // independent properties, each with its name in reports
pub struct Capabilities {
    /// Most receive queues; 0 if the port cannot receive.
    pub max_rx_queues: u16,
    /// Most transmit queues; 0 if the port cannot send.
    pub max_tx_queues: u16,
    /// Address of the port, if it has one.
    pub mac: Option<MacAddr>,
    /// Largest frame that the link carries, in bytes without the frame check sequence. A received
    /// frame that is longer than a buffer is a chain of buffers, up to
    /// [`Mempool::longest_frame`](pollux_mempool::Mempool::longest_frame), and
    /// [`Cause::Oversize`](crate::Cause::Oversize) beyond; chains can be sent likewise.
    pub max_frame: usize,
    /// A checksum of a frame can be left to the device that sends it
    /// ([`Mbuf::set_checksum_request`]), if the port is [configured](PortConfig::checksum_offload)
    /// for it. Elsewhere [`finish_checksum`](crate::net::finish_checksum) has it done.
    pub checksum_offload: bool,
    /// Frames carry a stamp of the world outside.
    pub wire_time: bool,
    /// The frames are a recording: they end, their stamps are the past, and they can wait.
    pub recorded: bool,
    /// The driver enters the kernel to receive or to send.
    pub kernel_backed: bool,
}

/// A speed in 10^6 bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Megabits(pub u32);

impl fmt::Display for Megabits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1000 => write!(f, "{} Gb/s", f64::from(n) / 1000.0),
            n => write!(f, "{n} Mb/s"),
        }
    }
}

/// The link of a port, as its device sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Whether frames can pass.
    pub up: bool,
    /// The device is gone for good: it was unplugged or deleted, or its owner wants it back. Its
    /// link is down; stop the port and drop it, which gives the device back.
    pub gone: bool,
    /// How fast, where it is known.
    pub speed: Option<Megabits>,
    /// How often it has gone up or down, as far as the device counts: two looks at a link that
    /// differ in this alone tell of a change that was over before the second.
    pub changes: u64,
}

impl Link {
    /// A link that is always up.
    pub const UP: Self = Self {
        up: true,
        ..Self::DOWN
    };

    /// A link that has been down since the beginning.
    pub const DOWN: Self = Self {
        up: false,
        gone: false,
        speed: None,
        changes: 0,
    };
}

/// In a few words: `up, 25 Gb/s`.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self { gone: true, .. } => "gone",
            Self { up: true, .. } => "up",
            _ => "down",
        })?;
        self.speed.map_or(Ok(()), |speed| write!(f, ", {speed}"))
    }
}

/// Counters by name, in the device's order.
pub type Statistics = Vec<(Cow<'static, str>, u64)>;

/// Numbers of queues in order, for people: `0-2, 5`.
#[derive(Clone, Copy, Debug)]
pub struct QueueList<'a>(pub &'a [u16]);

impl fmt::Display for QueueList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self
            .0
            .chunk_by(|a, b| a.checked_add(1).is_some_and(|next| next == *b));
        for (i, run) in runs.enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            match run {
                [] => {}
                [one] => write!(f, "{one}")?,
                [first, .., last] => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// The queues of a started device, in order.
pub struct Queues {
    /// Receive side.
    pub rx: Vec<Box<dyn RxDriver>>,
    /// Transmit side.
    pub tx: Vec<Box<dyn TxDriver>>,
}

/// A device that was found.
pub trait Driver: Send {
    /// What it offers.
    fn capabilities(&self) -> Capabilities;

    /// Refuses a configuration that the generic checks cannot judge. Touches nothing.
    ///
    /// # Errors
    /// Says what the device offers instead.
    fn validate(&self, _config: &PortConfig) -> Result<(), PortError> {
        Ok(())
    }

    /// Receive queues over which the device shares frames out, whatever is configured: those of a
    /// queue that the port does not have never come. 1 where it shares them out to the port's
    /// queues alone.
    fn spread(&self) -> u16 {
        1
    }

    /// Receive queues, by the device's numbers, that have frames of the port's kind and that no port
    /// of this process takes them from. Of a started device; for housekeeping.
    fn unpolled(&self) -> Vec<u16> {
        Vec::new()
    }

    /// Sets the device up as configured and starts it.
    ///
    /// # Errors
    /// What the system or the device refused; nothing stays open.
    fn start(&mut self, config: &PortConfig, port: u16) -> Result<Queues, PortError>;

    /// All queues have come back, and those that send are finished: has the device receive nothing
    /// more, so that all that the receive queues find at their end is all that has come. Not called
    /// where queues are dropped by themselves: the others go on.
    fn end_receiving(&mut self) {}

    /// Stops the device; its queues have been finished and dropped.
    ///
    /// # Errors
    /// What went wrong at the end, so that it is not lost.
    fn stop(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    /// The link now. May enter the kernel: for housekeeping.
    fn link(&self) -> Link {
        Link::UP
    }

    /// What the device, or the kernel, counts by itself, since when it says; to be compared with
    /// the ledger and with the counters of a peer. May enter the kernel: for housekeeping. Empty
    /// where nobody counts, or nobody can be asked any more.
    fn statistics(&self) -> Statistics {
        Statistics::new()
    }

    /// What the device's registers hold, a line for each, for people. Empty without registers.
    fn registers(&self) -> String {
        String::new()
    }
}

/// Where the frames of one receive queue come from, and how many there have been.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Number of the port.
    pub port: u16,
    /// Number of the queue on its port.
    pub queue: u16,
    /// Number of the next frame, for drivers whose queue sees all the port's frames.
    pub next: u32,
}

impl Origin {
    /// The first frame of a queue is number 0.
    #[must_use]
    pub fn new(port: u16, queue: u16) -> Self {
        Self {
            port,
            queue,
            next: 0,
        }
    }

    /// Stamps a frame with its origin and counts it.
    #[inline]
    pub fn stamp(&mut self, mbuf: &mut Mbuf, arrival: Tsc) {
        mbuf.set_origin(self.port, self.queue, self.next, arrival);
        self.next = self.next.wrapping_add(1);
    }
}

/// The receive side of one queue.
pub trait RxDriver: Send {
    /// Adds arrived frames to `out`, as many as fit; returns how many. Counts every frame that
    /// reached the device in `tally`: as from the wire, and as dropped if it is not in `out`.
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize;

    /// Whether frames can still come.
    fn state(&self) -> RxState {
        RxState::Live
    }

    /// Where the arrival comes from that frames are [stamped](Origin::stamp) with. Frames of a driver
    /// that has it from its polls are charged for gaps between these
    /// ([`RxQueue::rx_at`](crate::RxQueue::rx_at)).
    fn arrival_time(&self) -> ArrivalTime {
        ArrivalTime::Poll
    }

    /// Reads counters from outside the process.
    fn sync_counters(&mut self, _tally: &mut Tally) {}

    /// What becomes readable when the queue is armed and frames come: an eventfd, or the socket that
    /// they come by. `None` if the device cannot wake anybody.
    fn event(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Has the device signal the [`event`](Self::event), once, when it has frames, or if some came
    /// since the last time. A loop that goes to sleep polls once more after this.
    fn arm(&mut self) {}

    /// Has the device leave the event alone.
    fn disarm(&mut self) {}

    /// The last call: counts what is still queued as from the wire and aborted.
    fn finish(&mut self, _tally: &mut Tally) {}
}

/// The transmit side of one queue.
pub trait TxDriver: Send {
    /// Takes frames out of the front of `burst` and sends them, as many as there is room for;
    /// returns how many it took, and counts them in `sent`.
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize;

    /// The last call: completes what is on its way.
    fn finish(&mut self, _sent: &mut Sent) {}
}

#[cfg(test)]
mod tests {
    use super::QueueList;

    #[test]
    fn numbers_of_queues_that_follow_each_other_are_put_together() {
        for (queues, told) in [
            (&[][..], ""),
            (&[3], "3"),
            (&[1, 2, 3], "1-3"),
            (&[0, 1, 5, 7, 8, u16::MAX], "0-1, 5, 7-8, 65535"),
        ] {
            assert_eq!(QueueList(queues).to_string(), told);
        }
    }
}
