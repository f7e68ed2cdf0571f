//! TAP driver: a network interface of the kernel whose other end is this port. The port receives
//! the frames that the kernel sends on the interface, and vice versa. For tests, and for traffic
//! with the kernel's network stack.
//!
//! The interface is created when the port is opened, and removed with it unless `persist=on`; an
//! existing one is used. Each queue is a file (the kernel's Documentation/networking/tuntap.rst,
//! section 3.3). A system call moves one frame directly into or out of pool buffers. Interface and
//! port are the two ends of a cable: they have different addresses, the port receives every frame,
//! and the interface's counters of sent frames are the port's received ones. An interface belongs
//! to one port: a second port or program that requests it is refused, since the kernel would
//! distribute the frames over both. Frames for which a queue of the kernel was full are
//! [`Cause::KernelDrop`](crate::Cause::KernelDrop), in the ledger of the first queue.

mod limits;
mod queue;
mod rx;
mod tx;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::limits::{ETHERNET, TAG};
use self::queue::Queue;
use self::rx::{Drops, Rx};
use self::tx::Tx;
use crate::driver::{
    Capabilities, Description, Driver, Feature, Link, Queues, SpecOption, Statistics, Support,
    Target,
};
use crate::drivers::interface::{Control, Interface, View, Watch, holder};
use crate::drivers::step::Step;
use crate::net::MacAddr;
use crate::port::{PortConfig, PortError};
use crate::spec::{PortSpec, SpecError};

pub(crate) const DESCRIPTION: Description = Description {
    target: Some(Target {
        form: "NAME",
        what: "a name for its interface",
        example: "pol0",
    }),
    options: &[
        SpecOption {
            key: "mac",
            values: "MAC",
            default: "derived from the interface's",
            text: "address of the port, not of the kernel's interface",
        },
        SpecOption {
            key: "mtu",
            values: "BYTES",
            default: "the interface's",
            text: "MTU of the interface, 68 to 65521",
        },
        SpecOption {
            key: "up",
            values: "on|off",
            default: "off",
            text: "set the interface up when the port is opened",
        },
        SpecOption {
            key: "persist",
            values: "on|off",
            default: "unchanged",
            text: "keep the interface when the port is closed",
        },
    ],
    features: &[
        (Feature::Receive, Support::Yes),
        (Feature::Send, Support::Yes),
        (
            Feature::MultiQueue,
            Support::Partly("64 each way, all for one port: a second port or program is refused"),
        ),
        (
            Feature::Steering,
            Support::Partly("by flow: to the queue that last sent in it"),
        ),
        (Feature::Link, Support::Yes),
        (Feature::Mtu, Support::Yes),
        (Feature::Jumbo, Support::Partly("up to 63 buffers")),
        (Feature::Promiscuous, Support::Partly("always")),
        (Feature::Multicast, Support::Partly("all, always")),
        (
            Feature::Statistics,
            Support::Partly("of the interface, as the kernel's end sees it"),
        ),
        (Feature::KernelBacked, Support::Yes),
        (
            Feature::Needs,
            Support::Partly("CAP_NET_ADMIN, or a persistent interface made for the user"),
        ),
    ],
    check: |spec| Options::parse(spec).map(drop),
    ..Description::new(
        "tap",
        "an interface of the kernel whose other end is the port",
    )
};

/// The kernel's MAX_TAP_QUEUES is 256.
const MAX_QUEUES: u16 = 64;

/// Time for which an ending program may still hold its queues: a child process that it is starting
/// has copies of them until it runs.
const PATIENCE: Duration = Duration::from_secs(1);

struct Options {
    name: String,
    mac: Option<MacAddr>,
    mtu: Option<usize>,
    up: bool,
    persist: Option<bool>,
}

impl Options {
    fn parse(spec: &PortSpec) -> Result<Self, SpecError> {
        let name = spec.target().unwrap_or_default();
        // The kernel's rules for names (dev_valid_name), without the `%` of names that it
        // completes.
        let odd = |c: char| c.is_whitespace() || "/:%\0".contains(c);
        if name.len() >= libc::IFNAMSIZ || [".", ".."].contains(&name) || name.contains(odd) {
            let expected = "an interface's name has at most 15 characters, and no space, / : or %";
            return Err(spec.bad_value("target", name, expected));
        }
        Ok(Self {
            name: name.into(),
            mac: spec.station("mac")?,
            mtu: spec.number("mtu", 68..=65_521)?,
            up: spec.switch("up", false)?,
            persist: match spec.option("persist") {
                None => None,
                Some(_) => Some(spec.switch("persist", false)?),
            },
        })
    }
}

struct Tap {
    spec: String,
    interface: Interface,
    mac: MacAddr,
    /// Keeps the interface when no queue does; receives no frames itself.
    keeper: Queue,
    control: Control,
    watch: Arc<Watch>,
    view: View,
}

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Driver>, PortError> {
    let options = Options::parse(spec)?;
    match Tap::new(spec, &options) {
        Ok(tap) => Ok(Box::new(tap)),
        Err(step) => Err(refused(&spec.to_string(), step)),
    }
}

fn refused(port: &str, (what, error): Step) -> PortError {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "it needs CAP_NET_ADMIN: run as root, or have an interface of your own by `sudo ip \
             tuntap add dev NAME mode tap multi_queue user $USER`"
        }
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            "the kernel lacks the driver: `sudo modprobe tun`"
        }
        Some(libc::EINVAL | libc::EBUSY) => {
            "an interface of that name exists and is not a multi-queue tap, or another program \
             uses it: choose another name, or `ip tuntap add dev NAME mode tap multi_queue`"
        }
        _ => "",
    };
    PortError::System {
        port: port.into(),
        what: what.into(),
        hint: hint.into(),
        error,
    }
}

impl Tap {
    fn new(spec: &PortSpec, options: &Options) -> Result<Self, Step> {
        let what = "cannot use the tap interface";
        let control = Control::new().map_err(|error| (what, error))?;
        // Checked before a queue of this port takes frames away from the owner.
        if let Ok(there) = Interface::find(&control, &options.name) {
            expect_queues(&there, 0).map_err(|error| (what, error))?;
        }
        let keeper = Queue::attach(&options.name)
            .map_err(|error| ("cannot make the tap interface", error))?;
        keeper.stand_aside().map_err(|error| (what, error))?;
        let find = || {
            Interface::find(&control, &options.name)
                .map_err(|error| (what, io::Error::other(error)))
        };
        let interface = find()?;
        // Another queue may have been attached in between.
        expect_queues(&interface, 1).map_err(|error| (what, error))?;
        let index = interface.index;
        if let Some(persist) = options.persist {
            keeper
                .persist(persist)
                .map_err(|error| ("cannot make the tap interface persistent", error))?;
        }
        if let Some(mtu) = options.mtu {
            control
                .set_mtu(index, mtu)
                .map_err(|error| ("cannot set the MTU", error))?;
        }
        if options.up {
            control
                .switch_on(index)
                .map_err(|error| ("cannot set the tap interface up", error))?;
        }
        let interface = find()?;
        let view = View::new(&interface).map_err(|error| (what, error))?;
        let for_loops = Control::new().map_err(|error| (what, error))?;
        Ok(Self {
            spec: spec.to_string(),
            mac: options.mac.unwrap_or_else(|| neighbour(interface.mac)),
            keeper,
            watch: Arc::new(Watch::new(for_loops, interface.clone())),
            control,
            view,
            interface,
        })
    }

    fn queues(&self, config: &PortConfig) -> Result<Queues, Step> {
        let what = "cannot open a queue of the tap interface";
        let failed = |error: io::Error| (what, error);
        // If the interface had gone, attaching a queue would create a new one; also in another
        // namespace.
        let here = Control::new().map_err(failed)?;
        let found = Interface::find(&here, &self.interface.name);
        if !found.is_ok_and(|found| found.index == self.interface.index) {
            return Err(failed(io::Error::other(
                "it has disappeared since the port was opened",
            )));
        }
        if let Err(error) = self
            .control
            .set_queue_len(self.interface.index, config.ring)
        {
            tracing::warn!("{}: its queues keep their length: {error}", self.spec);
        }
        let files = (0..config.rx_queues.max(config.tx_queues)).map(|number| {
            let queue = Queue::attach(&self.interface.name)?;
            if number >= config.rx_queues {
                queue.stand_aside()?;
            }
            Ok(Arc::new(queue))
        });
        let files: io::Result<Vec<_>> = files.collect();
        let files = files.map_err(failed)?;
        let mut drops = if config.rx_queues > 0 {
            Some(Drops::new(&self.interface).map_err(failed)?)
        } else {
            None
        };
        let mut queues = Queues {
            rx: Vec::new(),
            tx: Vec::new(),
        };
        for file in &files[..usize::from(config.rx_queues)] {
            let longest = self.interface.mtu + ETHERNET + TAG;
            let (file, watch) = (file.clone(), self.watch.clone());
            let rx = Rx::new(file, watch, &config.pool, longest, drops.take());
            queues.rx.push(Box::new(rx));
        }
        for file in &files[..usize::from(config.tx_queues)] {
            let tx = Tx::new(file.clone(), self.watch.clone(), self.interface.mtu);
            queues.tx.push(Box::new(tx));
        }
        Ok(queues)
    }
}

/// Refuses an interface that has more queues than the port's own, of another port or program: the
/// kernel would distribute the frames over both.
fn expect_queues(interface: &Interface, own: u32) -> io::Result<()> {
    let (view, began) = (View::new(interface)?, Instant::now());
    while view.tap_queues().is_some_and(|queues| queues > own) {
        if began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        let who = holder(&[&format!("iff:\t{}", interface.name)], own as usize);
        let who = who.unwrap_or_else(|| "another program".into());
        return Err(io::Error::other(format!(
            "{who} has it, and each would get a part of the frames; stop that, or choose another \
             name"
        )));
    }
    Ok(())
}

/// A local address (IEEE 802-2014 section 8.4) for the other end of the cable.
fn neighbour(mac: MacAddr) -> MacAddr {
    let [a, b, c, d, e, f] = mac.0;
    MacAddr([a | 2, b, c, d, e, f ^ 1])
}

impl Driver for Tap {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: MAX_QUEUES,
            max_tx_queues: MAX_QUEUES,
            mac: Some(self.mac),
            max_frame: self.interface.mtu + ETHERNET,
            checksum_offload: false,
            wire_time: false,
            recorded: false,
            kernel_backed: true,
        }
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        self.queues(config)
            .map_err(|step| refused(&self.spec, step))
    }

    fn stop(&mut self) -> Result<(), PortError> {
        // The interface may have gone; then nothing needs to be resumed.
        let _ = self.keeper.open_up();
        Ok(())
    }

    fn link(&self) -> Link {
        self.view.link()
    }

    fn statistics(&self) -> Statistics {
        self.view.statistics()
    }
}
