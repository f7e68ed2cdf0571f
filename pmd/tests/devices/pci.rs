//! The table of drivers for PCI devices.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use pollux_pmd::bus::{Device, Ids};
use pollux_pmd::driver::{Driver, SpecOption};
use pollux_pmd::drivers::loopback;
use pollux_pmd::drivers::pci::{PciDriver, open_device};
use pollux_pmd::{MemoryGrant, PortError, PortSpec, Registry};
use pollux_pmd_testkit::fake::{FakeDevice, Model, World, grant};

/// A device without a driver.
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

#[test]
fn a_stranger_is_told_who_is_known_and_what_to_do() {
    let spec = "pci:03:00.0".parse().unwrap();
    let error = open_device(&[], Arc::new(FakeDevice::new(Stranger)), &spec, grant());
    let error = error.err().unwrap().to_string();
    let known = "no driver for 1234:5678; there are drivers for 8086:10d3 (82574L), ";
    assert!(error.contains(known), "{error}");
    assert!(error.contains("`pollux unbind 03:00.0`"), "{error}");
    let names_dpdk = error.ends_with("it is the port dpdk:03:00.0");
    assert_eq!(names_dpdk, cfg!(feature = "dpdk"), "{error}");
}

#[test]
fn what_is_not_there_is_no_port() {
    let registry = Registry::builtin().granting(grant());
    let error = registry.open("pci:ffff:ff:1f.7").err().unwrap().to_string();
    assert!(
        error.starts_with("port pci:ffff:ff:1f.7: ffff:ff:1f.7: there is no such PCI device"),
        "{error}"
    );
}

/// A driver that this crate does not have.
#[expect(clippy::unnecessary_wraps, reason = "the type of the table")]
fn found<D: Device>(
    _: Arc<D>,
    spec: &PortSpec,
    _: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    Ok(loopback::open(spec))
}

const LAMPS: &[SpecOption] = &[SpecOption {
    key: "lamps",
    values: "N",
    default: "0",
    text: "lamps to light",
}];

#[test]
fn drivers_from_outside_are_in_the_table() {
    let driver = PciDriver::new(0x1234, 0x5678, "stranger", found)
        .with_options(&["mtu"])
        .with_own_options(LAMPS);
    let open = |spec: &str| {
        let device = Arc::new(FakeDevice::new(Stranger));
        open_device(&[driver], device, &spec.parse().unwrap(), grant())
    };
    assert!(open("pci:03:00.0,mtu=1500,lamps=3,noiommu=on").is_ok());
    let error = open("pci:03:00.0,promisc=on").err().unwrap().to_string();
    for said in ["stranger", "`promisc`", "noiommu, vf_token, mtu, lamps"] {
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_registry_knows_what_it_was_given() {
    let builtin = Registry::builtin();
    assert!(builtin.check("pci:03:00.0,lamps=3").is_err());
    let driver = PciDriver::new(0x1234, 0x5678, "stranger", found).with_own_options(LAMPS);
    let order = |registry: &Registry| -> Vec<_> {
        registry.descriptions().map(|known| known.name).collect()
    };
    let before = order(&builtin);
    let registry = builtin.pci_driver(driver);
    registry.check("pci:03:00.0,lamps=3,mtu=1500").unwrap();
    assert_eq!(order(&registry), before);
    // Not a grant, though.
    let error = registry.open("pci:03:00.0").err().unwrap();
    assert!(matches!(error, PortError::NoGrant { .. }), "{error}");
}
