//! Options of the port spec.

use std::path::PathBuf;

use crate::driver::SpecOption;
use crate::net::MacAddr;
use crate::spec::{PortSpec, SpecError};

/// Maximum number of queue pairs: the protocol numbers rings with 8 bits.
pub(super) const MAX_PAIRS: u16 = 128;

/// The target is DPDK's `iface` or `path`; the other names are those of DPDK and QEMU.
pub(super) const OPTIONS: &[SpecOption] = &[
    SpecOption {
        key: "role",
        values: "driver|device",
        default: "driver",
        text: "the side of the rings: `driver`, the front end, shares its memory (virtio-user); \
               `device`, the back end, accesses that of the peer (vhost)",
    },
    SpecOption {
        key: "server",
        values: "on|off",
        default: "off",
        text: "listen at the path, for one peer at a time, instead of connecting to it",
    },
    SpecOption {
        key: "queues",
        values: "N",
        default: "1",
        text: "most queues each way, up to 128",
    },
    SpecOption {
        key: "ring",
        values: "ENTRIES",
        default: "as configured",
        text: "descriptors in each ring, a power of two; only the driver chooses",
    },
    SpecOption {
        key: "packed",
        values: "on|off",
        default: "on",
        text: "packed rings if the peer supports them, else split ones",
    },
    SpecOption {
        key: "in-order",
        values: "on|off",
        default: "on",
        text: "descriptors are used in order, if the peer agrees",
    },
    SpecOption {
        key: "mergeable",
        values: "on|off",
        default: "on",
        text: "a received frame may take several buffers, if the peer agrees; needed for frames \
               that are longer than a buffer",
    },
    SpecOption {
        key: "mac",
        values: "MAC",
        default: "derived from the path and the role",
        text: "address of this end",
    },
    SpecOption {
        key: "mtu",
        values: "BYTES",
        default: "1500",
        text: "longest payload of a frame; reported to a device that negotiates it",
    },
    SpecOption {
        key: "sealed",
        values: "on|off",
        default: "off",
        text: "refuse a driver whose memory files can be truncated (DPDK's cannot be sealed); \
               without it, truncation raises a bus error that is caught and ends the session",
    },
];

/// The port's end of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The front end: it shares its memory, and is the driver of the rings.
    Driver,
    /// The back end: it maps the memory of the front end, and is the device.
    Device,
}

#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
pub(super) struct Options {
    pub(super) path: PathBuf,
    pub(super) role: Role,
    pub(super) server: bool,
    pub(super) queues: u16,
    pub(super) ring: Option<usize>,
    pub(super) packed: bool,
    pub(super) in_order: bool,
    pub(super) mergeable: bool,
    pub(super) mac: Option<MacAddr>,
    pub(super) mtu: u16,
    pub(super) sealed: bool,
}

impl Options {
    pub(super) fn parse(spec: &PortSpec) -> Result<Self, SpecError> {
        let ring = spec.number("ring", 2..=1 << 15)?;
        if let Some(size) = ring
            && !size.is_power_of_two()
        {
            let expected = "a power of two, 2 to 32768";
            return Err(spec.bad_value("ring", &size.to_string(), expected));
        }
        // 68 is the minimum by virtio 1.2, section 5.1.4.1.
        let mtu = spec.number("mtu", 68..=usize::from(u16::MAX))?;
        let queues = spec.number("queues", 1..=usize::from(MAX_PAIRS))?;
        Ok(Self {
            path: spec.target().unwrap_or_default().into(),
            role: spec.choice("role", [("driver", Role::Driver), ("device", Role::Device)])?,
            server: spec.switch("server", false)?,
            queues: queues.unwrap_or(1) as u16,
            ring,
            packed: spec.switch("packed", true)?,
            in_order: spec.switch("in-order", true)?,
            mergeable: spec.switch("mergeable", true)?,
            mac: spec.station("mac")?,
            mtu: mtu.unwrap_or(1500) as u16,
            sealed: spec.switch("sealed", false)?,
        })
    }

    /// The port's own address: the option's, or one derived from the path and the role, so that it
    /// is the same at each start and differs from that of the other end.
    pub(super) fn mac(&self) -> MacAddr {
        let path = self.path.as_os_str().as_encoded_bytes();
        self.mac
            .unwrap_or_else(|| MacAddr::made_of(path, self.role as u64))
    }
}
