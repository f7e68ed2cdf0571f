//! Into the memory of a receiver: the bytes of lines, buffers that are not free, and a receiver that lies.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use pollux_emulator::images::config::ImagesConfig;
use pollux_emulator::images::link::{RdmaError, RdmaLink, RdmaOptions};
use pollux_emulator::images::source::{ImageSource, ImagesReport};
use pollux_emulator::images::stack::Headers;
use pollux_images::stack::{StackLayout, TAKEN, stack_name};
use pollux_mempool::region::MemoryRegion;
use pollux_mempool::time::Ns;
use pollux_mempool::{Mempool, PoolCache, PoolConfig};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{Capabilities, PortConfig, Registry, RxQueue, StartedPort, TscClock, TxQueue};
use pollux_rdma::exchange::{Description, Listener, Offered};
use pollux_rdma::roce::{RoceEndpoint, RoceOptions};
use pollux_rdma::{
    Access, Event, Key, Local, Memory, PathOptions, Payload, Put, QpKind, QpOptions, Receive,
};
use zerocopy::IntoBytes as _;

use crate::receiver::{small, stack};

/// Long enough for any machine.
const LONG: Duration = Duration::from_mins(1);
/// From the start of a run on; what its receiver has not taken by then, it never takes.
const REST: Duration = Duration::from_secs(1);
const BUFFERS: usize = 2;

/// The queues of a port at a socket, and what an endpoint needs of it.
fn port(
    folder: &std::path::Path,
    own: &str,
    peer: &str,
) -> (Capabilities, (RxQueue, TxQueue), PoolCache) {
    let path = |name| folder.join(name).display().to_string();
    let pool = Mempool::new(PoolConfig {
        buffers: 2048,
        data_room: 5120,
        ..PoolConfig::default()
    });
    let pool = pool.unwrap();
    let spec = format!("unix:{},peer={}", path(own), path(peer));
    let port = Registry::builtin().open(&spec).unwrap();
    let offered = port.capabilities();
    let port = port.configure(PortConfig::new(pool.clone())).unwrap();
    let StartedPort { mut rx, mut tx, .. } = port.start().unwrap();
    let queues = (rx.pop().unwrap(), tx.pop().unwrap());
    (offered, queues, pool.cache(256).unwrap())
}

/// What a receiver has seen: immediate values in their order, and the bytes of its buffers at the end.
struct Seen {
    announced: Vec<u32>,
    buffers: Vec<Vec<u8>>,
}

/// A receiver that tells `taken` of the announcements so far, until `ended`.
fn receive(
    listener: &Listener,
    (offered, queues, cache): (Capabilities, (RxQueue, TxQueue), PoolCache),
    bytes: usize,
    taken: impl Fn(&[u32]) -> u32,
    ended: &Receiver<()>,
) -> Seen {
    let options = RoceOptions::new(Ipv4Addr::new(198, 18, 0, 1));
    let (control, mut roce) = RoceEndpoint::new(&options, &offered, queues, cache).unwrap();
    let mut endpoint = control.endpoint();
    let memory = Memory::new(MemoryRegion::builder(BUFFERS * bytes).build().unwrap());
    let range = |n| n * bytes..(n + 1) * bytes;
    let buffers = (0..BUFFERS).map(|n| endpoint.register_buffer(&memory, range(n), Access::WRITE));
    let buffers: Vec<_> = buffers.collect::<Result<_, _>>().unwrap();
    let unreliable = QpOptions {
        kind: QpKind::Unreliable,
        ..QpOptions::default()
    };
    let mut qp = endpoint.create_queue_pair(&unreliable).unwrap();
    let receive = Receive {
        cookie: 0,
        to: Local {
            key: Key(0),
            offset: 0,
            len: 0,
        },
    };
    for _ in 0..unreliable.receives {
        qp.post_receive(receive).unwrap();
    }
    let all = buffers.iter().enumerate();
    let ours = Description {
        qp: qp.address(),
        kind: qp.kind(),
        mtu: control.mtu(),
        buffers: all
            .map(|(n, buffer)| Offered {
                name: stack_name(n),
                buffer: buffer.remote(),
                bytes: bytes as u64,
                access: Access::WRITE,
            })
            .collect(),
    };
    let mut channel = listener.accept(LONG).unwrap();
    let theirs = ours.exchange(&mut channel).unwrap();
    let path = PathOptions {
        mtu: ours.agree(&theirs).unwrap(),
        ..PathOptions::default()
    };
    endpoint.connect(&qp, &theirs.qp, &path).unwrap();
    let counter = theirs.buffer(TAKEN).unwrap().buffer;
    let (begin, mut announced) = (Instant::now(), Vec::new());
    while ended.try_recv() == Err(TryRecvError::Empty) {
        roce.poll(Ns(begin.elapsed().as_nanos() as u64));
        while let Some(event) = qp.poll_event() {
            if let Event::Received(received) = event {
                announced.push(received.immediate.unwrap());
                qp.post_receive(receive).unwrap();
            }
        }
        let _ = qp.put(Put {
            cookie: 0,
            payload: Payload::Immediate(&taken(&announced).to_le_bytes()),
            to: counter,
            immediate: None,
        });
        qp.doorbell();
    }
    let read = |n| {
        let mut all = vec![0; bytes];
        memory.read(n * bytes, &mut all).unwrap();
        all
    };
    Seen {
        announced,
        buffers: (0..BUFFERS).map(read).collect(),
    }
}

/// Sends all frames of a configuration to a receiver that tells `taken` of the announcements so far.
fn send(
    config: &ImagesConfig,
    waits: bool,
    bytes: usize,
    taken: impl Fn(&[u32]) -> u32 + Send + 'static,
) -> Result<(ImagesReport, Seen), RdmaError> {
    let folder = tempfile::tempdir().unwrap();
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let to = listener.address().unwrap();
    let (end, ended) = channel::<()>();
    let queues = port(folder.path(), "r", "s");
    let receiver = std::thread::spawn(move || receive(&listener, queues, bytes, taken, &ended));
    let (offered, queues, cache) = port(folder.path(), "s", "r");
    let options = RdmaOptions {
        to: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), to.port()),
        waits,
        patience: LONG,
        stop: StopFlag::new(),
    };
    let connected = RdmaLink::connect(config, &stack(config), &offered, queues, cache, &options);
    let sent = connected.map(|(link, _connections)| {
        let stop = StopFlag::new();
        let mut source =
            ImageSource::new(config, stack(config), link, TscClock::get(), stop.clone());
        let begin = Instant::now();
        while source.poll() {
            let is_made = source.control().frames.get() == config.frames;
            if is_made && !waits && begin.elapsed() > REST {
                stop.stop();
            }
        }
        source.report()
    });
    drop(end);
    let seen = receiver.join().unwrap();
    sent.map(|report| (report, seen))
}

/// Distinct announcements, which may be repeated.
fn stacks(seen: &Seen) -> Vec<u32> {
    let mut stacks = seen.announced.clone();
    stacks.dedup();
    stacks
}

/// Each line of each image is at its place, its header behind it, and stacks follow each other in the buffers.
#[test]
fn lines_are_where_the_receiver_expects_them() {
    let config = ImagesConfig {
        frames: 7,
        interfaces: 2,
        ..small()
    };
    let images = stack(&config);
    let layout = *images.layout();
    let geometry = StackLayout::new(&layout, 2);
    let all = |announced: &[u32]| announced.last().map_or(0, |last| last + 1);
    let (report, seen) = send(&config, true, geometry.bytes(), all).unwrap();
    assert!(report.complete, "{report:?}");
    // The last stack has one image alone.
    assert_eq!(stacks(&seen), [0, 1, 2, 3]);
    let counts = report.stacks.unwrap();
    assert_eq!((counts.announced, counts.taken, counts.overrun), (4, 4, 0));
    let headers = Headers::new(&config, &layout);
    for (frame, stack, image) in [(5, 2, 0), (6, 2, 1), (7, 3, 0)] {
        for line in 0..geometry.lines() {
            let (sender, packet) = (line / layout.packets(), line % layout.packets());
            let found = &seen.buffers[stack % BUFFERS][geometry.offset(image, line)..];
            let (pixels, rest) = found.split_at(geometry.pixel_bytes());
            assert!(pixels == images.pixels(images.place(frame, sender, packet)));
            assert!(
                rest.starts_with(headers.of(frame, sender, packet).as_bytes()),
                "{frame} {line}"
            );
        }
    }
}

/// Stacks without a buffer are lost and counted, whatever the receiver says it has taken.
#[test]
fn a_stack_without_a_free_buffer_is_overrun() {
    let config = small();
    let one = StackLayout::new(stack(&config).layout(), 1);
    // Nothing, or a number that cannot be once both buffers are full.
    for lie in [0, 1 << 31] {
        let taken = move |announced: &[u32]| if announced.len() < 2 { 0 } else { lie };
        let (report, seen) = send(&config, false, one.bytes(), taken).unwrap();
        let counts = report.stacks.unwrap();
        assert_eq!(
            (counts.announced, counts.taken, counts.overrun),
            (2, 0, 4),
            "{report:?}"
        );
        assert!(!report.complete);
        let lines = one.lines() as u64;
        assert_eq!(
            (report.packets_sent, report.send_errors),
            (2 * lines, 4 * lines)
        );
        assert_eq!(
            report.done.packets_made,
            report.packets_sent + report.send_errors
        );
        // Both are announced; the last one again and again.
        assert_eq!(stacks(&seen), [0, 1]);
        // Neither was overwritten.
        let headers = Headers::new(&config, stack(&config).layout());
        for (frame, buffer) in (1..).zip(&seen.buffers) {
            let header = headers.of(frame, 0, 0);
            assert!(buffer[one.pixel_bytes()..].starts_with(header.as_bytes()));
        }
    }
}

/// Buffers that hold no whole images are refused, with what is needed.
#[test]
fn buffers_of_another_detector_are_refused() {
    let config = small();
    let one = StackLayout::new(stack(&config).layout(), 1);
    let refused = send(&config, false, one.bytes() + 64, |_| 0)
        .map(drop)
        .unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("2 buffers, the first `stack 0`"), "{text}");
    assert!(
        text.contains(&format!("whole images of {} B", one.bytes())),
        "{text}"
    );
}
