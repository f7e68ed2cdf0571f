//! Front ends that violate the protocol: the session ends, the violation is counted, and the next
//! peer is served normally.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::fs::ftruncate;

use crate::raw::{
    AT, GET_FEATURES, MEMORY, PACKED, PROTOCOL, RINGS, Raw, SET_FEATURES, SET_MEM_TABLE,
    SET_PROTOCOL_FEATURES, SET_VRING_BASE, SET_VRING_CALL, SET_VRING_ENABLE, SET_VRING_KICK,
    SET_VRING_NUM, VERSION_1, memory, violations, wait_for_violations,
};
use crate::support::{Place, Port, pass, spec};

type Attack = (&'static str, fn(&Raw));

/// The set-up up to the start of the rings, but with `spoil` instead of the last message.
fn set_up(raw: &Raw, features: u64, size: u32, base: u32, rings: [u64; 3]) {
    let memory = memory();
    raw.number(SET_FEATURES, features | PROTOCOL)
        .table(&[[AT, MEMORY, AT, 0]], &[memory.as_fd()]);
    for index in 0..2 {
        raw.ring(SET_VRING_NUM, index, size)
            .ring(SET_VRING_BASE, index, base)
            .address(index, rings)
            .number(SET_VRING_KICK, u64::from(index) | 1 << 8)
            .ring(SET_VRING_ENABLE, index, 1);
    }
}

const ATTACKS: &[Attack] = &[
    ("another version", |raw| {
        raw.flagged(GET_FEATURES, 2, &[], &[]);
    }),
    ("a message without end", |raw| {
        raw.bytes(&[1, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255], &[]);
    }),
    ("a message that is longer than any", |raw| {
        raw.flagged(SET_MEM_TABLE, 1, &[0; 265], &[]);
    }),
    ("an unknown request", |raw| {
        raw.request(99, &[]);
    }),
    ("a request of a feature that was not offered", |raw| {
        raw.number(6, 0);
    }),
    ("too few bytes", |raw| {
        raw.request(SET_FEATURES, &[0; 4]);
    }),
    ("too many bytes", |raw| {
        raw.request(SET_VRING_NUM, &[0; 12]);
    }),
    ("features that were not offered", |raw| {
        raw.number(SET_FEATURES, VERSION_1 | 1 << 29);
    }),
    ("features of the protocol that were not offered", |raw| {
        raw.number(SET_PROTOCOL_FEATURES, 1 << 5);
    }),
    ("more descriptors than any message has", |raw| {
        let file = memory();
        raw.flagged(SET_MEM_TABLE, 1, &[0; 8], &[file.as_fd(); 9]);
    }),
    ("a region without its descriptor", |raw| {
        raw.table(&[[AT, MEMORY, AT, 0]], &[]);
    }),
    ("a descriptor without its region", |raw| {
        raw.table(&[], &[memory().as_fd()]);
    }),
    ("more regions than there are bytes for", |raw| {
        let head = [8_u32, 0].map(u32::to_ne_bytes).concat();
        raw.flagged(SET_MEM_TABLE, 1, &head, &[memory().as_fd(); 8]);
    }),
    ("an empty region", |raw| {
        raw.table(&[[AT, 0, AT, 0]], &[memory().as_fd()]);
    }),
    ("a region beyond its file", |raw| {
        raw.table(&[[AT, MEMORY + 1, AT, 0]], &[memory().as_fd()]);
    }),
    ("a region that begins beyond its file", |raw| {
        raw.table(&[[AT, 4096, AT, MEMORY]], &[memory().as_fd()]);
    }),
    ("a region whose end wraps in the file", |raw| {
        raw.table(&[[AT, 4096, AT, u64::MAX - 100]], &[memory().as_fd()]);
    }),
    ("a region whose guest addresses wrap", |raw| {
        raw.table(&[[u64::MAX - 100, 4096, AT, 0]], &[memory().as_fd()]);
    }),
    ("a region whose user addresses wrap", |raw| {
        raw.table(&[[AT, 4096, u64::MAX - 100, 0]], &[memory().as_fd()]);
    }),
    ("a region that is too long for any machine", |raw| {
        let file = memory();
        ftruncate(&file, 1 << 62).unwrap();
        raw.table(&[[0, 1 << 62, 0, 0]], &[file.as_fd()]);
    }),
    ("eight regions that together are too long", |raw| {
        let file = memory();
        ftruncate(&file, 1 << 45).unwrap();
        let regions: [[u64; 4]; 8] =
            std::array::from_fn(|i| [(i as u64) << 45, 1 << 45, (i as u64) << 45, 0]);
        raw.table(&regions, &[file.as_fd(); 8]);
    }),
    ("regions that overlap for the guest", |raw| {
        let regions = [[AT, 8192, AT, 0], [AT + 4096, 8192, 2 * AT, 0]];
        raw.table(&regions, &[memory().as_fd(), memory().as_fd()]);
    }),
    ("regions that overlap for the user", |raw| {
        let regions = [[AT, 8192, AT, 0], [2 * AT, 8192, AT + 4096, 0]];
        raw.table(&regions, &[memory().as_fd(), memory().as_fd()]);
    }),
    ("a device as memory", |raw| {
        let zero = File::options().read(true).write(true).open("/dev/zero");
        raw.table(&[[AT, MEMORY, AT, 0]], &[zero.unwrap().as_fd()]);
    }),
    ("a socket as memory", |raw| {
        let (one, _other) = UnixStream::pair().unwrap();
        raw.table(&[[AT, MEMORY, AT, 0]], &[one.as_fd()]);
    }),
    ("memory that can only be read", |raw| {
        let file = memory();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let only_read = File::open(path).unwrap();
        raw.table(&[[AT, MEMORY, AT, 0]], &[only_read.as_fd()]);
    }),
    ("a ring that there is not", |raw| {
        raw.ring(SET_VRING_NUM, 2, 256);
    }),
    ("a ring of more entries than a ring can have", |raw| {
        raw.ring(SET_VRING_NUM, 0, 1 << 16);
    }),
    ("a descriptor that is announced and missing", |raw| {
        raw.number(SET_VRING_CALL, 0);
    }),
    ("a descriptor that is not announced", |raw| {
        let payload = (1_u64 << 8).to_ne_bytes();
        raw.flagged(SET_VRING_KICK, 1, &payload, &[memory().as_fd()]);
    }),
    ("a descriptor to be rung that is no eventfd", |raw| {
        let payload = 0_u64.to_ne_bytes();
        raw.flagged(SET_VRING_CALL, 1, &payload, &[memory().as_fd()]);
    }),
    ("a split ring of 100 entries", |raw| {
        set_up(raw, VERSION_1, 100, 0, RINGS);
    }),
    ("a ring without entries", |raw| {
        set_up(raw, VERSION_1 | PACKED, 0, 0, RINGS);
    }),
    ("descriptors outside the memory", |raw| {
        set_up(
            raw,
            VERSION_1,
            256,
            0,
            [AT + MEMORY - 16, RINGS[1], RINGS[2]],
        );
    }),
    ("a used ring outside the memory", |raw| {
        set_up(raw, VERSION_1, 256, 0, [RINGS[0], AT - 1024, RINGS[2]]);
    }),
    ("an available ring outside the memory", |raw| {
        set_up(raw, VERSION_1, 256, 0, [RINGS[0], RINGS[1], u64::MAX - 1]);
    }),
    ("misaligned descriptors", |raw| {
        set_up(raw, VERSION_1, 256, 0, [RINGS[0] + 8, RINGS[1], RINGS[2]]);
    }),
    ("a split ring that begins at no index", |raw| {
        set_up(raw, VERSION_1, 256, 1 << 16, RINGS);
    }),
    ("a packed ring that begins behind its end", |raw| {
        set_up(raw, VERSION_1 | PACKED, 256, 300, RINGS);
    }),
    ("a driver from before the standard", |raw| {
        set_up(raw, 0, 256, 0, RINGS);
    }),
];

/// Attacks that do not violate the protocol, but that the port cannot serve.
const UNFIT: &str = "a driver from before the standard";

#[test]
fn a_front_end_that_talks_nonsense_is_shown_the_door() {
    let place = Place::new();
    let mut port = Port::open(&spec(&place.socket(), "role=device,server"), 1);
    let mut expected = 0;
    for (name, attack) in ATTACKS {
        println!("{name}");
        let raw = Raw::connect(&place.socket());
        attack(&raw);
        raw.until_closed();
        expected += u64::from(*name != UNFIT);
        wait_for_violations(&mut port, expected);
    }
    // Half a message, and a close: no violation.
    Raw::connect(&place.socket()).bytes(&[1, 0, 0, 0, 1], &[]);
    // A correct front end.
    let mut front = Port::open(&spec(&place.socket(), ""), 1);
    front.wait_up(true);
    pass(&mut front, &mut port, 0, &[64; 100]);
    pass(&mut port, &mut front, 0, &[64; 100]);
    assert_eq!(violations(&port), expected);
    front.stop();
    port.stop();
}
