//! AF_PACKET driver: a Linux network interface through packet sockets. It needs no special NIC and
//! no set-up, and the kernel continues to use the interface.
//!
//! Each queue has a packet socket and a ring of slots shared with the kernel (TPACKET_V2, which
//! passes single frames, so that none waits for a block to fill). Received frames are copied into
//! buffers and the slot is returned at once. Sent frames are copied into slots, and one system call
//! makes the kernel send a whole burst. The kernel's fan-out distributes frames over several
//! receive queues. Frames are received as they were on the wire: a VLAN tag that the kernel has
//! removed is reinserted. Frames that the kernel drops because a ring is full are
//! [`Cause::KernelDrop`](crate::Cause::KernelDrop).
//!
//! A frame whose checksum the kernel has verified is marked so, from Linux 6.2 on: older kernels say
//! it of sums that were computed and not compared.
//!
//! Where the NIC merges TCP segments (GRO), merged frames are longer than the MTU: receive them
//! with `frame=65550`, or disable merging with `ethtool -K IF gro off`.

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
#[path = "../../../tests/hostile/af_packet.rs"]
pub mod hostile;
mod ring;
mod rx;
mod socket;
mod tx;

use std::os::fd::AsFd;
use std::sync::Arc;

use self::ring::Geometry;
use self::rx::{Rx, Source, trusted_status};
use self::socket::Socket;
use self::tx::Tx;
use crate::arrival::Line;
use crate::clock::{Clock, TscClock};
use crate::driver::filter::{self, Filter};
use crate::driver::{
    Capabilities, Description, Driver, Feature, Link, Queues, RxDriver, SpecOption, Statistics,
    Support, Target, TxDriver,
};
use crate::drivers::interface::{Control, Interface, View, Watch, packet};
use crate::drivers::step::Step;
use crate::port::{PortConfig, PortError, QueueSupport};
use crate::spec::{PortSpec, SpecError};

pub(crate) const DESCRIPTION: Description = Description {
    target: Some(Target {
        form: "IF",
        what: "an interface",
        example: "eth0",
    }),
    options: &[
        SpecOption {
            key: "frame",
            values: "BYTES",
            default: "MTU and headers",
            text: "longest frame that a slot holds; longer frames are dropped as oversize",
        },
        SpecOption {
            key: "ring",
            values: "SLOTS",
            default: "as configured",
            text: "slots in each queue's ring",
        },
        SpecOption {
            key: "fanout",
            values: "hash|cpu|queue",
            default: "hash",
            text: "distribution of frames to receive queues: by flow, by the core of the \
                   interrupt, or by the NIC's queue",
        },
        SpecOption {
            key: "timestamps",
            values: "kernel|hardware",
            default: "kernel",
            text: "source of time stamps; `hardware` is the clock of the NIC, as its driver \
                   maintains it",
        },
        filter::PROMISC,
        filter::MULTICAST,
        SpecOption {
            key: "qdisc",
            values: "on|off",
            default: "on",
            text: "`off` bypasses the traffic control of the interface",
        },
    ],
    features: &[
        (Feature::Receive, Support::Yes),
        (Feature::Send, Support::Yes),
        (Feature::MultiQueue, Support::Partly("64 each way")),
        (
            Feature::Steering,
            Support::Partly("by flow, core or the NIC's queue"),
        ),
        (Feature::Link, Support::Yes),
        (Feature::Speed, Support::Partly("if the NIC reports it")),
        (Feature::Jumbo, Support::Yes),
        (Feature::Promiscuous, Support::Yes),
        (Feature::Multicast, Support::Yes),
        (
            Feature::Statistics,
            Support::Partly("of the interface and of each socket"),
        ),
        (Feature::KernelStamps, Support::Yes),
        (
            Feature::HardwareStamps,
            Support::Partly("if the NIC has them"),
        ),
        (Feature::KernelBacked, Support::Yes),
        (
            Feature::Needs,
            Support::Partly(
                "CAP_NET_RAW; CAP_NET_ADMIN for the NIC's stamps; Linux 6.2 to trust checksums that \
                 the kernel reports as verified: on older kernels, which report it of some that \
                 nothing has compared, they are computed",
            ),
        ),
    ],
    check: |spec| Options::parse(spec).map(drop),
    opening_only_looks: true,
    ..Description::new("af_packet", "a network interface through the kernel")
};

const MAX_QUEUES: u16 = 64;

/// Ethernet header and two VLAN tags, one of which the kernel removes.
const HEADERS: usize = 22;

/// Maximum of the option `frame`: the kernel's largest merged frame (GSO_MAX_SIZE) fits.
const MAX_FRAME: usize = 1 << 19;

struct Options {
    interface: String,
    frame: Option<usize>,
    ring: Option<usize>,
    fan_out: u32,
    hardware_stamps: bool,
    filter: Filter,
    bypass_qdisc: bool,
}

impl Options {
    fn parse(spec: &PortSpec) -> Result<Self, SpecError> {
        Ok(Self {
            interface: spec.target().unwrap_or_default().into(),
            frame: spec.number("frame", 60..=MAX_FRAME)?,
            ring: spec.number("ring", 2..=1 << 20)?,
            fan_out: spec.choice(
                "fanout",
                [
                    ("hash", libc::PACKET_FANOUT_HASH),
                    ("cpu", libc::PACKET_FANOUT_CPU),
                    ("queue", libc::PACKET_FANOUT_QM),
                ],
            )?,
            hardware_stamps: spec.choice("timestamps", [("kernel", false), ("hardware", true)])?,
            filter: Filter::from_spec(spec)?,
            bypass_qdisc: !spec.switch("qdisc", true)?,
        })
    }
}

struct AfPacket {
    spec: String,
    options: Options,
    interface: Interface,
    link: Arc<Watch>,
    view: View,
    /// Sources of the receive queues, while the port runs.
    sources: Vec<Arc<Source>>,
}

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Driver>, PortError> {
    let options = Options::parse(spec)?;
    let device = |what: String| PortError::Device {
        port: spec.to_string(),
        what,
    };
    let control = Control::new().map_err(|error| device(error.to_string()))?;
    let interface =
        Interface::find(&control, &options.interface).map_err(|error| device(error.to_string()))?;
    let view = View::new(&interface).map_err(|error| device(error.to_string()))?;
    let link = Arc::new(Watch::new(control, interface.clone()));
    Ok(Box::new(AfPacket {
        spec: spec.to_string(),
        options,
        interface,
        link,
        view,
        sources: Vec::new(),
    }))
}

impl AfPacket {
    fn refused(&self, (what, error): Step) -> PortError {
        let hint = match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "a packet socket needs CAP_NET_RAW: run as root, or once `sudo setcap \
                 cap_net_raw+ep PROGRAM`"
            }
            Some(libc::ENOMEM | libc::EINVAL) if what.contains("ring") => {
                "request less with ring= or frame="
            }
            Some(libc::EINVAL) if what.contains("share") => {
                "before Linux 6.13 the interface must be up when the port starts"
            }
            Some(libc::ENODEV | libc::ENXIO) => {
                "the interface has disappeared since the port was \
                                                 opened"
            }
            _ => "",
        };
        PortError::System {
            port: self.spec.clone(),
            what: format!("{} on {}", what, self.interface.name),
            hint: hint.into(),
            error,
        }
    }

    /// Requests hardware time stamps from the NIC; fails if it has none.
    fn enable_hardware_stamps(&self) -> Result<(), PortError> {
        self.link
            .enable_hardware_stamps()
            .map_err(|error| PortError::System {
                port: self.spec.clone(),
                what: format!("no hardware timestamps on {}", self.interface.name),
                hint: match error.raw_os_error() {
                    Some(libc::EPERM) => {
                        "setting up the NIC's clock needs CAP_NET_ADMIN: run as root"
                    }
                    _ => "the NIC or its driver has none for all frames; use timestamps=kernel",
                }
                .into(),
                error,
            })
    }

    fn rx_queue(&self, ring: usize) -> Result<Rx, Step> {
        let frame = self.options.frame.unwrap_or(self.interface.mtu + HEADERS);
        let geometry = Geometry::new(self.options.ring.unwrap_or(ring), frame);
        let socket = Socket::new()?;
        // On `lo` each frame passes twice: on transmission and on reception.
        socket.set(
            "cannot ignore frames that are sent",
            libc::PACKET_IGNORE_OUTGOING,
            &1,
        )?;
        if self.options.hardware_stamps {
            let source = libc::SOF_TIMESTAMPING_RAW_HARDWARE;
            socket.set(
                "cannot enable hardware timestamps",
                libc::PACKET_TIMESTAMP,
                &source,
            )?;
        }
        let ring = socket.ring(libc::PACKET_RX_RING, geometry)?;
        packet::join(socket.as_fd(), self.interface.index, &self.options.filter)?;
        // Until all queues have joined, one would receive the frames of others.
        socket.shut()?;
        socket.bind(self.interface.index, libc::ETH_P_ALL)?;
        let state = self.link.look();
        let clock = TscClock::get();
        Ok(Rx {
            scratch: vec![0; geometry.bytes() / ring.slots()].into(),
            ring,
            source: Source::new(socket),
            counted: 0,
            next: 0,
            hardware_stamps: self.options.hardware_stamps,
            trusted: trusted_status(&rustix::system::uname().release().to_string_lossy()),
            line: if self.options.hardware_stamps {
                Line::of_device(clock)
            } else {
                Line::of_kernel(clock)
            },
            link: self.link.clone(),
            state,
            clock,
            watch_at: clock.now(),
        })
    }

    fn tx_queue(&self, ring: usize) -> Result<Tx, Step> {
        let slots = self.options.ring.unwrap_or(ring);
        let geometry = Geometry::new(slots, self.interface.mtu + HEADERS);
        let socket = Socket::new()?;
        if self.options.bypass_qdisc {
            socket.set("cannot bypass the qdisc", libc::PACKET_QDISC_BYPASS, &1)?;
        }
        let ring = socket.ring(libc::PACKET_TX_RING, geometry)?;
        socket.bind(self.interface.index, 0)?;
        Ok(Tx::new(ring, socket, self.interface.mtu, self.link.clone()))
    }

    fn queues(&self, config: &PortConfig) -> Result<(Vec<Rx>, Vec<Tx>), Step> {
        let rx: Vec<_> = (0..config.rx_queues)
            .map(|queue| self.rx_queue(config.rx_ring(queue)))
            .collect::<Result<_, _>>()?;
        if let [first, others @ ..] = &rx[..]
            && !others.is_empty()
        {
            let (mode, first) = (self.options.fan_out, &first.source.socket);
            first.fan_out(mode, None)?;
            for other in others {
                other.source.socket.fan_out(mode, Some(first))?;
            }
        }
        for queue in &rx {
            queue.source.socket.open_up()?;
        }
        let tx = (0..config.tx_queues)
            .map(|queue| self.tx_queue(config.tx_ring(queue)))
            .collect::<Result<_, _>>()?;
        Ok((rx, tx))
    }
}

impl Driver for AfPacket {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: MAX_QUEUES,
            max_tx_queues: MAX_QUEUES,
            mac: Some(self.interface.mac),
            max_frame: self.interface.mtu + 14,
            checksum_offload: false,
            wire_time: true,
            recorded: false,
            kernel_backed: true,
        }
    }

    fn queue_support(&self) -> QueueSupport {
        QueueSupport::RING
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        if self.options.hardware_stamps {
            self.enable_hardware_stamps()?;
        }
        let (rx, tx) = self.queues(config).map_err(|step| self.refused(step))?;
        self.sources = rx.iter().map(|queue| queue.source.clone()).collect();
        Ok(Queues {
            rx: rx
                .into_iter()
                .map(|queue| Box::new(queue) as Box<dyn RxDriver>)
                .collect(),
            tx: tx
                .into_iter()
                .map(|queue| Box::new(queue) as Box<dyn TxDriver>)
                .collect(),
        })
    }

    fn stop(&mut self) -> Result<(), PortError> {
        self.sources.clear();
        Ok(())
    }

    fn link(&self) -> Link {
        self.view.link()
    }

    /// Counters of the interface, which other programs may use too, then those of each queue's
    /// socket.
    fn statistics(&self) -> Statistics {
        let mut statistics = self.view.statistics();
        for (i, source) in self.sources.iter().enumerate() {
            let (frames, drops) = source.counts();
            statistics.push((format!("socket{i}_packets").into(), frames));
            statistics.push((format!("socket{i}_drops").into(), drops));
        }
        statistics
    }
}
