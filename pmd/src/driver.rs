//! The driver API: the traits and types that a driver implements. Each driver has one folder under
//! `drivers/`.

mod description;
pub mod filter;
pub mod flow;
mod option;
pub mod rss;

use std::borrow::Cow;
use std::fmt;
use std::os::fd::BorrowedFd;

use pollux_mempool::time::Tsc;
use pollux_mempool::{BurstMut, Mbuf, PoolCache};

use crate::arrival::ArrivalTime;
use crate::ledger::{Sent, Tally};
use crate::net::MacAddr;
use crate::port::config::PortConfig;
use crate::port::error::PortError;
use crate::port::queue_config::QueueSupport;
use crate::port::state::RxState;

use self::rss::RssSupport;

pub use self::description::{Description, Feature, Support, Target};
pub use self::option::SpecOption;

/// Capabilities of a device.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // independent properties, each named in reports
pub struct Capabilities {
    /// Maximum number of receive queues; 0 if the port cannot receive.
    pub max_rx_queues: u16,
    /// Maximum number of transmit queues; 0 if the port cannot send.
    pub max_tx_queues: u16,
    /// MAC address of the port, if it has one.
    pub mac: Option<MacAddr>,
    /// Largest frame that the link carries, in bytes without the frame check sequence. A received
    /// frame longer than one buffer is a chain of buffers, up to
    /// [`Mempool::longest_frame`](pollux_mempool::Mempool::longest_frame), and
    /// [`Cause::Oversize`](crate::Cause::Oversize) beyond. Chains can be sent under the same limit.
    pub max_frame: usize,
    /// Transmit checksum offload: the device can compute the checksum of a frame that it sends
    /// ([`Mbuf::set_checksum_request`]), if the port is [configured](PortConfig::checksum_offload)
    /// for it. On other ports, [`finish_checksum`](crate::net::finish_checksum) computes it in
    /// software.
    pub checksum_offload: bool,
    /// Frames carry a time stamp of an external clock.
    pub wire_time: bool,
    /// The frames are a recording: they end, their time stamps are in the past, and they can wait.
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

/// Link state of a port, as its device reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Whether the link passes frames.
    pub up: bool,
    /// The device is gone for good: it was unplugged or deleted, or its owner has requested it
    /// back. Its link is down. Stop and drop the port to release the device.
    pub gone: bool,
    /// Link speed, where it is known.
    pub speed: Option<Megabits>,
    /// Number of link state changes, as far as the device counts them. Two readings that differ in
    /// this field alone show that the link changed and recovered between them.
    pub changes: u64,
}

impl Link {
    /// A link that is always up.
    pub const UP: Self = Self {
        up: true,
        ..Self::DOWN
    };

    /// A link that has been down since the start.
    pub const DOWN: Self = Self {
        up: false,
        gone: false,
        speed: None,
        changes: 0,
    };
}

/// Short text: `up, 25 Gb/s`.
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

/// A sorted list of queue numbers, displayed as ranges: `0-2, 5`.
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
    /// Receive queues.
    pub rx: Vec<Box<dyn RxDriver>>,
    /// Transmit queues.
    pub tx: Vec<Box<dyn TxDriver>>,
}

/// A device that a driver has found.
pub trait Driver: Send {
    /// Its capabilities.
    fn capabilities(&self) -> Capabilities;

    /// Settings of single queues that the device supports; the generic checks refuse others.
    fn queue_support(&self) -> QueueSupport {
        QueueSupport::NONE
    }

    /// What it has for RSS; `None` if it shares flows out by itself, or not at all.
    fn rss_support(&self) -> Option<RssSupport> {
        None
    }

    /// Whether its device takes flow rules ([`FlowRule`](flow::FlowRule)).
    fn takes_flow_rules(&self) -> bool {
        false
    }

    /// Refuses a configuration that the generic checks cannot judge. Does not touch the device.
    ///
    /// # Errors
    /// Names what the device offers instead.
    fn validate(&self, _config: &PortConfig) -> Result<(), PortError> {
        Ok(())
    }

    /// Number of receive queues over which the device distributes frames, independent of the
    /// configuration. Frames for queues that the port does not have are never received. 1 where the
    /// device distributes frames to the port's queues alone.
    fn spread(&self) -> u16 {
        1
    }

    /// Receive queues, by the device's numbers, that hold frames of the port's kind and that no
    /// port of this process polls. Valid for a started device; for housekeeping.
    fn unpolled(&self) -> Vec<u16> {
        Vec::new()
    }

    /// Configures the device and starts it.
    ///
    /// # Errors
    /// The refusal of the system or the device; nothing stays open.
    fn start(&mut self, config: &PortConfig, port: u16) -> Result<Queues, PortError>;

    /// Stops reception after all queues have been returned and the transmit queues are finished:
    /// frames that the receive queues then still hold are all that arrived. Not called when queues
    /// are dropped one by one, since the others continue.
    fn end_receiving(&mut self) {}

    /// Stops the device; its queues have been finished and dropped.
    ///
    /// # Errors
    /// A failure of the stop, so that it is reported.
    fn stop(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    /// Current link state. May enter the kernel: for housekeeping.
    fn link(&self) -> Link {
        Link::UP
    }

    /// Counters of the device or the kernel, counted since an origin of their own; for comparison
    /// with the ledger and with the counters of a peer. May enter the kernel: for housekeeping.
    /// Empty where no counters exist or they can no longer be read.
    fn statistics(&self) -> Statistics {
        Statistics::new()
    }

    /// Contents of the device's registers, one line each, as text. Empty without registers.
    fn registers(&self) -> String {
        String::new()
    }
}

/// Origin of the frames of one receive queue, and their count.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Number of the port.
    pub port: u16,
    /// Number of the queue on its port.
    pub queue: u16,
    /// Number of the next frame, for drivers whose queue receives all the port's frames.
    pub next: u32,
}

impl Origin {
    /// An origin whose first frame has number 0.
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

/// The receive side of one queue. A loop of its own polls it: align the type to 128 bytes
/// (`#[repr(align(128))]`), so that it shares no cache line with the state of another loop.
pub trait RxDriver: Send {
    /// Adds arrived frames to `out`, as many as fit, and returns their number. Counts every frame
    /// that reached the device in `tally`: as from the wire, and as dropped if it is not in `out`.
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize;

    /// Whether more frames can arrive. Called by poll loops: a driver whose device tells it by a
    /// register reads that in [`Driver::link`], not here.
    fn state(&self) -> RxState {
        RxState::Live
    }

    /// Source of the arrival time that frames are [stamped](Origin::stamp) with. Where the driver
    /// takes it from its polls, gaps between polls are charged to the frames
    /// ([`RxQueue::rx_at`](crate::RxQueue::rx_at)).
    fn arrival_time(&self) -> ArrivalTime {
        ArrivalTime::Poll
    }

    /// Reads counters from outside the process.
    fn sync_counters(&mut self, _tally: &mut Tally) {}

    /// File descriptor that becomes readable when the queue is armed and frames arrive: an eventfd,
    /// or the socket that receives them. `None` if the device cannot signal.
    fn event(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Makes the device signal the [`event`](Self::event) once: when it has frames, or if frames
    /// arrived since the last signal. A loop must poll once more between arming and sleep.
    fn arm(&mut self) {}

    /// Stops the device from signalling the event.
    fn disarm(&mut self) {}

    /// The last call: counts frames that are still queued as from the wire and aborted.
    fn finish(&mut self, _tally: &mut Tally) {}
}

/// The transmit side of one queue; aligned as that of [`RxDriver`].
pub trait TxDriver: Send {
    /// Sends frames from the front of `burst`, as many as the queue has descriptors for. Returns
    /// how many it took, and counts them in `sent`.
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize;

    /// The last call: completes the frames in flight.
    fn finish(&mut self, _sent: &mut Sent) {}
}

#[cfg(test)]
mod tests {
    use super::QueueList;

    #[test]
    fn numbers_of_queues_that_follow_each_other_are_put_together() {
        for (queues, text) in [
            (&[][..], ""),
            (&[3], "3"),
            (&[1, 2, 3], "1-3"),
            (&[0, 1, 5, 7, 8, u16::MAX], "0-1, 5, 7-8, 65535"),
        ] {
            assert_eq!(QueueList(queues).to_string(), text);
        }
    }
}
