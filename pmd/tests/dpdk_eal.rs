//! DPDK's environment: what a spec can ask of it. In a process of its own, where it fails to start.
#![cfg(feature = "dpdk")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use pollux_pmd::{MemoryGrant, Registry};

#[test]
fn an_environment_that_cannot_start_is_told_and_not_tried_again() {
    let affinity = rustix::thread::sched_getaffinity(None).unwrap();
    // SAFETY: no device is opened.
    let registry = Registry::builtin().granting(unsafe { MemoryGrant::new() });
    let open = |spec: &str| registry.open(spec).err().unwrap().to_string();
    // A typo is found before EAL sees it, and costs nothing.
    let error = open("dpdk:net_null0,eal=--no-hug");
    assert!(error.contains("no option `--no-hug`"), "{error}");
    let first = open("dpdk:net_null0,eal=--no-huge+-m+1000000000+--no-pci");
    assert!(first.contains("DPDK could not be started with"), "{first}");
    let second = open("dpdk:net_null0");
    assert!(second.contains("a process can start DPDK once"), "{second}");
    let now = rustix::thread::sched_getaffinity(None).unwrap();
    assert!(now == affinity, "the thread keeps its CPUs");
}
