//! DPDK driver (feature `dpdk`): any network device of a linked DPDK, hardware or virtual.
//!
//! `dpdk:DEVICE`, where DEVICE is DPDK's devargs: a PCI address, or the name of a virtual device,
//! followed by the arguments of its driver. In a spec `;` replaces DPDK's comma:
//! `dpdk:0000:03:00.0`, `dpdk:net_null0`, `dpdk:net_af_packet0;iface=eth0;qpairs=2`.
//!
//! # DPDK's environment
//!
//! EAL starts with the first such port of a process, and ends with the process. Its default
//! arguments depend on the machine: hugepages if 16 MiB of them are free and normal pages otherwise
//! (the data rooms of buffers belong to this crate's pool, on the pages that it has chosen), no
//! file on disk, and the PCI bus only if the first port is on it, with the devices of ports alone.
//! `eal=` replaces these arguments, separated by `+` and with `;` for a comma, as in
//! `eal=--no-huge+-m+256+--no-pci`. Ports that are opened later give the same arguments or none.
//!
//! EAL has no core and no worker thread of its own: the poll loops belong to the program, and run
//! where it has placed them. The thread that opened the port keeps its CPUs. EAL logs to stderr,
//! errors only. Some of its drivers set environment variables as EAL starts, so open the first port
//! before other threads read them, or start programs.
//!
//! A thread is registered with DPDK when it first polls such a port, which takes a lock and
//! allocates memory once; from then on DPDK caches free buffers for it, up to 384 and a tenth of
//! the pool.
//!
//! # Copies
//!
//! None: a frame is received into, and sent from, buffers of the port's pool, each of which has a
//! shadow mbuf that represents it in DPDK (`shadow.rs`). In the following cases the frame is copied
//! once: sent frames of another pool than the port's, chains for a device that supports none,
//! received frames in memory of the device (such as from a device that was given another port's
//! frames). Devices that accept frames only in DPDK's own memory, `net_af_xdp` and
//! `net_virtio_user`, are refused: the drivers `af_xdp` and `vhost-user` do the same.
//!
//! # Losses
//!
//! The ledger contains what the device counts as lost on reception: `imissed` as ring-full,
//! `ierrors` as device-error, `rx_nombuf` as no-mbuf where that loses frames, and those of its
//! additional counters (xstats) that are in none of the three (`counters.rs` has their names). All
//! other counters are shown as the port's statistics.

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
// Specs are validated in any build.
#[cfg_attr(not(feature = "dpdk"), allow(dead_code))]
mod options;
#[cfg(feature = "dpdk")]
mod reach;
#[cfg(feature = "dpdk")]
mod rx;
#[cfg(feature = "dpdk")]
mod shadow;
#[cfg(feature = "dpdk")]
mod stamps;
#[cfg(feature = "dpdk")]
mod start;
#[cfg(feature = "dpdk")]
mod steer;
#[cfg(feature = "dpdk")]
mod tx;

use self::options::Options;
use crate::driver::flow::STEER;
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
            default: "as the machine allows",
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
            text: "source of time stamps; `hardware` is the clock of the device",
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
            Support::Partly("changes between two queries"),
        ),
        (Feature::Speed, Support::Yes),
        (Feature::Mtu, Support::Yes),
        (
            Feature::Jumbo,
            Support::Partly("if the device has scatter, else refused"),
        ),
        (Feature::Promiscuous, Support::Yes),
        (Feature::Multicast, Support::Yes),
        (Feature::Statistics, Support::Yes),
        (
            Feature::HardwareStamps,
            Support::Partly("if the device has them"),
        ),
        (Feature::ZeroCopyRx, Support::Yes),
        (
            Feature::ZeroCopyTx,
            Support::Partly("frames of the port's own pool"),
        ),
        (
            Feature::KernelBacked,
            Support::Partly("if the device is kernel-backed"),
        ),
        (
            Feature::Needs,
            Support::Partly(
                "feature `dpdk`, libdpdk 22.11 or later; any device but `net_af_xdp` and \
                 `net_virtio_user`, which require DPDK's own memory: use `af_xdp` and `vhost-user`",
            ),
        ),
    ],
    check: |spec| Options::parse(spec).map(drop),
    ..Description::new("dpdk", "a device of DPDK")
};

/// Reports the missing feature.
#[cfg(not(feature = "dpdk"))]
pub(crate) fn open(spec: &PortSpec, _: MemoryGrant) -> Result<Box<dyn Driver>, PortError> {
    Err(PortError::Device {
        port: spec.to_string(),
        what: "this program was built without DPDK; build it with --features dpdk".into(),
    })
}
