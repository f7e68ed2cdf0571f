//! Speed of shared memory: PUT beside memcpy between the same buffers, and messages to and fro beside a
//! cache line to and fro. Medians of turns, which alternate.
//!
//! `cargo run --release -p pollux-rdma --example shm_speed`; on two cores of their own.
#![allow(clippy::unwrap_used)]

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pollux_mempool::region::MemoryRegion;
use pollux_pmd::lcore;
use pollux_rdma::{
    Access, Buffer, Endpoint, Event, Memory, Message, PathOptions, Payload, Put, QpOptions,
    QueuePair, Receive, shm,
};

const TURNS: usize = 9;
const ROUNDS: u64 = 20_000;

fn main() {
    let (left, right) = UnixStream::pair().unwrap();
    let other = std::thread::spawn(|| shm::endpoint(right, 4).unwrap());
    let (mut here, _) = shm::endpoint(left, 4).unwrap();
    let (mut there, _) = other.join().unwrap();
    for bytes in [64 << 10, 1 << 20] {
        // A thread hands its core down to those that it starts.
        std::thread::scope(|scope| {
            scope.spawn(|| put(&mut here, &mut there, bytes));
        });
    }
    messages(&mut here, &mut there);
}

fn pair(here: &mut Endpoint, there: &mut Endpoint) -> [QueuePair; 2] {
    let options = QpOptions::default();
    let a = here.create_queue_pair(&options).unwrap();
    let b = there.create_queue_pair(&options).unwrap();
    let path = PathOptions::default();
    here.connect(&a, &b.address(), &path).unwrap();
    there.connect(&b, &a.address(), &path).unwrap();
    [a, b]
}

fn median(mut values: [f64; TURNS]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[TURNS / 2]
}

fn report(name: &str, ours: [f64; TURNS], peer: [f64; TURNS], unit: &str) {
    let ratios = std::array::from_fn(|n| ours[n] / peer[n]);
    println!(
        "{name}: {:.2} {unit}, peer {:.2} {unit}, ratio {:.2}",
        median(ours),
        median(peer),
        median(ratios)
    );
}

/// A region, registered, and its first byte.
fn memory(end: &mut Endpoint, bytes: usize, access: Access) -> (Buffer, *mut u8) {
    let region = MemoryRegion::builder(bytes).build().unwrap();
    let start = region.as_ptr().as_ptr();
    let memory = Memory::new(region);
    let buffer = end.register_buffer(&memory, 0..bytes, access).unwrap();
    buffer.write(0, &vec![1; bytes]).unwrap();
    (buffer, start)
}

fn put(here: &mut Endpoint, there: &mut Endpoint, bytes: usize) {
    lcore::pin("put", 0).unwrap();
    let (from, source) = memory(here, bytes, Access::LOCAL);
    let (into, target) = memory(there, bytes, Access::WRITE);
    let [mut qp, _peer] = pair(here, there);
    let count = (256 << 20) / bytes;
    let gigabytes = |start: Instant| (count * bytes) as f64 / 1e9 / start.elapsed().as_secs_f64();
    let (mut ours, mut peer) = ([0.0; TURNS], [0.0; TURNS]);
    for n in 0..TURNS {
        let start = Instant::now();
        for _ in 0..count {
            // SAFETY: both regions have so many bytes, and live as long as their buffers; there is no
            // other thread that accesses them.
            unsafe { std::ptr::copy_nonoverlapping(source, target, bytes) };
            std::hint::black_box(target);
        }
        peer[n] = gigabytes(start);
        let start = Instant::now();
        for cookie in 0..count as u64 {
            let put = Put {
                cookie,
                payload: Payload::Indirect(from.part(0, bytes as u32)),
                to: into.remote(),
                immediate: None,
            };
            qp.put(put).unwrap();
            qp.doorbell();
            while qp.poll_event().is_none() {}
        }
        ours[n] = gigabytes(start);
    }
    report(&format!("put_shm {} KiB", bytes >> 10), ours, peer, "GB/s");
}

/// Sends 8 B and waits for 8 B, or the other way round.
fn exchange(qp: &mut QueuePair, into: &Buffer, begins: bool) {
    let send = |qp: &mut QueuePair| {
        let message = Message {
            cookie: 0,
            payload: Payload::Immediate(&[7; 8]),
            immediate: None,
        };
        qp.send(message).unwrap();
        qp.doorbell();
    };
    for _ in 0..ROUNDS {
        if begins {
            send(qp);
        }
        while !matches!(qp.poll_event(), Some(Event::Received(_))) {}
        let to = into.part(0, 8);
        // Shown by the doorbell of the answer.
        qp.post_receive(Receive { cookie: 0, to }).unwrap();
        if !begins {
            send(qp);
        }
    }
}

fn messages(here: &mut Endpoint, there: &mut Endpoint) {
    let (here_into, _) = memory(here, 4096, Access::LOCAL);
    let (there_into, _) = memory(there, 4096, Access::LOCAL);
    let [mut a, mut b] = pair(here, there);
    for _ in 0..63 {
        let receive = |buffer: &Buffer| Receive {
            cookie: 0,
            to: buffer.part(0, 8),
        };
        a.post_receive(receive(&here_into)).unwrap();
        b.post_receive(receive(&there_into)).unwrap();
    }
    a.doorbell();
    b.doorbell();
    let nanoseconds = |elapsed: Duration| elapsed.as_nanos() as f64 / ROUNDS as f64;
    let (mut ours, mut peer) = ([0.0; TURNS], [0.0; TURNS]);
    for n in 0..TURNS {
        peer[n] = nanoseconds(cache_line());
        ours[n] = nanoseconds(both(
            || exchange(&mut a, &here_into, true),
            || exchange(&mut b, &there_into, false),
        ));
    }
    report("nap_shm 8 B", ours, peer, "ns");
}

/// Time of the first, while the second runs on another core.
fn both(first: impl FnOnce() + Send, second: impl FnOnce() + Send) -> Duration {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            lcore::pin("second", 1).unwrap();
            second();
        });
        let first = scope.spawn(|| {
            lcore::pin("first", 0).unwrap();
            let start = Instant::now();
            first();
            start.elapsed()
        });
        first.join().unwrap()
    })
}

/// A cache line that two cores write in turn.
fn cache_line() -> Duration {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let line = Line(AtomicU64::new(0));
    let wait = |value| while line.0.load(Ordering::Acquire) != value {};
    both(
        || {
            for n in 0..ROUNDS {
                line.0.store(2 * n + 1, Ordering::Release);
                wait(2 * n + 2);
            }
        },
        || {
            for n in 0..ROUNDS {
                wait(2 * n + 1);
                line.0.store(2 * n + 2, Ordering::Release);
            }
        },
    )
}
