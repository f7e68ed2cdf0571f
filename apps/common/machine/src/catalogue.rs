//! Catalogue of drivers, interfaces and devices, and of the port specs that they allow: `pollux ports`.

use std::collections::BTreeMap;

use pollux_pmd::Registry;
use pollux_pmd::bus::pci::Names;
use pollux_pmd::driver::{Description, Feature, Support};
use serde::Serialize;

use crate::net::{self, Interface};
use crate::pci::{self, Function};
use crate::process::{self, CAPABILITIES};
use crate::{Sys, Unread};

/// The contract of `pollux ports --json`. A change that a reader could notice raises `schema`.
#[derive(Serialize)]
pub struct Catalogue {
    schema: u32,
    /// Specs.
    pub ports: Vec<Entry>,
    interfaces: Vec<Interface>,
    /// Network controllers on the PCI bus.
    pub pci: Vec<Device>,
}

/// Usability of a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Usable as it is.
    Usable,
    /// Unusable at present.
    Unusable,
    /// A form of specs, to be completed by the user.
    Form,
}

/// A spec.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// Its text.
    pub spec: String,
    driver: &'static str,
    /// Whether it can be used.
    pub state: State,
    /// Reason why it is unusable, or a description if it is usable.
    pub why: String,
}

/// A network controller.
#[derive(Serialize)]
pub struct Device {
    /// Its PCI address.
    pub address: String,
    /// Vendor and device.
    pub ids: String,
    /// Name of the device, if the machine has the PCI ID list.
    pub name: String,
    /// Its driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its NUMA node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Its IOMMU group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iommu_group: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_gts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    /// Its interfaces.
    pub interfaces: Vec<String>,
    /// Steps required before a program can drive it.
    pub why: String,
}

impl Catalogue {
    /// What the machine has for the drivers of `registry`.
    #[must_use]
    pub fn of(sys: &Sys, registry: &Registry) -> Self {
        let interfaces = net::interfaces(sys);
        let capabilities = process::capabilities(sys);
        let specs = |driver| specs(driver, registry, &interfaces, &capabilities);
        let names = Names::load();
        let device = |function: &Function| Device::of(function, &names);
        Self {
            schema: 1,
            ports: registry.descriptions().flat_map(specs).collect(),
            pci: pci::network(sys).iter().map(device).collect(),
            interfaces,
        }
    }
}

/// Port specs that a driver allows on this machine.
fn specs(
    driver: &Description,
    registry: &Registry,
    interfaces: &[Interface],
    capabilities: &Result<u64, Unread>,
) -> Vec<Entry> {
    let entry = |spec, state, why| Entry {
        spec,
        driver: driver.name,
        state,
        why,
    };
    // Listed in every build, included in some.
    if driver.name == "dpdk" && cfg!(not(feature = "dpdk")) {
        let why = "built without libdpdk: cargo build -p pollux --features dpdk";
        return vec![entry(driver.form(), State::Unusable, why.into())];
    }
    match driver.target {
        // Only existing interfaces can be opened, so all of them are listed.
        Some(target) if target.form == "IF" => {
            let ethernet = interfaces.iter().filter(|interface| interface.ethernet);
            let of_interface = |interface: &Interface| {
                let missing = missing_right(driver, capabilities).or_else(|| {
                    let name = &interface.name;
                    (!interface.up).then(|| format!("down: ip link set {name} up"))
                });
                let (state, why) = match missing {
                    Some(missing) => (State::Unusable, missing),
                    None => (State::Usable, describe(interface)),
                };
                entry(format!("{}:{}", driver.name, interface.name), state, why)
            };
            ethernet.map(of_interface).collect()
        }
        _ => vec![match (
            registry.check(driver.name),
            missing_right(driver, capabilities),
        ) {
            (_, Some(missing)) => entry(driver.form(), State::Unusable, missing),
            (Ok(()), None) => entry(driver.name.into(), State::Usable, driver.summary.into()),
            (Err(incomplete), None) => {
                let text = incomplete.to_string();
                let prefix = format!("port spec `{}`: ", driver.name);
                let needs = text.strip_prefix(&prefix).unwrap_or(&text);
                entry(
                    driver.form(),
                    State::Form,
                    format!("{}: {needs}", driver.summary),
                )
            }
        }],
    }
}

/// The capabilities that a driver requires in any case, if the process lacks one of them. Those
/// that only an option requires follow a semicolon.
fn missing_right(driver: &Description, capabilities: &Result<u64, Unread>) -> Option<String> {
    let Support::Partly(needs) = driver.support(Feature::Needs) else {
        return None;
    };
    let always = needs.split(';').next().unwrap_or_default();
    let needed = |name: &str| {
        always
            .split(|c: char| !c.is_ascii_uppercase() && c != '_')
            .any(|word| word == name)
    };
    let mut needed = CAPABILITIES.iter().filter(|(name, _)| needed(name));
    match capabilities {
        Ok(set) => needed
            .any(|&(_, bit)| !process::has(*set, bit))
            .then(|| format!("needs {always}: be root, or see `pollux doctor`")),
        Err(unread) => needed
            .next()
            .map(|_| format!("needs {always}, and {unread}")),
    }
}

fn describe(interface: &Interface) -> String {
    let mut words = vec![
        if interface.carrier {
            "up"
        } else {
            "up, no carrier"
        }
        .to_owned(),
    ];
    words.extend(interface.speed.map(|speed| format!("{speed} Mbit/s")));
    words.extend(interface.mtu.map(|mtu| format!("MTU {mtu}")));
    words.extend(interface.mac.clone());
    words.extend(interface.driver.clone());
    words.join(", ")
}

impl Device {
    fn of(device: &Function, names: &Names) -> Self {
        let address = &device.address;
        let why = match &device.driver {
            Some(driver) if device.is_for_programs() => {
                format!(
                    "{driver} hands it to programs; back to the kernel: pollux unbind {address}"
                )
            }
            Some(driver) => {
                format!("the kernel drives it ({driver}); for a program: pollux bind {address}")
            }
            None => format!(
                "no driver; for a program: pollux bind {address}; for the kernel: pollux unbind {address}"
            ),
        };
        Self {
            address: address.to_string(),
            ids: device.ids.to_string(),
            name: names.device(device.ids),
            driver: device.driver.clone(),
            node: device.numa_node,
            iommu_group: device.group,
            speed_gts: device.link.as_ref().map(|link| link.speed),
            width: device.link.as_ref().map(|link| link.width),
            interfaces: device.interfaces.clone(),
            why,
        }
    }
}

/// The contract of `pollux ports --drivers --json`.
#[derive(Serialize)]
pub struct Drivers<'a> {
    schema: u32,
    /// All drivers.
    pub drivers: Vec<Driver<'a>>,
}

/// A driver.
#[derive(Serialize)]
pub struct Driver<'a> {
    /// Its name.
    pub name: &'a str,
    /// The form of its specs.
    pub form: String,
    /// What it is for.
    pub summary: &'a str,
    /// Its options.
    pub options: Vec<Choice<'a>>,
    /// Supported features, by name.
    pub features: BTreeMap<&'a str, String>,
}

/// An option of a driver.
#[derive(Serialize)]
pub struct Choice<'a> {
    /// Its name.
    pub key: &'a str,
    /// Its values.
    pub values: &'a str,
    /// Its value if it is not given.
    pub default: &'a str,
    /// What it does.
    pub text: &'a str,
}

impl<'a> Drivers<'a> {
    /// The drivers of a registry.
    #[must_use]
    pub fn of(registry: &'a Registry) -> Self {
        let driver = |description: &'a Description| Driver {
            name: description.name,
            form: description.form(),
            summary: description.summary,
            options: description
                .options
                .iter()
                .map(|option| Choice {
                    key: option.key,
                    values: option.values,
                    default: option.default,
                    text: option.text,
                })
                .collect(),
            features: Feature::ALL
                .iter()
                .map(|&feature| (feature.text(), description.support(feature)))
                .filter(|(_, support)| *support != Support::No)
                .map(|(name, support)| (name, support.to_string()))
                .collect(),
        };
        Self {
            schema: 1,
            drivers: registry.descriptions().map(driver).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn of<'a>(catalogue: &'a Catalogue, spec: &str) -> Option<(State, &'a str)> {
        let found = catalogue.ports.iter().find(|port| port.spec == spec);
        found.map(|port| (port.state, port.why.as_str()))
    }

    /// An interface that is up, one that is down, and one that is not Ethernet.
    fn machine(capabilities: &str) -> Tree {
        let tree = Tree::new();
        for (name, kind, flags) in [
            ("eth0", "1", "0x1003"),
            ("eth1", "1", "0x1002"),
            ("ib0", "32", "0x1003"),
        ] {
            let at = |attribute: &str| format!("/sys/class/net/{name}/{attribute}");
            tree.file(&at("type"), kind)
                .file(&at("flags"), flags)
                .file(&at("carrier"), "1");
        }
        tree.file("/proc/self/status", format!("CapEff: {capabilities}"));
        tree
    }

    #[test]
    fn specs_say_what_they_lack() {
        let registry = Registry::builtin();
        let list = |tree: &Tree| Catalogue::of(&tree.sys(), &registry);
        let root = list(&machine("ffffffffff"));
        assert_eq!(of(&root, "af_packet:eth0"), Some((State::Usable, "up")));
        let off = "down: ip link set eth1 up";
        assert_eq!(of(&root, "af_packet:eth1"), Some((State::Unusable, off)));
        assert_eq!(of(&root, "af_packet:ib0"), None);
        assert_eq!(
            of(&root, "loopback").map(|(state, _)| state),
            Some(State::Usable)
        );
        assert_eq!(of(&root, "pcap").map(|(state, _)| state), Some(State::Form));
        let user = list(&machine("0"));
        let needs = "needs CAP_NET_RAW: be root, or see `pollux doctor`";
        assert_eq!(of(&user, "af_packet:eth0"), Some((State::Unusable, needs)));
        assert_eq!(
            of(&user, "null").map(|(state, _)| state),
            Some(State::Usable)
        );
        let unknown = list(&machine("?"));
        assert_eq!(
            of(&unknown, "af_packet:eth0").map(|(state, _)| state),
            Some(State::Unusable)
        );
        let dpdk = of(&root, "dpdk:DEVICE").map(|(state, _)| state);
        let expected = if cfg!(feature = "dpdk") {
            State::Form
        } else {
            State::Unusable
        };
        assert_eq!(dpdk, Some(expected));
        let nothing = list(&Tree::new());
        assert!(nothing.interfaces.is_empty() && nothing.pci.is_empty());
    }

    #[test]
    fn every_interface_driver_says_which_rights_it_always_needs() {
        for driver in Registry::builtin().descriptions() {
            if driver.target.is_some_and(|target| target.form == "IF") {
                assert!(missing_right(driver, &Ok(0)).is_some(), "{}", driver.name);
                assert_eq!(missing_right(driver, &Ok(u64::MAX)), None);
            }
        }
    }

    #[test]
    fn devices_say_whom_they_belong_to() {
        let tree = Tree::new();
        for (function, driver) in [(0, Some("ixgbe")), (1, Some("vfio-pci")), (2, None)] {
            let at =
                |attribute: &str| format!("{}/0000:03:00.{function}/{attribute}", pci::DEVICES);
            tree.file(&at("class"), "0x020000");
            if let Some(driver) = driver {
                tree.link(&at("driver"), driver);
            }
        }
        let pci = Catalogue::of(&tree.sys(), &Registry::builtin()).pci;
        assert!(pci[0].why.contains("the kernel drives it (ixgbe)"));
        assert!(pci[1].why.contains("pollux unbind 0000:03:00.1"));
        assert!(pci[2].why.starts_with("no driver"));
    }
}
