//! PCI ports: selects the driver by the device's IDs.

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
use crate::driver::rss::{RSS_KEY, RSS_TABLE, Rss};
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
            text: "accept a device without an IOMMU, which can write anywhere in memory",
        },
        SpecOption {
            key: "vf_token",
            values: "UUID",
            default: "none",
            text: "the token of a virtual function whose physical function is in use by a program",
        },
        SpecOption {
            key: "mtu",
            values: "BYTES",
            default: "1500; virtio-net: as the device says",
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
        RSS_KEY,
        RSS_TABLE,
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
            Support::Partly("by the device: addresses, and ports if it supports them"),
        ),
        (Feature::Link, Support::Yes),
        (
            Feature::Speed,
            Support::Partly("Intel NICs and Pollux's card"),
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
            Support::Partly("Intel NICs; virtio-net if it offers it"),
        ),
        (
            Feature::ZeroCopyRx,
            Support::Partly("Pollux's card copies whole frames once"),
        ),
        (Feature::ZeroCopyTx, Support::Yes),
        (
            Feature::Needs,
            Support::Partly(
                "the device bound to vfio-pci (`scripts/bind`), access to its group's file, and \
                 the right to lock memory; 82574L: ASPM (L0s and L1) off, which \
                 `pcie_aspm.policy=performance` on the kernel's command line does",
            ),
        ),
    ],
    check,
    ..Description::new("pci", "a NIC of this machine, by VFIO")
};

/// Options of the bus, which apply to every driver.
const OF_THE_BUS: [&str; 2] = ["noiommu", "vf_token"];

/// Probes a device and takes it over. Waits for nothing but the device.
///
/// # Errors
/// An invalid option value, or a device that is not available or does not answer.
pub type OpenDevice<D> = fn(Arc<D>, &PortSpec, MemoryGrant) -> Result<Box<dyn Driver>, PortError>;

/// An entry of the table of PCI drivers: one kind of device, and its open function.
///
/// A program adds its own with [`Registry::pci_driver`](crate::Registry::pci_driver). The function
/// is generic over [`Device`], so that the same driver runs on VFIO and, in its tests, on a model
/// (`pollux-pmd-testkit`).
///
/// ```
/// # use std::sync::Arc;
/// # use pollux_pmd::bus::Device;
/// # use pollux_pmd::driver::Driver;
/// # use pollux_pmd::{MemoryGrant, PortError, PortSpec};
/// use pollux_pmd::drivers::pci::PciDriver;
/// use pollux_pmd::Registry;
///
/// # fn open<D: Device>(_: Arc<D>, spec: &PortSpec, _: MemoryGrant)
/// #     -> Result<Box<dyn Driver>, PortError> {
/// #     Err(PortError::NoGrant { port: spec.to_string() })
/// # }
/// let driver = PciDriver::new(0x10ec, 0x8139, "RTL8139", open).with_options(&["promisc"]);
/// let registry = Registry::builtin().pci_driver(driver);
/// registry.check("pci:0000:03:00.0,promisc=on")?;
/// # Ok::<(), PortError>(())
/// ```
pub struct PciDriver<D = VfioDevice> {
    vendor: u16,
    device: u16,
    name: &'static str,
    options: &'static [&'static str],
    own_options: &'static [SpecOption],
    open: OpenDevice<D>,
}

impl<D> Clone for PciDriver<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for PciDriver<D> {}

impl<D> PciDriver<D> {
    /// The driver `open` for devices with this vendor and device ID; `name` is the device name in
    /// messages. It has only the options of the bus (`noiommu`, `vf_token`).
    #[must_use]
    pub const fn new(vendor: u16, device: u16, name: &'static str, open: OpenDevice<D>) -> Self {
        Self {
            vendor,
            device,
            name,
            options: &[],
            own_options: &[],
            open,
        }
    }

    /// Sets the options of `pci:` specs (docs/ports.md) that it accepts, by key. An option of
    /// another driver is refused before `open` is called.
    #[must_use]
    pub const fn with_options(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    /// Adds options that no other driver has; help texts list them with the others. `open`
    /// validates their values.
    #[must_use]
    pub const fn with_own_options(self, own_options: &'static [SpecOption]) -> Self {
        Self {
            own_options,
            ..self
        }
    }

    /// Label for messages: `8086:10d3 (82574L)`.
    fn label(&self) -> String {
        let Self {
            vendor,
            device,
            name,
            ..
        } = self;
        format!("{vendor:04x}:{device:04x} ({name})")
    }
}

/// The description of `pci:` specs with the options of drivers from outside this crate.
pub(crate) fn description(drivers: &[PciDriver]) -> Description {
    let mut options = DESCRIPTION.options.to_vec();
    for option in drivers.iter().flat_map(|driver| driver.own_options) {
        if options.iter().all(|known| known.key != option.key) {
            options.push(*option);
        }
    }
    // Leaked, since descriptions are constants, as those of built-in drivers: a few hundred bytes
    // for each driver that a program registers.
    Description {
        options: options.leak(),
        ..DESCRIPTION
    }
}

impl<D: Device> PciDriver<D> {
    /// The drivers of this crate, with the devices that they support.
    const BUILT_IN: &'static [Self] = &[
        #[cfg(feature = "e1000e")]
        PciDriver::new(0x8086, 0x10d3, "82574L", e1000e::open).with_options(e1000e::OPTIONS),
        #[cfg(feature = "igb")]
        PciDriver::new(0x8086, 0x10c9, "82576", igb::open).with_options(igb::OPTIONS),
        #[cfg(feature = "igb")]
        PciDriver::new(0x8086, 0x10ca, "virtual function of an 82576", igbvf::open)
            .with_options(igbvf::OPTIONS),
        #[cfg(feature = "card")]
        PciDriver::new(card::VENDOR, card::DEVICE, "Pollux's card", card::open)
            .with_options(card::options::OPTIONS),
        #[cfg(feature = "virtio")]
        virtio_net(0x1041, "virtio-net"),
        #[cfg(feature = "virtio")]
        virtio_net(0x1000, "virtio-net, transitional"),
    ];

    /// The driver of a device; entries in `more` take precedence over those of this crate.
    fn find<'a>(more: &'a [Self], ids: Ids, spec: &PortSpec) -> Result<&'a Self, PortError> {
        let is_it = |entry: &&Self| (entry.vendor, entry.device) == (ids.vendor, ids.device);
        let mut all = more.iter().chain(Self::BUILT_IN);
        all.find(is_it).ok_or_else(|| {
            let address = spec.target().unwrap_or_default();
            let dpdk = if cfg!(feature = "dpdk") {
                format!("; where DPDK has a driver for it, it is the port dpdk:{address}")
            } else {
                String::new()
            };
            let known = more.iter().chain(Self::BUILT_IN).map(Self::label);
            let known = known.collect::<Vec<_>>().join(", ");
            PortError::Device {
                port: spec.to_string(),
                what: format!(
                    "no driver for {ids}; there are drivers for {known}; if it was bound for a \
                     program, `pollux unbind {address}` gives it back to the kernel{dpdk}"
                ),
            }
        })
    }
}

/// Virtio 1.2 sections 4.1.2 and 5.1.1.
#[cfg(feature = "virtio")]
const fn virtio_net<D: Device>(device: u16, name: &'static str) -> PciDriver<D> {
    PciDriver::new(0x1af4, device, name, virtio::open).with_options(virtio::OPTIONS)
}

/// The address in a spec that has been validated.
fn address(spec: &PortSpec) -> Result<Address, SpecError> {
    let target = spec.target().unwrap_or_default();
    target.parse().map_err(|_| {
        let expected = "DOMAIN:BUS:DEVICE.FUNCTION or BUS:DEVICE.FUNCTION, as in 0000:03:00.0 or \
                        03:00.0 (`pollux ports` lists the available ones)";
        spec.bad_value("address", target, expected)
    })
}

fn check(spec: &PortSpec) -> Result<(), SpecError> {
    address(spec)?;
    options(spec)?;
    Rss::from_spec(spec)?;
    #[cfg(feature = "igb")]
    igb::options::Options::of_functions(spec)?;
    // The longest packet of all drivers; each has a limit of its own.
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

pub(crate) fn open(
    more: &[PciDriver],
    spec: &PortSpec,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let address = address(spec)?;
    // Refused before the user binds a device that has no driver here.
    if let Some(function) = Sysfs::default().function(address) {
        PciDriver::find(more, function.ids, spec)?;
    }
    let device = VfioDevice::open(address, &options(spec)?, grant);
    let device = device.map_err(bus_error(&spec.to_string()))?;
    open_device(more, Arc::new(device), spec, grant)
}

/// Opens a device with its driver: the first of `more` that supports it, else one of this crate.
/// Accepts any [`Device`], also a model or a simulation.
///
/// # Errors
/// No driver supports the device, the driver does not have all options of the spec, or an error of
/// the driver.
pub fn open_device<D: Device>(
    more: &[PciDriver<D>],
    device: Arc<D>,
    spec: &PortSpec,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let entry = PciDriver::find(more, device.ids(), spec)?;
    let own = entry.own_options.iter().map(|option| option.key);
    let options = OF_THE_BUS.into_iter().chain(entry.options.iter().copied());
    let options: Vec<_> = options.chain(own).collect();
    spec.expect_options_of(entry.name, &options)?;
    (entry.open)(device, spec, grant)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
                "`eth0` is not a valid address: DOMAIN:BUS:DEVICE.FUNCTION",
            ),
            (
                "pci:03:00.0,vf_token=7",
                "`7` is not a valid vf_token: a UUID",
            ),
            ("pci:03:00.0,mtu=1", "a number of 68 to 65535"),
            ("pci:03:00.0,noiommu=yes", "on or off"),
        ] {
            let error = checked(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
