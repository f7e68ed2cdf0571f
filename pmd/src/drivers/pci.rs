//! Ports on PCI devices: the driver is found by what the device says it is.

use std::sync::Arc;

#[cfg(feature = "card")]
use super::card;
#[cfg(feature = "e1000e")]
use super::e1000e;
#[cfg(feature = "virtio")]
use super::virtio::pci as virtio;
#[cfg(feature = "igb")]
use super::{igb, igbvf};
use crate::bus::pci::{Address, Sysfs};
use crate::bus::vfio::{VfioDevice, VfioOptions};
use crate::bus::{Device, Ids};
use crate::driver::filter::{MULTICAST, PROMISC, UNICAST};
use crate::driver::{Description, Driver, Feature, SpecOption, Support, Target};
use crate::grant::MemoryGrant;
use crate::port::{PortError, bus_error};
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
            default: "1500; of virtio-net what the device says",
            text: "longest packet that a frame carries",
        },
        PROMISC,
        UNICAST,
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
        #[cfg(feature = "igb")]
        igb::options::VLANS,
        #[cfg(feature = "igb")]
        igb::options::VFS,
        #[cfg(feature = "igb")]
        igb::options::VF_MACS,
        #[cfg(feature = "igb")]
        igb::options::VF_VLANS,
        #[cfg(feature = "card")]
        card::options::IP,
        #[cfg(feature = "card")]
        card::options::MAC,
        #[cfg(feature = "card")]
        card::options::LOOP,
        #[cfg(feature = "card")]
        card::options::HOLD,
        #[cfg(feature = "card")]
        card::options::WAKE_EVENTS,
        #[cfg(feature = "card")]
        card::options::WAKE_HOLD,
        #[cfg(feature = "card")]
        card::options::CLOCK,
        #[cfg(feature = "card")]
        card::options::CLOCK_TOLERANCE,
        #[cfg(feature = "card")]
        card::options::PRESET,
    ],
    features: &[
        (Feature::Receive, Support::Yes),
        (Feature::Send, Support::Yes),
        (
            Feature::MultiQueue,
            Support::Partly(
                "82574L: 2 each way; 82576: 8, fewer with virtual functions; a virtual function: 1; \
                 virtio-net: as many as it has; Pollux's card: one for each of its ports",
            ),
        ),
        (
            Feature::Steering,
            Support::Partly("by the device: addresses, and ports where it looks at them"),
        ),
        (Feature::Link, Support::Yes),
        (
            Feature::Speed,
            Support::Partly("Intel's, and Pollux's card"),
        ),
        (Feature::Mtu, Support::Yes),
        (Feature::Jumbo, Support::Yes),
        (
            Feature::Promiscuous,
            Support::Partly("not a virtual function of an 82576"),
        ),
        (Feature::Multicast, Support::Yes),
        (Feature::Statistics, Support::Yes),
        (
            Feature::ChecksumOffload,
            Support::Partly("Intel's; virtio-net, where it offers that"),
        ),
        (
            Feature::ZeroCopyRx,
            Support::Partly("Pollux's card copies whole frames once"),
        ),
        (Feature::ZeroCopyTx, Support::Yes),
        (
            Feature::Needs,
            Support::Partly(
                "the device bound to vfio-pci (`scripts/bind`), its group's file, and memory that \
                 may be locked",
            ),
        ),
    ],
    check,
    ..Description::new("pci", "a NIC of this machine, by VFIO")
};

/// Options that are about the device's way to the process, whatever its driver.
const OF_THE_BUS: [&str; 2] = ["noiommu", "vf_token"];

/// Looks at a device and takes it over. Waits for nothing but the device.
type Open<D> = fn(Arc<D>, &PortSpec, MemoryGrant) -> Result<Box<dyn Driver>, PortError>;

/// A driver for one kind of device. A driver's own module, which `drivers/mod.rs` names, has
/// `pub(super) fn open<D: Device>(device: Arc<D>, spec: &PortSpec, grant: MemoryGrant)` and a line in
/// [`Entry::ALL`]; its options are among those of [`DESCRIPTION`], whose features speak of it too:
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
        #[cfg(feature = "e1000e")]
        Entry {
            vendor: 0x8086,
            device: 0x10d3,
            name: "82574L",
            options: e1000e::OPTIONS,
            open: e1000e::open,
        },
        #[cfg(feature = "igb")]
        Entry {
            vendor: 0x8086,
            device: 0x10c9,
            name: "82576",
            options: igb::OPTIONS,
            open: igb::open,
        },
        #[cfg(feature = "igb")]
        Entry {
            vendor: 0x8086,
            device: 0x10ca,
            name: "virtual function of an 82576",
            options: igbvf::OPTIONS,
            open: igbvf::open,
        },
        #[cfg(feature = "card")]
        Entry {
            vendor: card::VENDOR,
            device: card::DEVICE,
            name: "Pollux's card",
            options: card::options::OPTIONS,
            open: card::open,
        },
        #[cfg(feature = "virtio")]
        virtio_net(0x1041, "virtio-net"),
        #[cfg(feature = "virtio")]
        virtio_net(0x1000, "virtio-net, transitional"),
    ];

    fn find(ids: Ids, spec: &PortSpec) -> Result<&'static Self, PortError> {
        let is_it = |entry: &&Self| (entry.vendor, entry.device) == (ids.vendor, ids.device);
        let found = Self::ALL.iter().find(is_it);
        found.ok_or_else(|| {
            let address = spec.target().unwrap_or_default();
            let dpdk = if cfg!(feature = "dpdk") {
                format!("; where DPDK has a driver for it, it is the port dpdk:{address}")
            } else {
                String::new()
            };
            let known = Self::known();
            PortError::Device {
                port: spec.to_string(),
                what: format!(
                    "no driver for {ids}; there are drivers for {known}; if it was bound for a \
                     program, `pollux unbind {address}` gives it back to the kernel{dpdk}"
                ),
            }
        })
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
#[cfg(feature = "virtio")]
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
    #[cfg(feature = "igb")]
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

pub(crate) fn open(spec: &PortSpec, grant: MemoryGrant) -> Result<Box<dyn Driver>, PortError> {
    let address = address(spec)?;
    // Before anybody binds it in vain.
    if let Some(function) = Sysfs::default().function(address) {
        Entry::<VfioDevice>::find(function.ids, spec)?;
    }
    let device = VfioDevice::open(address, &options(spec)?, grant);
    let device = device.map_err(bus_error(&spec.to_string()))?;
    hand_over(Arc::new(device), spec, grant)
}

/// Has the device's driver take it over.
fn hand_over<D: Device>(
    device: Arc<D>,
    spec: &PortSpec,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let entry = Entry::<D>::find(device.ids(), spec)?;
    let options = [&OF_THE_BUS, entry.options].concat();
    spec.expect_options_of(entry.name, &options)?;
    (entry.open)(device, spec, grant)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::bus::fake::{FakeDevice, Model, World, grant};

    /// A device that nobody has a driver for.
    struct Stranger;

    impl Model for Stranger {
        fn ids(&self) -> Ids {
            Ids {
                vendor: 0x1234,
                device: 0x5678,
                ..Ids::default()
            }
        }

        fn bars(&self) -> [usize; 6] {
            [0; 6]
        }

        fn read(&mut self, _: &mut World, _: u8, _: usize, _: usize) -> u32 {
            0
        }

        fn write(&mut self, _: &mut World, _: u8, _: usize, _: usize, _: u32) {}

        fn reset(&mut self, _: &mut World) {}
    }

    fn checked(text: &str) -> Result<PortSpec, SpecError> {
        let spec: PortSpec = text.parse()?;
        DESCRIPTION.check(&spec)?;
        Ok(spec)
    }

    #[test]
    fn specs_name_a_device_and_how_it_is_had() {
        let spec = checked("pci:03:00.0,noiommu").unwrap();
        assert_eq!(address(&spec).unwrap().to_string(), "0000:03:00.0");
        assert!(options(&spec).unwrap().no_iommu);
        let token = "vf_token=00112233-4455-6677-8899-aabbccddeeff";
        let spec = checked(&format!("pci:0000:03:00.0,{token},mtu=9000")).unwrap();
        assert!(options(&spec).unwrap().vf_token.is_some());
        assert!(!options(&spec).unwrap().no_iommu);
        for (text, said) in [
            (
                "pci",
                "pci needs the address of a device, as in pci:0000:03:00.0",
            ),
            (
                "pci:eth0",
                "`eth0` is no valid address: DOMAIN:BUS:DEVICE.FUNCTION",
            ),
            ("pci:03:00.0,vf_token=7", "`7` is no valid vf_token: a UUID"),
            ("pci:03:00.0,mtu=1", "a number of 68 to 65535"),
            ("pci:03:00.0,noiommu=yes", "on or off"),
        ] {
            let error = checked(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_stranger_is_told_who_is_known_and_what_to_do() {
        let spec = checked("pci:03:00.0").unwrap();
        let error = hand_over(Arc::new(FakeDevice::new(Stranger)), &spec, grant());
        let error = error.err().unwrap().to_string();
        let known = "no driver for 1234:5678; there are drivers for 8086:10d3 (82574L), ";
        assert!(error.contains(known), "{error}");
        assert!(error.contains("`pollux unbind 03:00.0`"), "{error}");
        let names_dpdk = error.ends_with("it is the port dpdk:03:00.0");
        assert_eq!(names_dpdk, cfg!(feature = "dpdk"), "{error}");
    }

    #[test]
    fn what_is_not_there_is_no_port() {
        let spec = checked("pci:ffff:ff:1f.7").unwrap();
        let error = open(&spec, grant()).err().unwrap().to_string();
        assert!(
            error.starts_with("port pci:ffff:ff:1f.7: ffff:ff:1f.7: there is no such PCI device"),
            "{error}"
        );
    }
}
