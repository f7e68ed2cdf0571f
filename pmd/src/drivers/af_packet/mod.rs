//! A Linux network interface by way of AF_PACKET: no special NIC, no special set-up, and the
//! kernel goes on using the interface itself.
//!
//! Each queue has a packet socket and a ring of slots shared with the kernel (TPACKET_V2, which
//! hands over frame by frame, so that none waits for a block to fill). Received frames are copied
//! into buffers and the slot is given back at once; sent ones are copied into slots and one system
//! call has the kernel send a whole burst. Several receive queues share the frames out by the
//! kernel's fan-out. A frame is what was on the wire: a VLAN tag that the kernel had taken out is
//! put back. What the kernel drops because a ring is full is
//! [`Cause::KernelDrop`](crate::Cause::KernelDrop).
//!
//! Options behind the interface's name:
//!
//! | option | meaning | default |
//! | --- | --- | --- |
//! | `frame=BYTES` | length that a slot must hold; what a slot cannot hold is dropped as oversize | MTU and headers |
//! | `ring=SLOTS` | slots in each queue's ring | [`PortConfig::ring`] |
//! | `fanout=hash\|cpu\|queue` | frames to receive queues: by flow, by the core that got the interrupt, by the NIC's queue | `hash` |
//! | `timestamps=kernel\|hardware` | who stamps frames; `hardware` is the clock of the NIC, as its driver runs it | `kernel` |
//! | `promisc=on\|off` | receive frames for other stations too | `off` |
//! | `qdisc=on\|off` | `off` sends past the traffic control of the interface | `on` |
//!
//! Where the NIC merges TCP segments (GRO), merged frames are longer than the MTU: receive them
//! with `frame=65550`, or switch it off with `ethtool -K IF gro off`.

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod hostile;
mod interface;
mod ring;
mod rx;
mod socket;
mod tx;

use std::sync::Arc;

use self::interface::{Control, Interface, Link};
use self::ring::Geometry;
use self::rx::Rx;
use self::socket::{Socket, Step};
use self::tx::Tx;
use crate::clock::{Clock, TscClock};
use crate::driver::{Capabilities, Driver, Queues, RxDriver, TxDriver};
use crate::port::{PortConfig, PortError, RxState};
use crate::spec::{PortSpec, SpecError};

/// For `--help`.
pub(crate) const USAGE: &str = "af_packet:IF                  a network interface through the kernel; frame=, ring=, fanout=, timestamps=, promisc=, qdisc=";

const MAX_QUEUES: u16 = 64;

/// Ethernet header and two VLAN tags, one of which the kernel takes out.
const HEADERS: usize = 22;

/// Longest frame that can be asked for: the kernel's largest merged frame (GSO_MAX_SIZE) fits.
const MAX_FRAME: usize = 1 << 19;

struct Options {
    interface: String,
    frame: Option<usize>,
    ring: Option<usize>,
    fan_out: u32,
    hardware_stamps: bool,
    promiscuous: bool,
    bypass_qdisc: bool,
}

impl Options {
    fn parse(spec: &PortSpec) -> Result<Self, SpecError> {
        let Some(interface) = spec.target() else {
            return Err(SpecError::Target {
                spec: spec.to_string(),
                what: "af_packet needs an interface, as in af_packet:eth0".into(),
            });
        };
        spec.expect_options(&["frame", "ring", "fanout", "timestamps", "promisc", "qdisc"])?;
        let number = |key: &str, least: usize, most: usize| {
            let expected = format!("a number of {least} to {most}");
            let Some(text) = spec.option(key) else {
                return Ok(None);
            };
            match text.parse() {
                Ok(n) if (least..=most).contains(&n) => Ok(Some(n)),
                _ => Err(spec.bad_value(key, text, &expected)),
            }
        };
        let switch = |key: &str, default: bool| match spec.option(key) {
            None => Ok(default),
            Some("on") => Ok(true),
            Some("off") => Ok(false),
            Some(other) => Err(spec.bad_value(key, other, "on or off")),
        };
        Ok(Self {
            interface: interface.into(),
            frame: number("frame", 60, MAX_FRAME)?,
            ring: number("ring", 2, 1 << 20)?,
            fan_out: match spec.option("fanout") {
                None | Some("hash") => libc::PACKET_FANOUT_HASH,
                Some("cpu") => libc::PACKET_FANOUT_CPU,
                Some("queue") => libc::PACKET_FANOUT_QM,
                Some(other) => return Err(spec.bad_value("fanout", other, "hash, cpu or queue")),
            },
            hardware_stamps: match spec.option("timestamps") {
                None | Some("kernel") => false,
                Some("hardware") => true,
                Some(other) => {
                    return Err(spec.bad_value("timestamps", other, "kernel or hardware"));
                }
            },
            promiscuous: switch("promisc", false)?,
            bypass_qdisc: !switch("qdisc", true)?,
        })
    }
}

struct AfPacket {
    spec: String,
    options: Options,
    interface: Interface,
    link: Arc<Link>,
}

pub(crate) fn check(spec: &PortSpec) -> Result<(), SpecError> {
    Options::parse(spec).map(drop)
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
    let link = Arc::new(Link::new(control, interface.clone()));
    Ok(Box::new(AfPacket {
        spec: spec.to_string(),
        options,
        interface,
        link,
    }))
}

impl AfPacket {
    fn refused(&self, (what, source): Step) -> PortError {
        let hint = match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "a packet socket needs CAP_NET_RAW: run as root, or once `sudo setcap \
                 cap_net_raw+ep PROGRAM`"
            }
            Some(libc::ENOMEM | libc::EINVAL) if what.contains("ring") => {
                "ask for less with ring= or frame="
            }
            Some(libc::EINVAL) if what.contains("share") => {
                "before Linux 6.13 the interface must be up when the port starts"
            }
            Some(libc::ENODEV | libc::ENXIO) => "the interface has gone since the port was opened",
            _ => "",
        };
        PortError::System {
            port: self.spec.clone(),
            what: format!("{} on {}", what, self.interface.name),
            hint: hint.into(),
            source,
        }
    }

    /// Asks the NIC for stamps of its own; refused where it has none.
    fn enable_hardware_stamps(&self) -> Result<(), PortError> {
        self.link
            .enable_hardware_stamps()
            .map_err(|source| PortError::System {
                port: self.spec.clone(),
                what: format!("no hardware timestamps on {}", self.interface.name),
                hint: match source.raw_os_error() {
                    Some(libc::EPERM) => {
                        "setting up the NIC's clock needs CAP_NET_ADMIN: run as root"
                    }
                    _ => "the NIC or its driver has none for all frames; use timestamps=kernel",
                }
                .into(),
                source,
            })
    }

    fn rx_queue(&self, config: &PortConfig) -> Result<Rx, Step> {
        let frame = self.options.frame.unwrap_or(self.interface.mtu + HEADERS);
        let geometry = Geometry::new(self.options.ring.unwrap_or(config.ring), frame);
        let socket = Socket::new()?;
        // On `lo` each frame passes twice: when it is sent and when it is received.
        socket.set(
            "cannot ignore frames that are sent",
            libc::PACKET_IGNORE_OUTGOING,
            &1,
        )?;
        if self.options.hardware_stamps {
            let source = libc::SOF_TIMESTAMPING_RAW_HARDWARE;
            socket.set(
                "cannot have hardware timestamps",
                libc::PACKET_TIMESTAMP,
                &source,
            )?;
        }
        let ring = socket.ring(libc::PACKET_RX_RING, geometry)?;
        if self.options.promiscuous {
            socket.promiscuous(self.interface.index)?;
        }
        // Until all queues have joined, one would get the frames of others.
        socket.shut()?;
        socket.bind(self.interface.index, libc::ETH_P_ALL)?;
        let state = if self.link.watch() {
            RxState::Live
        } else {
            RxState::Down
        };
        let clock = TscClock::get();
        Ok(Rx {
            scratch: vec![0; geometry.bytes() / ring.slots()].into(),
            ring,
            socket,
            next: 0,
            hardware_stamps: self.options.hardware_stamps,
            link: self.link.clone(),
            state,
            clock,
            watch_at: clock.now(),
        })
    }

    fn tx_queue(&self, config: &PortConfig) -> Result<Tx, Step> {
        let slots = self.options.ring.unwrap_or(config.ring);
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
            .map(|_| self.rx_queue(config))
            .collect::<Result<_, _>>()?;
        if let [first, others @ ..] = &rx[..]
            && !others.is_empty()
        {
            first.socket.fan_out(self.options.fan_out, None)?;
            for other in others {
                other
                    .socket
                    .fan_out(self.options.fan_out, Some(&first.socket))?;
            }
        }
        for queue in &rx {
            queue.socket.open_up()?;
        }
        let tx = (0..config.tx_queues)
            .map(|_| self.tx_queue(config))
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
            wire_time: true,
            recorded: false,
            kernel_backed: true,
        }
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        if self.options.hardware_stamps {
            self.enable_hardware_stamps()?;
        }
        let (rx, tx) = self.queues(config).map_err(|step| self.refused(step))?;
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

    fn link_is_up(&self) -> bool {
        self.link.is_up()
    }
}
