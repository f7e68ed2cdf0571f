//! AF_XDP driver: a Linux network interface that bypasses most of the kernel, which keeps the NIC.
//!
//! An XDP program on the interface passes frames to an XDP socket on each of the NIC's queues, and
//! the kernel writes them into buffers of the port's own pool. The pool's memory is the UMEM of the
//! sockets. All queues share it, since a buffer that one queue has received may be sent by another.
//! Where the NIC can access that memory, nothing is copied (`zerocopy`); else the kernel copies
//! once in each direction. Frames are sent from their buffers.
//!
//! Program, sockets and maps are created through bpf(2) and setsockopt(2) alone; they end with the
//! last queue, in that order, or with the process. Ports of one process on one interface, each with
//! its own queues, share the program (`redirect.rs`). Buffers that the kernel still holds at the
//! end are quarantined until it has released them (`quarantine.rs`).
//!
//! Frames of NIC queues that the port does not use pass to the kernel. Frames for which the kernel
//! has no buffer are [`Cause::NoMbuf`](crate::Cause::NoMbuf), frames that arrive faster than they
//! are polled [`Cause::RingFull`](crate::Cause::RingFull), and frames that the program drops
//! (`other=drop`) [`Cause::NotForUs`](crate::Cause::NotForUs). There are no time stamps: XDP
//! supports them only by programs written for one NIC. A VLAN tag that the NIC removes from frames
//! is lost, since XDP does not report it: `ethtool -K IF rxvlan off`.

mod abi;
mod attachment;
mod bpf;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
#[path = "../../../tests/hostile/af_xdp.rs"]
pub mod hostile;
mod options;
mod patience;
mod program;
mod quarantine;
mod redirect;
mod ring;
mod rx;
mod socket;
mod start;
mod steer;
mod tx;
mod umem;

use std::sync::{Arc, Weak};
use std::time::Duration;

use self::attachment::Attachment;
use self::options::{OPTIONS, Options};
use self::quarantine::UmemQuarantine;
use self::start::Setup;
use self::umem::Umem;
use crate::driver::flow::FlowRule;
use crate::driver::{
    Capabilities, Description, Driver, Feature, Link, QueueList, Queues, RxDriver, Statistics,
    Support, Target, TxDriver,
};
use crate::drivers::interface::{Control, Interface, View, Watch, holder};
use crate::drivers::step::Step;
use crate::port::{PortConfig, PortError, QueueSupport};
use crate::spec::PortSpec;

pub(crate) const DESCRIPTION: Description = Description {
    target: Some(Target {
        form: "IF",
        what: "an interface",
        example: "eth0",
    }),
    options: OPTIONS,
    features: &[
        (Feature::Receive, Support::Yes),
        (Feature::Send, Support::Yes),
        (
            Feature::MultiQueue,
            Support::Partly("as many as the NIC has"),
        ),
        (
            Feature::Steering,
            Support::Partly("by the NIC: by its hash, and by UDP port over IPv4 (option)"),
        ),
        (Feature::Link, Support::Yes),
        (Feature::Speed, Support::Partly("if the NIC reports it")),
        (Feature::Jumbo, Support::Partly("since Linux 6.6")),
        (Feature::Promiscuous, Support::Yes),
        (Feature::Multicast, Support::Yes),
        (
            Feature::Statistics,
            Support::Partly(
                "of the interface and of each socket; `quarantined_buffers` counts buffers of \
                 ended queues that the kernel has not released: a child process has a copy of a \
                 socket, or another program has bound the queue. They return to their pool when a \
                 later start of the port binds the queue again, and are lost when the port is \
                 closed before",
            ),
        ),
        (
            Feature::HardwareStamps,
            Support::NotOffered(
                "the kernel offers them to XDP programs that call the NIC's driver (Linux 6.3, few \
                 drivers), and this one only redirects; use `af_packet`",
            ),
        ),
        (
            Feature::ZeroCopyRx,
            Support::Partly("if the NIC's driver supports it, with buffers of 2048 or 4096 B"),
        ),
        (
            Feature::ZeroCopyTx,
            Support::Partly("if the NIC's driver supports it, with buffers of 2048 or 4096 B"),
        ),
        (Feature::KernelBacked, Support::Yes),
        (
            Feature::Needs,
            Support::Partly("CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF; Linux 5.11"),
        ),
    ],
    check: |spec| Options::parse(spec).map(drop),
    opening_only_looks: true,
    ..Description::new("af_xdp", "a network interface past most of the kernel")
};

/// Maximum number of queues for a NIC whose driver does not report it: the kernel will refuse
/// others.
const MAX_QUEUES: u16 = 64;

struct AfXdp {
    spec: String,
    options: Options,
    interface: Interface,
    /// Receive and transmit queues, from the port's first one on.
    queues: (u16, u16),
    /// Number of receive queues of the NIC, if its driver reports it.
    receiving: Option<u16>,
    link: Arc<Watch>,
    view: View,
    /// State of the queues, while they exist.
    shared: Weak<Attachment>,
    quarantine: Arc<UmemQuarantine>,
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
    let reported = steer::queues(&control, &interface);
    let all = reported.unwrap_or((MAX_QUEUES, MAX_QUEUES));
    let queues = (
        all.0.saturating_sub(options.first_queue()),
        all.1.saturating_sub(options.first_queue()),
    );
    if queues == (0, 0) {
        let (name, first) = (&interface.name, options.first_queue());
        let what = format!(
            "{name} has {} queues to receive and {} to send, so none from {first} on",
            all.0, all.1
        );
        return Err(device(what));
    }
    let view = View::new(&interface).map_err(|error| device(error.to_string()))?;
    let link = Arc::new(Watch::new(control, interface.clone()));
    let port = spec.to_string();
    let quarantine = UmemQuarantine::new(&port, &interface.name, interface.index);
    Ok(Box::new(AfXdp {
        spec: port,
        options,
        interface,
        queues,
        receiving: reported.map(|(receiving, _)| receiving),
        link,
        view,
        shared: Weak::new(),
        quarantine: Arc::new(quarantine),
    }))
}

impl AfXdp {
    fn umem(&self, config: &PortConfig) -> Result<Umem, PortError> {
        let device = |what| PortError::Device {
            port: self.spec.clone(),
            what,
        };
        let umem = Umem::new(&config.pool).map_err(device)?;
        if self.options.mode == libc::XDP_ZEROCOPY && !umem.is_aligned() {
            return Err(device(format!(
                "mode=zerocopy needs buffers of 2048 or 4096 B, headroom included, and the \
                 pool's have {} B; set another data_room, or mode=copy",
                config.pool.stride()
            )));
        }
        Ok(umem)
    }

    /// The program that has an XDP program on the interface, as far as it can be determined.
    fn holder(&self) -> Option<String> {
        let interface = format!("ifindex:\t{}", self.interface.index);
        holder(&["link_type:\txdp", &interface], 0)
    }

    /// The remedy if another program has the interface, or a queue of it.
    fn taken(&self, queue: bool) -> String {
        match (queue, self.holder()) {
            (true, Some(who)) => format!("{who} has it: stop that, or take another queue="),
            (true, None) => {
                "another XDP socket is bound to it; stop that program, or take another \
                             queue="
                    .into()
            }
            (false, Some(who)) => format!(
                "{who} has its XDP program there, and an interface has one: stop that, or have one \
                 program open all the queues"
            ),
            (false, None) => format!(
                "another XDP program is attached; `ip link set dev {} xdp off` detaches it",
                self.interface.name
            ),
        }
    }

    /// Reports queues whose frames are not received. If `queue=` selects queues, the others may
    /// belong to another port.
    fn tell_unpolled(&self, rx_queues: u16) {
        let unpolled = Driver::unpolled(self);
        if unpolled.is_empty() || rx_queues == 0 {
            return;
        }
        let (name, all) = (&self.interface.name, self.receiving.unwrap_or_default());
        let text = format!(
            "{}: {} of the {all} queues of {name} are not received, {}: their frames go to the \
             kernel",
            self.spec,
            unpolled.len(),
            QueueList(&unpolled)
        );
        if self.options.queue.is_none() {
            tracing::warn!(
                "{text}; ask for {all} queues, or have the NIC use {rx_queues} (`ethtool -L {name} \
                 combined {rx_queues}`)"
            );
        } else {
            tracing::info!("{text}");
        }
    }

    fn refused(&self, (what, error): Step) -> PortError {
        let taken = match error.raw_os_error() {
            Some(libc::EBUSY) => Some(self.taken(what.contains("queue"))),
            Some(libc::EEXIST) => Some(self.taken(false)),
            _ => None,
        };
        let hint = match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "AF_XDP needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: run as root, or once `sudo \
                 setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM`"
            }
            Some(libc::ENOBUFS | libc::ENOMEM) => {
                "locked memory is limited: raise it with `ulimit -l unlimited`, or request a \
                 smaller pool or ring="
            }
            Some(libc::ERANGE) => {
                "the MTU is too large for XDP in this driver; lower it, or use \
                 attach=skb"
            }
            Some(libc::ENOSPC) => {
                "this driver wants as many receive queues as the other end has to send (`ethtool \
                 -L`); or use attach=skb"
            }
            Some(libc::EOPNOTSUPP) if what.contains("bind") => {
                "the NIC's driver has no zero copy; use mode=copy"
            }
            Some(libc::EOPNOTSUPP) if what.contains("steer") => {
                "the NIC has no classifier for UDP ports; leave steer= out, and let the receiving \
                 program sort"
            }
            Some(libc::EOPNOTSUPP) => "the NIC's driver has no place for it; use attach=skb",
            Some(libc::EINVAL) if what.contains("bind") => {
                "there is no such queue, or, with an MTU longer than a buffer, a kernel before 6.6"
            }
            Some(libc::ENODEV | libc::ENXIO) => {
                "the interface has disappeared since the port was \
                                                 opened"
            }
            _ => "",
        };
        PortError::System {
            port: self.spec.clone(),
            what: format!("{what} on {}", self.interface.name),
            hint: taken.unwrap_or_else(|| hint.into()),
            error,
        }
    }
}

impl Driver for AfXdp {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: self.queues.0,
            max_tx_queues: self.queues.1,
            mac: Some(self.interface.mac),
            max_frame: self.interface.mtu + 14,
            checksum_offload: false,
            wire_time: false,
            recorded: false,
            kernel_backed: true,
        }
    }

    fn queue_support(&self) -> QueueSupport {
        QueueSupport::RING
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        self.umem(config)?;
        match FlowRule::refusal(&self.options.steer, config.rx_queues) {
            Some((asked, offered)) => Err(PortError::Unsupported {
                port: self.spec.clone(),
                asked,
                offered,
            }),
            None => Ok(()),
        }
    }

    fn takes_flow_rules(&self) -> bool {
        true
    }

    /// All queues of the NIC, unless `queue=` selects some.
    fn spread(&self) -> u16 {
        match self.options.queue {
            None => self.receiving.unwrap_or(1),
            Some(_) => 1,
        }
    }

    fn unpolled(&self) -> Vec<u16> {
        let shared = self.shared.upgrade().zip(self.receiving);
        shared.map_or_else(Vec::new, |(shared, all)| shared.unpolled(all))
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        let umem = self.umem(config)?;
        // Queues of earlier starts would not be probed otherwise.
        self.quarantine.settle(Duration::ZERO);
        let setup = Setup {
            options: &self.options,
            interface: &self.interface,
            config,
            link: &self.link,
            umem: &umem,
            quarantine: &self.quarantine,
        };
        let started = setup.start().map_err(|step| self.refused(step))?;
        let name = &self.interface.name;
        if started.shared.socket(0).is_zero_copy() {
            tracing::info!("{name}: zero copy");
        } else if self.options.mode == 0 && !umem.is_aligned() {
            tracing::info!(
                "{name}: the kernel copies; a NIC that could do without needs buffers of 2048 or \
                 4096 B, headroom included, and these have {} B (data_room)",
                config.pool.stride()
            );
        } else {
            tracing::info!("{name}: the kernel copies");
        }
        self.shared = Arc::downgrade(&started.shared);
        self.tell_unpolled(config.rx_queues);
        Ok(Queues {
            rx: started
                .rx
                .into_iter()
                .map(|queue| Box::new(queue) as Box<dyn RxDriver>)
                .collect(),
            tx: started
                .tx
                .into_iter()
                .map(|queue| Box::new(queue) as Box<dyn TxDriver>)
                .collect(),
        })
    }

    fn link(&self) -> Link {
        self.view.link()
    }

    /// Counters of the interface, which other programs may use too, then those of each queue's
    /// socket, and the number of buffers of ended queues that the kernel may still hold.
    fn statistics(&self) -> Statistics {
        let mut statistics = self.view.statistics();
        if let Some(shared) = self.shared.upgrade() {
            for (i, counts) in shared.statistics() {
                let mut add = |name: &str, value| {
                    statistics.push((format!("socket{i}_{name}").into(), value));
                };
                add("rx_dropped", counts.dropped);
                add("rx_ring_full", counts.ring_full);
                add("fill_ring_empty", counts.fill_empty);
                add("invalid_descs", counts.invalid);
            }
        }
        let quarantined = self.quarantine.buffers() as u64;
        statistics.push(("quarantined_buffers".into(), quarantined));
        statistics
    }
}
