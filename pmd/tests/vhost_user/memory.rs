//! Front ends with correct messages and corrupt rings or memory.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::PortConfig;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::raw::{
    AT, GET_FEATURES, MEMORY, PACKED, PROTOCOL, RINGS, Raw, SET_FEATURES, SET_VRING_BASE,
    SET_VRING_ENABLE, SET_VRING_KICK, SET_VRING_NUM, VERSION_1, memory, wait_for_violations,
};
use crate::support::{PATIENCE, Place, Port, pass, registry, spec};

/// Both rings of a queue pair, started in the peer's memory.
fn set_up_both(raw: &Raw, memory: &OwnedFd, packed: u64) {
    raw.number(SET_FEATURES, VERSION_1 | PROTOCOL | packed)
        .table(&[[AT, MEMORY, AT, 0]], &[memory.as_fd()]);
    for index in 0..2 {
        raw.ring(SET_VRING_NUM, index, 128)
            .ring(
                SET_VRING_BASE,
                index,
                if packed == 0 { 0 } else { 0x8000_8000 },
            )
            .address(index, RINGS)
            .number(SET_VRING_KICK, u64::from(index) | 1 << 8)
            .ring(SET_VRING_ENABLE, index, 1);
    }
}

/// Makes more buffers available, in both split rings, than they have entries.
fn make_too_much_available(memory: &OwnedFd) {
    rustix::io::pwrite(memory, &[0, 0, 0xff, 0x7f], 0x2000).unwrap();
}

#[test]
fn rings_that_make_no_sense_end_the_session() {
    let place = Place::new();
    let mut port = Port::open(&spec(&place.socket(), "role=device,server"), 1);
    for (expected, packed) in (1..).zip([0, PACKED]) {
        let memory = memory();
        let raw = Raw::connect(&place.socket());
        set_up_both(&raw, &memory, packed);
        port.wait_up(true);
        if packed == 0 {
            make_too_much_available(&memory);
        } else {
            // An endless chain: all descriptors available, each with a next one.
            let descriptor = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
            for i in 0..128 {
                let mut descriptor = descriptor;
                descriptor[14..].copy_from_slice(&(1_u16 | 1 << 7).to_le_bytes());
                rustix::io::pwrite(&memory, &descriptor, 16 * i).unwrap();
            }
        }
        wait_for_violations(&mut port, expected);
        raw.until_closed();
    }
    port.stop();
}

/// As by a virtual machine whose memory is a private mapping of the file (QEMU: share=off).
#[test]
fn memory_that_the_front_end_does_not_use_is_reported() {
    let place = Place::new();
    let port = Port::open(&spec(&place.socket(), "role=device,server"), 1);
    for (used, expected) in [(true, 0), (false, 1), (true, 1)] {
        let memory = memory();
        if used {
            rustix::io::pwrite(&memory, &[1], MEMORY - 1).unwrap();
        }
        let raw = Raw::connect(&place.socket());
        set_up_both(&raw, &memory, 0);
        port.wait_up(true);
        assert_eq!(port.statistic("untouched_memory"), expected);
        drop(raw);
        port.wait_up(false);
    }
    port.stop();
}

#[test]
fn fewer_queues_that_receive_than_that_send_are_refused() {
    let place = Place::new();
    for role in ["driver", "device"] {
        let spec = spec(&place.socket(), &format!("role={role},server,queues=4"));
        let try_out = |rx_queues, tx_queues| {
            let config = PortConfig {
                rx_queues,
                tx_queues,
                ring: 64,
                ..PortConfig::new(Mempool::new(PoolConfig::default()).unwrap())
            };
            registry().open(&spec).unwrap().configure(config).map(drop)
        };
        // The peer would send by two queues, of which one is not received.
        let error = try_out(1, 2).unwrap_err().to_string();
        assert!(error.contains("1 receive queues and 2 transmit"), "{error}");
        for (rx, tx) in [(2, 1), (2, 2), (0, 2), (2, 0)] {
            try_out(rx, tx).unwrap();
        }
    }
}

#[test]
fn a_peer_that_talks_without_a_pause_is_watched_too() {
    let place = Place::new();
    let mut port = Port::open(&spec(&place.socket(), "role=device,server"), 1);
    let (memory, mut raw) = (memory(), Raw::connect(&place.socket()));
    set_up_both(&raw, &memory, 0);
    port.wait_up(true);
    make_too_much_available(&memory);
    let began = Instant::now();
    let mut served = true;
    while served {
        assert!(began.elapsed() < PATIENCE, "it goes on");
        port.poll(0);
        raw.request(GET_FEATURES, &[]);
        served = raw.receive().is_some();
    }
    wait_for_violations(&mut port, 1);
    port.stop();
}

#[test]
fn rings_that_cannot_be_are_refused() {
    let place = Place::new();
    let pool = Mempool::new(PoolConfig::default()).unwrap();
    for ring in [3, 100, 1 << 16] {
        let config = PortConfig {
            ring,
            ..PortConfig::new(pool.clone())
        };
        let port = registry().open(&spec(&place.socket(), "server"));
        let error = port.unwrap().configure(config).err().unwrap().to_string();
        assert!(error.contains("power of two, 2 to 32768"), "{error}");
    }
}

#[test]
fn memory_cannot_be_cut_short_where_files_can_be_sealed() {
    let place = Place::new();
    for (options, violated) in [
        ("role=device,server", false),
        ("role=device,server,sealed=on", true),
    ] {
        let port = Port::open(&spec(&place.socket(), options), 1);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let sealable = memfd_create("peer", flags).unwrap();
        ftruncate(&sealable, MEMORY).unwrap();
        let mut raw = Raw::connect(&place.socket());
        raw.table(&[[AT, MEMORY, AT, 0]], &[sealable.as_fd()])
            .request(GET_FEATURES, &[]);
        assert_eq!(raw.receive().unwrap().0, GET_FEATURES);
        assert_eq!(ftruncate(&sealable, 0), Err(rustix::io::Errno::PERM));
        // Another memory file that cannot be sealed, as DPDK's.
        raw.table(&[[AT, MEMORY, AT, 0]], &[memory().as_fd()])
            .request(GET_FEATURES, &[]);
        assert_eq!(raw.receive().is_none(), violated);
        drop(raw);
        port.stop();
    }
}

#[test]
fn memory_that_is_cut_short_in_use_costs_the_session() {
    let place = Place::new();
    let mut port = Port::open(&spec(&place.socket(), "role=device,server"), 1);
    for (expected, packed) in (1..).zip([0, PACKED]) {
        let memory = memory();
        let raw = Raw::connect(&place.socket());
        set_up_both(&raw, &memory, packed);
        port.wait_up(true);
        ftruncate(&memory, 0).unwrap();
        wait_for_violations(&mut port, expected);
        raw.until_closed();
    }
    // The next peer is served.
    let mut front = Port::open(&spec(&place.socket(), ""), 1);
    front.wait_up(true);
    pass(&mut front, &mut port, 0, &[64; 100]);
    pass(&mut port, &mut front, 0, &[64; 100]);
    front.stop();
    port.stop();
}
