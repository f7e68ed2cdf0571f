//! Any network device of a linked DPDK (feature `dpdk`), hardware or virtual.
//!
//! `dpdk:DEVICE`, where DEVICE is what DPDK calls devargs: a PCI address, or the name of a virtual
//! device, with the arguments of its driver behind it. In a spec `;` stands for the comma of DPDK:
//! `dpdk:0000:03:00.0`, `dpdk:net_null0`, `dpdk:net_af_packet0;iface=eth0;qpairs=2`.
//!
//! # DPDK's environment
//!
//! EAL starts with the first such port of a process, and does not end before the process does. By
//! itself it gets what the machine allows for: hugepages if 16 MiB of them are free and normal
//! pages otherwise (the rooms of buffers are our pool's, on pages as that has chosen them), no file
//! on disk, and the PCI bus only if the first port is on it, with the devices of ports alone.
//! `eal=` gives other arguments instead of these, with `+` between them and `;` for a comma, as in
//! `eal=--no-huge+-m+256+--no-pci`. Ports that are opened later give the same or none.
//!
//! EAL has no core and no thread of work of its own: poll loops are ours, and run where they were
//! put. The thread that opened the port keeps its CPUs. EAL's log goes to stderr, errors only. Some of
//! its drivers set variables of the environment as it starts, so the first port is to be opened before
//! other threads read them, or start programs.
//!
//! A thread is made known to DPDK when it first polls such a port, which takes a lock and memory
//! once; from then on DPDK keeps free buffers for it, up to 384 and a tenth of the pool.
//!
//! # Copies
//!
//! None: a frame is received into, and sent from, our pool's buffers, each of which has a twin by
//! which DPDK knows it (`twins.rs`). Where that cannot be the frame is copied once: sent frames of
//! another pool than the port's, chains for a device that sends none, received frames that are in
//! memory of the device's own (such as from a device that was given another port's frames). Devices
//! that take frames in memory of DPDK's own alone, `net_af_xdp` and `net_virtio_user`, are refused:
//! the drivers `af_xdp` and `vhost-user` do the same.
//!
//! # Losses
//!
//! In the ledger is what the device counts as lost on the way in: `imissed` as ring-full, `ierrors`
//! as device-error, `rx_nombuf` as no-mbuf where that loses frames, and those of its further counters
//! (xstats) that are in none of the three (`counters.rs` has their names). All further counters are
//! shown as the port's statistics.

mod arguments;
#[cfg(feature = "dpdk")]
mod control;
#[cfg(feature = "dpdk")]
mod counters;
#[cfg(feature = "dpdk")]
mod device;
#[cfg(feature = "dpdk")]
mod driver;
#[cfg(feature = "dpdk")]
mod eal;
#[cfg(feature = "dpdk")]
mod operations;
// Specs are checked in any build.
#[cfg_attr(not(feature = "dpdk"), allow(dead_code))]
mod options;
#[cfg(feature = "dpdk")]
mod reach;
#[cfg(feature = "dpdk")]
mod rx;
#[cfg(feature = "dpdk")]
mod stamps;
#[cfg(feature = "dpdk")]
mod start;
#[cfg(feature = "dpdk")]
mod steer;
#[cfg(feature = "dpdk")]
mod twins;
#[cfg(feature = "dpdk")]
mod tx;

use self::options::Options;
use crate::driver::steer::STEER;
use crate::driver::{Description, Feature, SpecOption, Support, Target, filter};
#[cfg(not(feature = "dpdk"))]
use crate::{driver::Driver, grant::MemoryGrant, port::PortError, spec::PortSpec};

#[cfg(feature = "dpdk")]
pub(crate) use self::driver::open;

pub(crate) const DESCRIPTION: Description = Description {
    target: Some(Target {
        form: "DEVICE",
        what: "a device of DPDK, `;` for the commas in its arguments",
        example: "net_af_packet0;iface=eth0",
    }),
    options: &[
        SpecOption {
            key: "eal",
            values: "ARG+ARG...",
            default: "by what the machine has",
            text: "arguments of DPDK's EAL, which starts with the first port; `;` for a comma",
        },
        SpecOption {
            key: "mtu",
            values: "BYTES",
            default: "the device's",
            text: "longest packet that a frame carries",
        },
        STEER,
        SpecOption {
            key: "timestamps",
            values: "none|hardware",
            default: "none",
            text: "who stamps frames; `hardware` is the clock of the device",
        },
        filter::PROMISC,
        filter::MULTICAST,
    ],
    features: &[
        (Feature::Receive, Support::Yes),
        (Feature::Send, Support::Yes),
        (Feature::MultiQueue, Support::Yes),
        (
            Feature::Steering,
            Support::Partly("by the device, as far as it can: hash, and UDP ports by option"),
        ),
        (
            Feature::Link,
            Support::Partly("changes that are seen when it is asked for"),
        ),
        (Feature::Speed, Support::Yes),
        (Feature::Mtu, Support::Yes),
        (
            Feature::Jumbo,
            Support::Partly("where the device has scatter, and refused where not"),
        ),
        (Feature::Promiscuous, Support::Yes),
        (Feature::Multicast, Support::Yes),
        (Feature::Statistics, Support::Yes),
        (
            Feature::HardwareStamps,
            Support::Partly("where the device has them"),
        ),
        (Feature::ZeroCopyRx, Support::Yes),
        (
            Feature::ZeroCopyTx,
            Support::Partly("frames of the port's own pool"),
        ),
        (
            Feature::KernelBacked,
            Support::Partly("where the device is"),
        ),
        (
            Feature::Needs,
            Support::Partly(
                "feature `dpdk`, libdpdk 22.11 or later; any device but `net_af_xdp` and \
                 `net_virtio_user`, which want DPDK's own memory: use `af_xdp` and `vhost-user`",
            ),
        ),
    ],
    check: |spec| Options::parse(spec).map(drop),
    ..Description::new("dpdk", "a device of DPDK")
};

/// Says what is missing.
#[cfg(not(feature = "dpdk"))]
pub(crate) fn open(spec: &PortSpec, _: MemoryGrant) -> Result<Box<dyn Driver>, PortError> {
    Err(PortError::Device {
        port: spec.to_string(),
        what: "this program was built without DPDK; build it with --features dpdk".into(),
    })
}
