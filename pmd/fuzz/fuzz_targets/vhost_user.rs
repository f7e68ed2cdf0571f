//! A vhost-user socket with arbitrary messages and descriptors, and arbitrary contents of the
//! shared memory, for either end.
//!
//! Nothing outside the memory is read, each session ends, and each frame is counted.
#![no_main]

use std::cell::RefCell;
use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use libfuzzer_sys::fuzz_target;
use pollux_mempool::Mempool;
use pollux_pmd::drivers::vhost_user::hostile::{back_end, front_end};
use pollux_pmd_fuzz::{Input, assert_full, pool};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};

thread_local! {
    static POOL: Mempool = pool(64, 2048);
}

/// Bytes of the memory that a front end shares, and its address there.
const MEMORY: usize = 1 << 15;
const AT: u64 = 1 << 40;

/// Defined values, or any.
fn word(input: &mut Input) -> u64 {
    match input.u8() % 8 {
        0 => 0,
        1 => 1,
        2 => u64::from(input.u8()),
        3 => 1 << (input.u8() % 64),
        4 => AT + u64::from(input.u16()),
        5 => MEMORY as u64,
        // Version 1, and any other feature of rings.
        6 => 1 << 32 | u64::from(input.u8()) << 30 | u64::from(input.u16()),
        _ => input.u64(),
    }
}

fn words<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.map(u64::to_ne_bytes).concat()
}

fn halves<const N: usize>(halves: [u32; N]) -> Vec<u8> {
    halves.map(u32::to_ne_bytes).concat()
}

/// Valid content of a request with that number: its payload, and the number of memory files.
fn content(input: &mut Input, request: u32) -> (Vec<u8>, usize) {
    let index = u32::from(input.u8() % 3);
    match request {
        5 => {
            let regions = u32::from(input.u8() % 3);
            let region = |i: u64| words([AT + i * AT, MEMORY as u64, AT + i * AT, 0]);
            let table = (0..regions).flat_map(|i| region(i.into()));
            let table = halves([regions, 0]).into_iter().chain(table).collect();
            (table, regions as usize)
        }
        8 => (halves([index, 1 << (input.u8() % 9)]), 0),
        9 => {
            let at = |offset| AT + offset;
            let rings = words([at(0), at(0x1000), at(0x2000), 0]);
            ([halves([index, 0]), rings].concat(), 0)
        }
        10 | 11 | 18 => (halves([index, u32::from(input.u8() % 2) * 0x8000_8001]), 0),
        12..=14 => match input.u8() % 4 {
            0 => (words([index.into()]), 1),
            _ => (words([u64::from(index) | 1 << 8]), 0),
        },
        2 | 16 | 20 => (words([word(input)]), 0),
        _ => (Vec::new(), 0),
    }
}

/// The messages of a front end up to the start of its rings, for inputs that test the rings.
fn all_is_well(peer: &UnixStream, memory: BorrowedFd, features: u64) {
    let one = |request: u32, payload: Vec<u8>, fds: &[BorrowedFd]| {
        let header = halves([request, 1, payload.len() as u32]);
        send(peer, &[header, payload].concat(), fds);
    };
    let base = if features >> 34 & 1 == 0 {
        0
    } else {
        0x8000_8000
    };
    let region = words([AT, MEMORY as u64, AT, 0]);
    one(2, words([1 << 32 | 1 << 30 | features]), &[]);
    one(5, [halves([1, 0]), region].concat(), &[memory]);
    for index in 0..2 {
        let at = AT + u64::from(index) * (MEMORY as u64 / 4);
        let rings = words([at, at + 0x800, at + 0x1000, 0]);
        one(8, halves([index, 16]), &[]);
        one(10, halves([index, base]), &[]);
        one(9, [halves([index, 0]), rings].concat(), &[]);
        one(12, words([u64::from(index) | 1 << 8]), &[]);
        one(18, halves([index, 1]), &[]);
    }
}

/// A message of either side, mostly a valid one.
fn message(input: &mut Input, reply: bool) -> (Vec<u8>, usize) {
    let request = u32::from(input.u8() % 45);
    let flags = match input.u8() % 16 {
        0 => u32::from(input.u8()),
        n => 1 | u32::from(n) & 8 | if reply { 4 } else { 0 },
    };
    let (mut payload, mut fds) = match reply {
        true => (words([word(input)]), 0),
        false => content(input, request),
    };
    match input.u8() {
        // One part of it is corrupted.
        0..24 if !payload.is_empty() => {
            let at = usize::from(input.u8()) % payload.len();
            payload[at] = input.u8();
        }
        24..32 => payload = input.bytes(32).to_vec(),
        32..40 => fds = usize::from(input.u8() % 10),
        _ => {}
    }
    let header = halves([request, flags, payload.len() as u32]);
    ([header, payload].concat(), fds)
}

fn send(socket: &UnixStream, bytes: &[u8], fds: &[BorrowedFd]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let _ = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags);
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let memory: OwnedFd = memfd_create("peer", MemfdFlags::CLOEXEC).expect("a memory file");
    ftruncate(&memory, MEMORY as u64).expect("its size");
    let null = File::open("/dev/null").expect("/dev/null");
    let (peer, socket) = UnixStream::pair().expect("sockets");
    let is_back_end = input.u8() % 4 != 0;
    let kind = input.u8();
    if is_back_end && kind % 2 == 0 {
        let rings = [0, 1 << 34, 1 << 35, 3 << 34][usize::from(kind / 2 % 4)];
        all_is_well(&peer, memory.as_fd(), rings | u64::from(kind & 8) << 12);
    }
    for _ in 0..input.u8() % 32 {
        let (bytes, fds) = message(&mut input, !is_back_end);
        let other = input.u8() % 32 == 0;
        let fd = if other { null.as_fd() } else { memory.as_fd() };
        send(&peer, &bytes, &[fd; 16][..fds]);
    }
    if input.u8() % 4 == 0 {
        let rest = input.u8().into();
        send(&peer, input.bytes(rest), &[]);
    }
    peer.shutdown(Shutdown::Write).expect("the end");
    let input = RefCell::new(input);
    POOL.with(|pool| {
        let ended = if is_back_end {
            back_end(pool, socket, |queues| {
                let mut input = input.borrow_mut();
                // The rings, and the addresses that their descriptors name.
                for _ in 0..input.u8() % 4 {
                    let at = u64::from(input.u16()) % MEMORY as u64;
                    let bytes = match input.u8() % 2 {
                        0 => word(&mut input).to_ne_bytes().to_vec(),
                        _ => input.bytes(16).to_vec(),
                    };
                    let _ = rustix::io::pwrite(&memory, &bytes, at);
                }
                queues.poll(usize::from(input.u8() % 4));
                let mut answers = [0; 4096];
                while recv(&peer, &mut answers[..], RecvFlags::DONTWAIT).is_ok_and(|n| n.0 > 0) {}
            })
        } else {
            // Frames in flight would be waited for, each time.
            front_end(pool, socket, |queues| queues.poll(0))
        };
        assert!(ended.is_some());
        assert_full(pool);
    });
});
