//! Typed builders of port specs: `Port::pci("0000:03:00.0").mtu(9000)` makes the spec
//! `pci:0000:03:00.0,mtu=9000`.
//!
//! A builder only makes a [`PortSpec`], so ports open alike from text and from a builder, and the
//! driver checks the values of both. docs/ports.md describes the options.
//!
//! ```
//! use pollux_pmd::builders::Fanout;
//! use pollux_pmd::{Port, PortSpec, Registry};
//!
//! let spec = Port::af_packet("eth0").ring(512).fanout(Fanout::Queue).promisc(true);
//! let text: PortSpec = "af_packet:eth0,ring=512,fanout=queue,promisc=on".parse()?;
//! assert_eq!(PortSpec::from(spec), text);
//!
//! let port = Port::null().size(0).open(&Registry::builtin())?;
//! assert_eq!(port.spec(), "null:size=0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod values;

use std::fmt::Display;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::Path;

use pollux_mempool::time::Ns;

use crate::driver::filter::Multicast;
use crate::driver::flow::FlowRule;
use crate::driver::rss::{RssKey, RssTable};
use crate::drivers::rps::RPS;
use crate::net::MacAddr;
use crate::port::{Port, PortError, Probed};
use crate::registry::Registry;
use crate::spec::PortSpec;

pub use values::{
    Attach, Checksums, Descriptors, Fanout, OtherFrames, Pace, Role, Stamps, XdpMode,
};
use values::{groups, list, on_off, range};

macro_rules! builders {
    ($(
        $(#[$about:meta])*
        $builder:ident {
            $($(#[$option:meta])* $method:ident($value:ident: $type:ty) $key:literal = $text:expr;)*
        }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[must_use]
        pub struct $builder(PortSpec);

        impl $builder {
            $(
                $(#[$option])*
                pub fn $method(mut self, $value: $type) -> Self {
                    self.0.set_option($key, $text);
                    self
                }
            )*

            /// Receive queues in software, over which flows are distributed.
            pub fn rps(mut self, queues: u16) -> Self {
                self.0.set_option(RPS.key, queues.to_string());
                self
            }

            /// The spec so far.
            #[must_use]
            pub fn spec(&self) -> &PortSpec {
                &self.0
            }

            /// Opens the port.
            ///
            /// # Errors
            /// As [`Registry::open`].
            pub fn open(&self, registry: &Registry) -> Result<Port<Probed>, PortError> {
                registry.open_spec(&self.0)
            }
        }

        impl From<$builder> for PortSpec {
            fn from(builder: $builder) -> Self {
                builder.0
            }
        }
    )*};
}

builders! {
    /// A `loopback` port.
    LoopbackBuilder {}

    /// A `null` port.
    NullBuilder {
        /// Length of received frames in bytes; 0: receives nothing.
        size(bytes: usize) "size" = bytes.to_string();
    }

    /// A `pcap` port.
    PcapBuilder {
        /// Capture file to receive from.
        rx(file: impl AsRef<Path>) "rx" = file.as_ref().display().to_string();
        /// Pcapng file to send into.
        tx(file: impl AsRef<Path>) "tx" = file.as_ref().display().to_string();
        /// Pace at which the capture is received.
        pace(pace: Pace) "pace" = pace.to_string();
        /// Number of passes over the capture; 0: endless.
        repeat(times: u64) "loop" = times.to_string();
    }

    /// An `af_packet` port.
    AfPacketBuilder {
        /// Frame length that a slot must hold, in bytes.
        frame(bytes: usize) "frame" = bytes.to_string();
        /// Slots in each queue's ring.
        ring(slots: usize) "ring" = slots.to_string();
        /// Distribution of frames over the receive queues.
        fanout(fanout: Fanout) "fanout" = fanout.to_string();
        /// Source of the frames' time stamps.
        timestamps(source: Stamps) "timestamps" = source.to_string();
        /// Receive frames for other hosts too.
        promisc(on: bool) "promisc" = on_off(on);
        /// Multicast addresses to receive.
        multicast(groups_: &Multicast) "multicast" = groups(groups_);
        /// `false` bypasses the traffic control of the interface.
        qdisc(on: bool) "qdisc" = on_off(on);
    }

    /// A `tap` port.
    TapBuilder {
        /// Address of the port.
        mac(mac: MacAddr) "mac" = mac.to_string();
        /// MTU of the interface, in bytes.
        mtu(bytes: usize) "mtu" = bytes.to_string();
        /// Set the interface up when the port is opened.
        up(on: bool) "up" = on_off(on);
        /// Keep the interface after the port is closed.
        persist(on: bool) "persist" = on_off(on);
    }

    /// A `unix` port.
    UnixBuilder {
        /// Address of the port.
        mac(mac: MacAddr) "mac" = mac.to_string();
        /// MTU in bytes.
        mtu(bytes: usize) "mtu" = bytes.to_string();
    }

    /// An `af_xdp` port.
    AfXdpBuilder {
        /// First of the NIC's queues.
        queue(first: u16) "queue" = first.to_string();
        /// Frames in each ring.
        ring(frames: usize) "ring" = frames.to_string();
        /// Zero-copy or copy mode of the socket.
        mode(mode: XdpMode) "mode" = mode.to_string();
        /// Mode of the XDP program: driver or generic.
        attach(place: Attach) "attach" = place.to_string();
        /// Destination of frames of protocols other than UDP.
        other(to: OtherFrames) "other" = to.to_string();
        /// UDP destination ports that the port receives.
        ports(ports: RangeInclusive<u16>) "ports" = range(&ports);
        /// Flow rules.
        steer(rules: &[FlowRule]) "steer" = list(rules);
        /// Call the kernel only when it requests a wake-up.
        wakeup(on: bool) "wakeup" = on_off(on);
        /// Time for which the kernel busy-polls the NIC per call, in microseconds.
        busy_poll(usec: u32) "busy-poll" = usec.to_string();
        /// Whether checksums are verified.
        checksums(checksums: Checksums) "checksums" = checksums.to_string();
        /// Receive frames for other hosts too.
        promisc(on: bool) "promisc" = on_off(on);
        /// Multicast addresses to receive.
        multicast(groups_: &Multicast) "multicast" = groups(groups_);
    }

    /// A `vhost-user` port.
    VhostUserBuilder {
        /// Role of the port: front end or back end.
        role(role: Role) "role" = role.to_string();
        /// Listen at the path.
        server(on: bool) "server" = on_off(on);
        /// Maximum number of queues in each direction.
        queues(queues: u16) "queues" = queues.to_string();
        /// Descriptors in each ring, a power of two.
        ring(entries: usize) "ring" = entries.to_string();
        /// Packed virtqueues, if the peer offers them.
        packed(on: bool) "packed" = on_off(on);
        /// In-order use of descriptors, if the peer offers it.
        in_order(on: bool) "in-order" = on_off(on);
        /// Mergeable receive buffers, if the peer offers them.
        mergeable(on: bool) "mergeable" = on_off(on);
        /// Address of the port.
        mac(mac: MacAddr) "mac" = mac.to_string();
        /// MTU in bytes.
        mtu(bytes: u16) "mtu" = bytes.to_string();
        /// Refuse a front end whose memory files are not sealed against truncation.
        sealed(on: bool) "sealed" = on_off(on);
    }

    /// A `pci` port. docs/ports.md lists the options of each device; others are refused.
    PciBuilder {
        /// Accept a device without an IOMMU.
        noiommu(on: bool) "noiommu" = on_off(on);
        /// Token of a virtual function: a UUID.
        vf_token(uuid: &str) "vf_token" = uuid.into();
        /// MTU in bytes.
        mtu(bytes: usize) "mtu" = bytes.to_string();
        /// Receive frames for other hosts too.
        promisc(on: bool) "promisc" = on_off(on);
        /// Unicast addresses to receive, besides the port's own.
        unicast(stations: &[MacAddr]) "unicast" = list(stations);
        /// Multicast addresses to receive.
        multicast(groups_: &Multicast) "multicast" = groups(groups_);
        /// Format of receive descriptors.
        descriptors(format: Descriptors) "descriptors" = format.to_string();
        /// Key of the RSS hash.
        rss_key(key: &RssKey) "rss-key" = key.to_string();
        /// Indirection table of RSS.
        rss_table(table: &RssTable) "rss-table" = table.to_string();
        /// VLANs whose tagged frames are received.
        vlans(ids: &[u16]) "vlans" = list(ids);
        /// Number of virtual functions.
        vfs(count: u8) "vfs" = count.to_string();
        /// Addresses of the virtual functions.
        vf_macs(macs: &[MacAddr]) "vf-macs" = list(macs);
        /// VLAN of each virtual function.
        vf_vlans(ids: &[u16]) "vf-vlans" = list(ids);
        /// IPv4 addresses of the card's ports.
        ip(addresses: &[Ipv4Addr]) "ip" = list(addresses);
        /// Address of the card's ports.
        mac(mac: MacAddr) "mac" = mac.to_string();
        /// Loops the card's ports back to each other behind their MACs.
        loop_back(on: bool) "loop" = on_off(on);
        /// Maximum time for which a frame waits for others.
        hold(time: Ns) "hold" = time.0.to_string();
        /// Number of frame buffers that wake a sleeping loop.
        wake_events(events: u16) "wake-events" = events.to_string();
        /// Maximum time from the first frame buffer to the wake-up.
        wake_hold(time: Ns) "wake-hold" = time.0.to_string();
        /// Period of the clock at the timing input, in nanoseconds.
        clock(period_ns: f64) "clock" = period_ns.to_string();
        /// Tolerated deviation of that clock.
        clock_tolerance(time: Ns) "clock-tolerance" = time.0.to_string();
        /// Time that a start of burst sets.
        preset(time: Ns) "preset" = time.0.to_string();
    }

    /// A `dpdk` port.
    DpdkBuilder {
        /// Arguments of DPDK's EAL.
        eal(arguments: &[&str]) "eal" = list(arguments).replace(',', ";");
        /// MTU in bytes.
        mtu(bytes: usize) "mtu" = bytes.to_string();
        /// Flow rules.
        steer(rules: &[FlowRule]) "steer" = list(rules);
        /// Source of the frames' time stamps: `None`, or the clock of the device.
        timestamps(source: Option<Stamps>) "timestamps" =
            source.map_or_else(|| "none".into(), |source| source.to_string());
        /// Receive frames for other hosts too.
        promisc(on: bool) "promisc" = on_off(on);
        /// Multicast addresses to receive.
        multicast(groups_: &Multicast) "multicast" = groups(groups_);
    }
}

impl Port<Probed> {
    /// A link inside the process.
    pub fn loopback() -> LoopbackBuilder {
        LoopbackBuilder(PortSpec::of("loopback", None))
    }

    /// A device without a link.
    pub fn null() -> NullBuilder {
        NullBuilder(PortSpec::of("null", None))
    }

    /// Capture files: give [`rx`](PcapBuilder::rx), [`tx`](PcapBuilder::tx) or both.
    pub fn pcap() -> PcapBuilder {
        PcapBuilder(PortSpec::of("pcap", None))
    }

    /// A network interface through the kernel.
    pub fn af_packet(interface: impl Into<String>) -> AfPacketBuilder {
        AfPacketBuilder(PortSpec::of("af_packet", Some(interface.into())))
    }

    /// A kernel interface whose other end is the port.
    pub fn tap(name: impl Into<String>) -> TapBuilder {
        TapBuilder(PortSpec::of("tap", Some(name.into())))
    }

    /// Datagrams between a socket at `path` and the peer's.
    pub fn unix(path: impl AsRef<Path>, peer: impl AsRef<Path>) -> UnixBuilder {
        let path = path.as_ref().display().to_string();
        let mut spec = PortSpec::of("unix", Some(path));
        spec.set_option("peer", peer.as_ref().display().to_string());
        UnixBuilder(spec)
    }

    /// A network interface with kernel bypass (XDP).
    pub fn af_xdp(interface: impl Into<String>) -> AfXdpBuilder {
        AfXdpBuilder(PortSpec::of("af_xdp", Some(interface.into())))
    }

    /// Shared memory with a process or virtual machine; a front end needs a
    /// [grant](Registry::granting).
    pub fn vhost_user(path: impl AsRef<Path>) -> VhostUserBuilder {
        let path = path.as_ref().display().to_string();
        VhostUserBuilder(PortSpec::of("vhost-user", Some(path)))
    }

    /// A NIC with a userspace driver, by its PCI address; it needs a [grant](Registry::granting).
    pub fn pci(address: impl Display) -> PciBuilder {
        PciBuilder(PortSpec::of("pci", Some(address.to_string())))
    }

    /// A device of DPDK, with its arguments; it needs a [grant](Registry::granting).
    pub fn dpdk(device: impl Into<String>) -> DpdkBuilder {
        let device = device.into().replace(',', ";");
        DpdkBuilder(PortSpec::of("dpdk", Some(device)))
    }
}
