//! Peers that do not keep to the protocol: the session ends, it is counted, and the next peer is
//! served as if nothing had been.

use std::fs::File;
use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Instant;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::{PortConfig, Registry};

use crate::support::{PATIENCE, Place, Port, pass, spec};

const GET_FEATURES: u32 = 1;
const SET_FEATURES: u32 = 2;
const SET_MEM_TABLE: u32 = 5;
const SET_VRING_NUM: u32 = 8;
const SET_VRING_ADDR: u32 = 9;
const SET_VRING_BASE: u32 = 10;
const SET_VRING_KICK: u32 = 12;
const SET_VRING_CALL: u32 = 13;
const SET_PROTOCOL_FEATURES: u32 = 16;
const SET_VRING_ENABLE: u32 = 18;

const VERSION_1: u64 = 1 << 32;
const PACKED: u64 = 1 << 34;
const PROTOCOL: u64 = 1 << 30;

/// Bytes of the shared memory of a made-up front end, at this address.
const MEMORY: u64 = 1 << 16;
const AT: u64 = 0x7000_0000_0000;

/// A made-up peer.
struct Raw(UnixStream);

impl Raw {
    fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    fn connect(path: &Path) -> Self {
        Self::new(UnixStream::connect(path).unwrap())
    }

    /// Sends bytes, if the port is still there.
    fn bytes(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> &Self {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
        let _ = sendmsg(
            &self.0,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        );
        self
    }

    fn flagged(&self, request: u32, flags: u32, payload: &[u8], fds: &[BorrowedFd<'_>]) -> &Self {
        let header = [request, flags, payload.len() as u32];
        let header = header.map(u32::to_ne_bytes).concat();
        self.bytes(&[&header, payload].concat(), fds)
    }

    fn request(&self, request: u32, payload: &[u8]) -> &Self {
        self.flagged(request, 1, payload, &[])
    }

    fn number(&self, request: u32, number: u64) -> &Self {
        self.request(request, &number.to_ne_bytes())
    }

    fn ring(&self, request: u32, index: u32, number: u32) -> &Self {
        self.request(request, &[index, number].map(u32::to_ne_bytes).concat())
    }

    fn table(&self, regions: &[[u64; 4]], fds: &[BorrowedFd<'_>]) -> &Self {
        let mut payload = [regions.len() as u32, 0].map(u32::to_ne_bytes).concat();
        for region in regions {
            payload.extend(region.map(u64::to_ne_bytes).concat());
        }
        self.flagged(SET_MEM_TABLE, 1, &payload, fds)
    }

    fn address(&self, index: u32, [descriptors, used, available]: [u64; 3]) -> &Self {
        let mut payload = [index, 0].map(u32::to_ne_bytes).concat();
        payload.extend(
            [descriptors, used, available, 0]
                .map(u64::to_ne_bytes)
                .concat(),
        );
        self.request(SET_VRING_ADDR, &payload)
    }

    /// A message from the port: its number and payload.
    fn receive(&mut self) -> Option<(u32, Vec<u8>)> {
        let mut header = [0; 12];
        self.0.read_exact(&mut header).ok()?;
        let word = |i: usize| u32::from_ne_bytes(header[4 * i..][..4].try_into().unwrap());
        let mut payload = vec![0; word(2) as usize];
        self.0.read_exact(&mut payload).ok()?;
        Some((word(0), payload))
    }

    /// Reads until the port closes the connection.
    fn until_closed(mut self) {
        let began = Instant::now();
        let mut bytes = [0; 512];
        while !matches!(self.0.read(&mut bytes), Ok(0) | Err(_)) {}
        assert!(
            began.elapsed() < PATIENCE,
            "it did not close the connection"
        );
    }
}

fn memory() -> OwnedFd {
    let memory = memfd_create("peer", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&memory, MEMORY).unwrap();
    memory
}

fn violations(port: &Port) -> u64 {
    let statistics = port.started.port.statistics();
    let found = statistics
        .iter()
        .find(|(name, _)| name == "protocol-violations");
    found.unwrap().1
}

fn wait_for_violations(port: &mut Port, n: u64) {
    let began = Instant::now();
    while violations(port) < n {
        assert!(began.elapsed() < PATIENCE, "violation {n} is not counted");
        port.poll(0);
        port.send(0, &[vec![0; 60]]);
    }
}

type Attack = (&'static str, fn(&Raw));

/// Everything up to where the rings would start, but for what `spoil` does in place of the last.
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

const RINGS: [u64; 3] = [AT, AT + 0x1000, AT + 0x2000];

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
    ("a packed ring that begins behind its end", |raw| {
        set_up(raw, VERSION_1 | PACKED, 256, 300, RINGS);
    }),
    ("a driver from before the standard", |raw| {
        set_up(raw, 0, 256, 0, RINGS);
    }),
];

/// Attacks that are no violation of the protocol, but that the port cannot serve.
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
    // Half a message, and gone: no violation.
    Raw::connect(&place.socket()).bytes(&[1, 0, 0, 0, 1], &[]);
    // One that keeps to the protocol.
    let mut front = Port::open(&spec(&place.socket(), ""), 1);
    front.wait_up(true);
    pass(&mut front, &mut port, 0, &[64; 100]);
    pass(&mut port, &mut front, 0, &[64; 100]);
    assert_eq!(violations(&port), expected);
    front.stop();
    port.stop();
}

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

/// Makes more available, in both split rings, than they have entries.
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
            // A chain that goes on for ever: all descriptors available, each with a next one.
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
        let port = Registry::builtin().open(&spec(&place.socket(), "server"));
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
        // Another that cannot be sealed, as DPDK's.
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
    // The next one is served.
    let mut front = Port::open(&spec(&place.socket(), ""), 1);
    front.wait_up(true);
    pass(&mut front, &mut port, 0, &[64; 100]);
    pass(&mut port, &mut front, 0, &[64; 100]);
    front.stop();
    port.stop();
}

/// The number, flags and payload of an answer.
type Answer<'a> = (u32, u32, &'a [u8]);

/// A back end that answers the first request right and the second, or what then comes, in its own
/// way.
fn back_end(listener: &UnixListener, answers: &[Answer<'_>]) -> Raw {
    let (stream, _) = listener.accept().unwrap();
    let mut raw = Raw::new(stream);
    for &(number, flags, payload) in answers {
        // Requests without an answer are read with the next that has one.
        while raw
            .receive()
            .is_some_and(|(request, _)| request != number && number < 50)
        {}
        raw.flagged(number, flags, payload, &[]);
    }
    raw
}

#[test]
fn a_back_end_that_talks_nonsense_is_left() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let mut port = Port::open(&spec(&place.socket(), "packed=off"), 1);
    let features = VERSION_1.to_ne_bytes();
    let answers: [(&str, &[Answer<'_>]); 7] = [
        ("another request's answer", &[(57, 5, &features)]),
        ("no reply at all", &[(GET_FEATURES, 1, &features)]),
        ("another version", &[(GET_FEATURES, 6, &features)]),
        ("too few bytes", &[(GET_FEATURES, 5, &features[..4])]),
        ("too many bytes", &[(GET_FEATURES, 5, &[0; 16])]),
        (
            "more bytes than any message has",
            &[(GET_FEATURES, 5, &[0; 1000])],
        ),
        (
            "a message that nobody has asked for",
            &[
                (GET_FEATURES, 5, &features),
                (GET_FEATURES, 5, &features),
                (51, 1, &[]),
            ],
        ),
    ];
    let mut expected = 0;
    for (name, answers) in answers {
        println!("{name}");
        let raw = back_end(&listener, answers);
        raw.until_closed();
        expected += 1;
        wait_for_violations(&mut port, expected);
    }
    // A device from before the standard, and one that hangs up: no violations.
    back_end(&listener, &[(GET_FEATURES, 5, &[0; 8])]).until_closed();
    drop(back_end(&listener, &[(GET_FEATURES, 5, &features)]));
    // One that keeps to the protocol.
    drop(listener);
    std::fs::remove_file(place.socket()).unwrap();
    let mut back = Port::open(&spec(&place.socket(), "role=device,server"), 1);
    back.wait_up(true);
    port.wait_up(true);
    pass(&mut port, &mut back, 0, &[64; 100]);
    pass(&mut back, &mut port, 0, &[64; 100]);
    assert_eq!(violations(&port), expected);
    port.stop();
    back.stop();
}
