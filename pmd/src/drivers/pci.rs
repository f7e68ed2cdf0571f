//! Ports on PCI devices: the driver is found by what the device says it is.

use std::sync::Arc;

use super::igb::options::{VF_MACS, VF_VLANS, VFS, VLANS};
use super::virtio::pci as virtio;
use super::{e1000e, igb, igbvf};
use crate::bus::pci::Address;
use crate::bus::vfio::{VfioDevice, VfioOptions};
use crate::bus::{BusError, Device, Ids};
use crate::driver::filter::{MULTICAST, PROMISC};
use crate::driver::{Description, Driver, SpecOption, Target};
use crate::port::PortError;
use crate::spec::{PortSpec, SpecError};

pub(crate) const DESCRIPTION: Description = Description {
    target: Some(Target {
        form: "ADDRESS",
        what: "the address of a device",
        example: "0000:03:00.0",
    }),
    options: &[
        SpecOption {
            key: "noiommu",
            values: "on|off",
            default: "off",
            text: "accept that no IOMMU holds the device back, which can then write anywhere in \
                   memory",
        },
        SpecOption {
            key: "vf_token",
            values: "UUID",
            default: "none",
            text: "the token of a virtual function whose physical function a program has",
        },
        SpecOption {
            key: "mtu",
            values: "BYTES",
            default: "1500",
            text: "longest packet that a frame carries",
        },
        PROMISC,
        SpecOption {
            text: "multicast addresses to receive",
            ..MULTICAST
        },
        SpecOption {
            key: "descriptors",
            values: "extended|legacy",
            default: "extended",
            text: "the format of receive descriptors",
        },
        VLANS,
        VFS,
        VF_MACS,
        VF_VLANS,
    ],
    check,
    ..Description::new("pci", "a NIC of this machine, by VFIO")
};

/// Options that are about the device's way to the process, whatever its driver.
const OF_THE_BUS: [&str; 2] = ["noiommu", "vf_token"];

/// Looks at a device and takes it over. Waits for nothing but the device.
type Open<D> = fn(Arc<D>, &PortSpec) -> Result<Box<dyn Driver>, PortError>;

/// A driver for one kind of device. A driver's own module has
/// `pub(super) fn open<D: Device>(device: Arc<D>, spec: &PortSpec)` and a line in [`Entry::ALL`]:
/// `Entry { vendor: 0x8086, device: 0x10d3, name: "82574L", options: &["mtu"], open: e1000e::open }`.
pub(crate) struct Entry<D> {
    vendor: u16,
    device: u16,
    /// What the device is called.
    name: &'static str,
    /// The options of [`DESCRIPTION`] that it has, beside those of the bus.
    options: &'static [&'static str],
    open: Open<D>,
}

impl<D: Device> Entry<D> {
    /// All drivers: a line for each device that one of them knows.
    const ALL: &'static [Self] = &[
        Entry {
            vendor: 0x8086,
            device: 0x10d3,
            name: "82574L",
            options: e1000e::OPTIONS,
            open: e1000e::open,
        },
        Entry {
            vendor: 0x8086,
            device: 0x10c9,
            name: "82576",
            options: igb::OPTIONS,
            open: igb::open,
        },
        Entry {
            vendor: 0x8086,
            device: 0x10ca,
            name: "virtual function of an 82576",
            options: igbvf::OPTIONS,
            open: igbvf::open,
        },
        virtio_net(0x1041, "virtio-net"),
        virtio_net(0x1000, "virtio-net, transitional"),
    ];

    fn find(ids: Ids) -> Option<&'static Self> {
        let is_it = |entry: &&Self| (entry.vendor, entry.device) == (ids.vendor, ids.device);
        Self::ALL.iter().find(is_it)
    }

    /// For messages: `8086:10d3 (82574L)`.
    fn known() -> String {
        let one = |entry: &Self| {
            let Self {
                vendor,
                device,
                name,
                ..
            } = entry;
            format!("{vendor:04x}:{device:04x} ({name})")
        };
        let all: Vec<_> = Self::ALL.iter().map(one).collect();
        all.join(", ")
    }
}

/// Virtio 1.2 sections 4.1.2 and 5.1.1.
const fn virtio_net<D: Device>(device: u16, name: &'static str) -> Entry<D> {
    Entry {
        vendor: 0x1af4,
        device,
        name,
        options: virtio::OPTIONS,
        open: virtio::open,
    }
}

/// The address in a spec that has been checked.
fn address(spec: &PortSpec) -> Result<Address, SpecError> {
    let target = spec.target().unwrap_or_default();
    target.parse().map_err(|_| {
        let expected = "DOMAIN:BUS:DEVICE.FUNCTION or BUS:DEVICE.FUNCTION, as in 0000:03:00.0 or \
                        03:00.0 (`pollux ports` lists those that there are)";
        spec.bad_value("address", target, expected)
    })
}

fn check(spec: &PortSpec) -> Result<(), SpecError> {
    address(spec)?;
    options(spec)?;
    igb::options::Options::of_functions(spec)?;
    // The longest packet that any of the drivers carries; each has a limit of its own.
    spec.number("mtu", 68..=65535).map(drop)
}

fn options(spec: &PortSpec) -> Result<VfioOptions, SpecError> {
    let token = |text: &str| {
        text.parse().map_err(|_| {
            let expected = "a UUID, as uuidgen makes it";
            spec.bad_value("vf_token", text, expected)
        })
    };
    Ok(VfioOptions {
        no_iommu: spec.switch("noiommu", false)?,
        vf_token: spec.option("vf_token").map(token).transpose()?,
    })
}

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Driver>, PortError> {
    let device = VfioDevice::open(address(spec)?, &options(spec)?);
    let device = device.map_err(bus_error(&spec.to_string()))?;
    hand_over(Arc::new(device), spec)
}

/// The error of a port whose device could not be had, or failed.
pub(crate) fn bus_error(port: &str) -> impl Fn(BusError) -> PortError {
    move |error| PortError::Bus {
        port: port.into(),
        error,
    }
}

/// Has the device's driver take it over.
fn hand_over<D: Device>(device: Arc<D>, spec: &PortSpec) -> Result<Box<dyn Driver>, PortError> {
    let ids = device.ids();
    let Some(entry) = Entry::<D>::find(ids) else {
        return Err(PortError::Device {
            port: spec.to_string(),
            what: format!(
                "there is no driver for {:04x}:{:04x}; there are drivers for {}",
                ids.vendor,
                ids.device,
                Entry::<D>::known()
            ),
        });
    };
    let options = [&OF_THE_BUS, entry.options].concat();
    spec.expect_options_of(entry.name, &options)?;
    (entry.open)(device, spec)
}
