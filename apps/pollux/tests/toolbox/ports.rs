//! `pollux ports` as its users meet it.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::Value;

use crate::support::text;

fn pollux(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    command.arg("ports").args(args);
    command
}

fn json(mut command: Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["schema"], 1);
    list
}

#[test]
fn specs_that_are_usable_can_be_opened() {
    let list = json(pollux(&["--json"]));
    let ports = list["ports"].as_array().unwrap();
    let registry = pollux_pmd::Registry::builtin();
    let mut usable = 0;
    for port in ports.iter().filter(|port| port["state"] == "usable") {
        let opened = registry.open(port["spec"].as_str().unwrap());
        assert!(opened.is_ok(), "{port}: {:?}", opened.err());
        usable += 1;
    }
    assert!(usable >= 2, "{list:#}");
}

#[test]
fn an_unprivileged_user_may_list_but_not_open() {
    let mut command = pollux(&["--json"]);
    command.uid(65_534).gid(65_534);
    if command.output().is_err() {
        println!("skipped: another user may not execute the program");
        return;
    }
    let list = json(command);
    let of_interface = |port: &&Value| port["driver"] == "af_packet";
    for port in list["ports"]
        .as_array()
        .unwrap()
        .iter()
        .filter(of_interface)
    {
        assert_eq!(port["state"], "unusable");
        assert!(
            port["why"].as_str().unwrap().contains("CAP_NET_RAW"),
            "{port}"
        );
    }
}

#[test]
fn drivers_are_listed_with_all_that_they_say() {
    let list = json(pollux(&["--json", "--drivers"]));
    let drivers = list["drivers"].as_array().unwrap();
    let known: Vec<_> = pollux_pmd::Registry::builtin()
        .descriptions()
        .map(|d| d.name)
        .collect();
    let names: Vec<_> = drivers
        .iter()
        .map(|driver| driver["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, known);
    let pcap = drivers
        .iter()
        .find(|driver| driver["name"] == "pcap")
        .unwrap();
    assert_eq!(pcap["options"][0]["key"], "rx");
    assert_eq!(pcap["features"]["receive"], "yes");
    assert!(pcap["features"].get("promiscuous mode").is_none());
    let people = text(&pollux(&["--drivers"]).output().unwrap().stdout);
    for name in names {
        assert!(people.contains(name), "{people}");
    }
}

#[test]
fn the_list_is_for_people_too() {
    let folder = tempfile::tempdir().unwrap();
    let device = folder.path().join("sys/bus/pci/devices/0000:03:00.0");
    std::fs::create_dir_all(device.join("net/eth5")).unwrap();
    for (attribute, content) in [
        ("class", "0x020000"),
        ("vendor", "0x8086"),
        ("device", "0x10fb"),
        ("numa_node", "1"),
    ] {
        std::fs::write(device.join(attribute), content).unwrap();
    }
    std::os::unix::fs::symlink("drivers/ixgbe", device.join("driver")).unwrap();
    let output = pollux(&["--root", folder.path().to_str().unwrap()])
        .output()
        .unwrap();
    let list = text(&output.stdout);
    // Between the two stands its name, on a machine that has the list of names.
    let expected = "  node 1  ixgbe  eth5\n        \
                    the kernel drives it (ixgbe); for a program: pollux bind 0000:03:00.0\n";
    assert!(list.ends_with(expected), "{list}");
    assert!(list.contains("\n  0000:03:00.0  8086:10fb  "), "{list}");
    assert!(list.starts_with("Ports\n  yes   loopback"), "{list}");
}
