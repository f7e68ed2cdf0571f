//! The registry: specs, checks, drivers of a program, grants, and descriptions.

use std::fs;

use pollux_pmd::driver::{Capabilities, Description, Driver, Feature, SpecOption, Support};
use pollux_pmd::{PortConfig, PortError, Registry};

use crate::common::{config, pool};

#[test]
fn a_spec_that_means_nothing_is_explained() {
    let registry = Registry::builtin();
    let error = |spec: &str| registry.open(spec).map(drop).unwrap_err().to_string();
    let unknown = error("lopback");
    assert!(
        unknown.starts_with("no driver `lopback`; there are: "),
        "{unknown}"
    );
    for name in ["loopback", "null", "pcap", "af_packet"] {
        assert!(unknown.contains(name), "{unknown}");
        assert!(registry.usage().any(|line| line.starts_with(name)));
    }
    for spec in ["loopback:size=1", "null:sizes=1", "pcap:rxx=a"] {
        let text = error(spec);
        assert!(
            text.contains("has no option") && text.contains("it has: "),
            "{text}"
        );
    }
    assert!(error("loopback:eth0").contains("takes no `eth0`"));
    assert!(error("null:size=big").contains("`big` is not a valid size: a frame length of"));
    assert!(error("null:size=65536").contains("`65536` is not a valid size"));
}

#[test]
fn a_check_finds_what_opening_would_and_touches_nothing() {
    let registry = Registry::builtin();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tx").display().to_string();
    for spec in [
        "lopback",
        "loopback:size=1",
        "null:size=x",
        "null:eth0",
        "pcap",
        "pcap:rxx=a",
        "pcap:rx=a,pace=slow",
        "af_packet",
        "af_packet:",
        "af_packet:lo,ring=1",
        "af_packet:lo,fanout=all",
    ] {
        let found = registry.check(spec).unwrap_err();
        assert!(found.is_usage(), "{spec}: {found}");
        let opened = registry.open(spec).map(drop).unwrap_err();
        assert_eq!(opened.to_string(), found.to_string());
    }
    for spec in [
        "loopback",
        "null:size=0",
        "pcap:rx=/nowhere/file,pace=recorded",
        &format!("pcap:tx={file}"),
        "af_packet:no-such-if,ring=64",
    ] {
        registry.check(spec).unwrap();
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_program_can_add_a_driver_and_replace_one() {
    let mut registry = Registry::builtin();
    let before = registry.usage().count();
    let mine = Description {
        options: &[SpecOption {
            key: "mine",
            values: "on|off",
            default: "on",
            text: "whose it is",
        }],
        ..Description::new("null", "mine")
    };
    registry.register(mine, |spec| {
        Err(spec.bad_value("target", "x", "nothing").into())
    });
    assert_eq!(registry.usage().count(), before);
    assert!(registry.check("null:mine=1").is_ok() && registry.check("null:size=1").is_err());
    let error = registry.open("null").map(drop).unwrap_err().to_string();
    assert!(error.contains("is not a valid target"), "{error}");
}

#[test]
fn ports_whose_device_or_peer_writes_into_memory_need_a_grant() {
    let registry = Registry::builtin();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket").display().to_string();
    for spec in [
        "pci:ffff:ff:1f.7",
        "pci:ffff:ff:1f.7,noiommu=on",
        "dpdk:net_null0",
        &format!("vhost-user:{socket},server=on"),
    ] {
        registry.check(spec).unwrap();
        let error = registry.open(spec).err().unwrap();
        assert!(matches!(&error, PortError::NoGrant { port } if port == spec));
        assert!(error.is_usage(), "found before anything was opened");
        let error = error.to_string();
        assert!(
            error.contains("`Registry::granting`, docs/soundness.md"),
            "{error}"
        );
    }
    // The back end writes into memory that its peer has granted.
    registry
        .open(&format!("vhost-user:{socket},role=device"))
        .unwrap();
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        0,
        "nothing was opened"
    );
}

/// Options with one meaning in all drivers require the feature that they configure.
#[test]
fn descriptions_agree_with_themselves_and_with_the_drivers() {
    let registry = Registry::builtin();
    for driver in registry.descriptions() {
        let (name, support) = (driver.name, |feature| driver.support(feature));
        for (i, option) in driver.options.iter().enumerate() {
            let twice = |other: &SpecOption| other.key == option.key;
            assert!(
                !driver.options[..i].iter().any(twice),
                "{name}: {}",
                option.key
            );
            let feature = match option.key {
                "promisc" => Feature::Promiscuous,
                "multicast" => Feature::Multicast,
                "mtu" => Feature::Mtu,
                "timestamps" => Feature::HardwareStamps,
                _ => continue,
            };
            assert_ne!(support(feature), Support::No, "{name}: {}", option.key);
        }
        for (i, (feature, _)) in driver.features.iter().enumerate() {
            let twice = driver.features[..i]
                .iter()
                .any(|(other, _)| other == feature);
            assert!(!twice, "{name}: {feature:?}");
        }
        let usage = driver.usage();
        assert!(usage.starts_with(&driver.form()) && usage.contains(driver.summary));
    }
    for name in ["loopback", "null"] {
        let known = |driver: &&Description| driver.name == name;
        let driver = registry.descriptions().find(known).unwrap();
        let port = registry.open(name).unwrap();
        let offered = port.capabilities();
        assert!(offered.max_rx_queues > 1 && offered.max_tx_queues > 1);
        assert_ne!(driver.support(Feature::MultiQueue), Support::No);
        assert_eq!(port.link(), Link::UP);
        assert!(port.statistics().is_empty());
        assert_eq!(driver.support(Feature::Statistics), Support::No);
    }
}
