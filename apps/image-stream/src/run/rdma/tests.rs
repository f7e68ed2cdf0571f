//! The loops of stacks, on a loopback between an emulated detector and its receiver.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pollux_emulator::images::config::ImagesConfig;
use pollux_emulator::images::link::{Connections, PacketLink as _, RdmaLink, RdmaOptions};
use pollux_emulator::images::source::ImageSource;
use pollux_emulator::images::stack::Stack;
use pollux_emulator::images::synthesis::Synthesis;
use pollux_images::formats::Layout;
use pollux_images::receive::{ImageReader, ReceiveConfig, Route, images};
use pollux_images::stack::{StackLayout, TAKEN};
use pollux_mempool::region::MemoryRegion;
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pipelines::Moment;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::net::MacAddr;
use pollux_pmd::port::{Port, Started, StartedPort};
use pollux_pmd::stream::StreamId;
use pollux_pmd::{
    Capabilities, Clock as _, ClockChoice, PortConfig, Registry, RxQueue, TscClock, TxQueue,
};
use pollux_pmd_testkit::guard::listen;
use pollux_rdma::exchange::{Channel, Description, Offered};
use pollux_rdma::roce::{RoceEndpoint, RoceOptions};
use pollux_rdma::{Access, Key, Memory, Mtu, Psn, QpAddress, QpKind, QpNumber, RemoteBuffer};

use super::counts::{self, RdmaView};
use super::reception::StackReception;
use super::seat::Seat;
use super::sources::{PATIENCE, Place, Source, Sources};
use super::stacks::Stacks;
use super::state;
use crate::run::place::PlaceRaw;

/// Long enough for any machine.
const LONG: Duration = Duration::from_mins(1);
/// Rounds that are enough for all that is under way.
const ROUNDS: usize = 10_000;
/// Images of a stack, and stack buffers of a module.
const IMAGES: usize = 2;
const STACKS: usize = 2;

/// An emulated detector, and what it has of the receiver.
struct Detector {
    source: ImageSource<RdmaLink, TscClock>,
    connections: Connections,
    at_receiver: Source,
}

/// A receiver, and the other end of its port.
struct Rig {
    places: Vec<Place>,
    reception: StackReception<PlaceRaw<u16>>,
    reader: ImageReader<u16>,
    view: RdmaView,
    address: SocketAddr,
    pool: Mempool,
    offered: Capabilities,
    /// Those of the detector.
    queues: Option<(RxQueue, TxQueue)>,
    clock: TscClock,
    start: Tsc,
    stop: StopFlag,
    _port: Port<Started>,
}

/// An address whose port is free, and the next one.
fn free() -> SocketAddr {
    loop {
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let first = bind(0).unwrap().local_addr().unwrap();
        let next = first.port().checked_add(1);
        if next.is_some_and(|next| bind(next).is_ok()) {
            return first;
        }
    }
}

impl Rig {
    fn new(modules: usize) -> Self {
        let pool = Mempool::new(PoolConfig {
            buffers: 4096,
            data_room: 4352,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let port = Registry::builtin().open("loopback").unwrap();
        let offered = port.capabilities();
        let config = PortConfig::new(pool.clone()).rx_queues(2).tx_queues(2);
        let StartedPort {
            port,
            mut rx,
            mut tx,
        } = port.configure(config).unwrap().start().unwrap();
        // What one sends by its queue the other receives by the queue of the same number.
        let own = (rx.remove(0), tx.remove(1));
        let theirs = (rx.remove(0), tx.remove(0));
        let options = RoceOptions {
            mac: Some(MacAddr([2, 0, 0, 0, 0, 1])),
            ..RoceOptions::new(Ipv4Addr::new(198, 18, 0, 1))
        };
        let cache = pool.cache(64).unwrap();
        let (control, roce) = RoceEndpoint::new(&options, &offered, own, cache).unwrap();
        let layout = Layout::jungfrau(modules, 1).unwrap();
        let geometry = StackLayout::new(&layout, IMAGES);
        let streams = (0..layout.senders()).map(|n| StreamId(n as u16));
        let receive = ReceiveConfig {
            buffers: 16,
            timeout: Ns(1_000_000_000),
            ..ReceiveConfig::new(layout, Route::Streams(streams.collect()))
        };
        let (placer, reader) = images::<u16>(&receive).unwrap();
        let place = PlaceRaw(placer);
        let (view, all) = counts::counts(modules, place.0.view()).unwrap();
        let bytes = STACKS * geometry.bytes();
        let memory = Memory::new(MemoryRegion::builder(modules * bytes).build().unwrap());
        let (address, mut seats, mut places) = (free(), Vec::new(), Vec::new());
        for (module, counts) in all.into_iter().enumerate() {
            let (own, theirs) = state::shared();
            let stacks = Stacks::new(&memory, module * bytes, geometry, STACKS);
            let endpoint = (control.endpoint(), control.mtu());
            let place = Place::new(address, module, endpoint, stacks.clone(), theirs);
            places.push(place.unwrap());
            seats.push(Seat::new(&layout, module, stacks, own, counts));
        }
        let clock = TscClock::get();
        Self {
            places,
            reception: StackReception::new(roce, seats, layout.payload_bytes(), place),
            reader,
            view,
            address,
            pool,
            offered,
            queues: Some(theirs),
            start: clock.now(),
            clock,
            stop: StopFlag::new(),
            _port: port,
        }
    }

    fn moment(&self) -> Moment {
        Moment(self.clock.to_ns(self.clock.now().since(self.start)).0)
    }

    /// A round of the receiver, which takes images; whether there was anything.
    fn round(&mut self) -> bool {
        let is_busy = self.reception.poll(self.moment());
        while self.reader.poll(Moment(0)).is_some() {}
        is_busy
    }

    /// A round without room for images.
    fn hold(&mut self) {
        let now = self.moment();
        self.reception.serve(now);
    }

    /// Connects a detector of one module that sends so many frames.
    fn connect(&mut self, frames: u64, first_frame: u64, waits: bool) -> Detector {
        let mut config = ImagesConfig {
            stack: 2,
            frames,
            first_frame,
            rate: 0.0,
            ..ImagesConfig::default()
        };
        config.addresses.src_mac = Some(MacAddr([2, 0, 0, 0, 0, 2]));
        config.pattern.peaks = 5;
        let stack = Stack::synthetic(&Synthesis::new(&config).unwrap(), &self.stop).unwrap();
        let options = RdmaOptions {
            to: self.address,
            waits,
            patience: LONG,
            stop: self.stop.clone(),
        };
        let queues = self.queues.take().unwrap();
        let cache = self.pool.cache(64).unwrap();
        let offered = self.offered.clone();
        let (connected, at_receiver) = std::thread::scope(|scope| {
            let connecting = scope
                .spawn(|| RdmaLink::connect(&config, &stack, &offered, queues, cache, &options));
            let stop = self.stop.clone();
            let at_receiver = self.places[0].admit(&stop).unwrap();
            while !connecting.is_finished() {
                self.round();
            }
            (connecting.join().unwrap().unwrap(), at_receiver)
        });
        let (link, connections) = connected;
        let source = ImageSource::new(&config, stack, link, self.clock, self.stop.clone());
        Detector {
            source,
            connections,
            at_receiver,
        }
    }

    /// The detector ends; what is left of it at the receiver.
    fn disconnect(&mut self, detector: Detector) -> Source {
        let (mut tx, mut rx) = detector.source.into_link().into_queues();
        self.queues = rx.pop().zip(tx.pop());
        drop(detector.connections);
        detector.at_receiver
    }
}

fn stacks(detector: &Detector) -> pollux_emulator::images::link::StackCounts {
    detector.source.link().stacks().unwrap()
}

/// Neither loop allocates, frees or enters the kernel: while stacks are lost, announced again and taken, when a
/// source leaves, and when the next one comes.
#[test]
fn both_loops_only_work() {
    if TscClock::select(ClockChoice::Tsc).is_err() {
        println!("skipped: the kernel's clock is in use");
        return;
    }
    let ((), noise) = listen(|ear| {
        let mut rig = Rig::new(1);
        for (round, waits) in [false, true].into_iter().enumerate() {
            let mut detector = rig.connect(12, 1 + 12 * round as u64, waits);
            ear.during(|| {
                // Nothing is taken for a while.
                while stacks(&detector).repeated < 2 {
                    detector.source.poll();
                    rig.hold();
                }
                while detector.source.poll() {
                    rig.round();
                }
            });
            let counts = stacks(&detector);
            assert_eq!(counts.taken, counts.announced);
            assert_eq!(counts.announced + counts.overrun, 6);
            assert_eq!(counts.overrun > 0, !waits, "{counts:?}");
            let left = rig.disconnect(detector);
            let mut rounds = 0;
            while !rig.places[0].has_ended(&left) {
                ear.during(|| {
                    for _ in 0..10 {
                        rig.round();
                    }
                });
                rounds += 1;
                assert!(rounds < ROUNDS, "the source is not given back");
            }
        }
        let report = rig.view.report();
        assert_eq!(report.sources, 2);
        assert!(report.repeated >= 4 && report.stacks >= 8, "{report:?}");
    });
    noise.assert_none();
}

/// What is taken at the end of a run its source learns, which then ends itself.
#[test]
fn a_source_is_told_what_was_taken_at_the_end() {
    let mut rig = Rig::new(1);
    let mut detector = rig.connect(IMAGES as u64 * STACKS as u64, 1, true);
    while stacks(&detector).announced < STACKS as u64 {
        detector.source.poll();
        rig.hold();
    }
    for _ in 0..ROUNDS {
        assert!(detector.source.poll());
        rig.hold();
    }
    assert_eq!(stacks(&detector).taken, 0);
    rig.reception.close();
    while rig.round() {}
    assert_eq!(rig.view.report().stacks, STACKS as u64);
    let queues = rig.reception.finish();
    assert_eq!((queues.0.len(), queues.1.len()), (1, 1));
    let mut rounds = 0;
    while detector.source.poll() {
        rounds += 1;
        assert!(rounds < ROUNDS, "{:?}", stacks(&detector));
    }
    assert!(detector.source.report().complete);
}

/// A connection that is silent keeps no source of another module waiting.
#[test]
fn a_silent_connection_holds_up_no_other_module() {
    let mut rig = Rig::new(2);
    let sources = Sources::start(std::mem::take(&mut rig.places), &[]).unwrap();
    let mut silent = TcpStream::connect(rig.address).unwrap();
    // It is being served.
    assert_eq!(silent.read(&mut [0]).unwrap(), 1);
    let next = SocketAddr::new(rig.address.ip(), rig.address.port() + 1);
    let own = Description {
        qp: QpAddress {
            number: QpNumber::connectable(17).unwrap(),
            psn: Psn::new(1),
            ip: Ipv4Addr::new(198, 18, 0, 2),
            mac: Some(MacAddr([2, 0, 0, 0, 0, 2])),
        },
        kind: QpKind::Unreliable,
        mtu: Mtu::B1024,
        buffers: vec![Offered {
            name: TAKEN.into(),
            buffer: RemoteBuffer {
                address: 0,
                key: Key(1),
            },
            bytes: 4,
            access: Access::WRITE,
        }],
    };
    let mut channel = Channel::connect(next, LONG).unwrap();
    own.exchange(&mut channel).unwrap();
    while rig.view.report().sources == 0 {
        rig.round();
        assert!(rig.moment().0 < LONG.as_nanos() as u64);
    }
    silent.set_nonblocking(true).unwrap();
    let end = std::io::copy(&mut silent, &mut std::io::sink()).map_err(|error| error.kind());
    assert_eq!(end, Err(ErrorKind::WouldBlock), "it was closed before");
    drop(sources);
}

/// A run ends also while a connection is silent.
#[test]
fn a_stop_ends_an_exchange() {
    let mut rig = Rig::new(1);
    let sources = Sources::start(std::mem::take(&mut rig.places), &[]).unwrap();
    let begin = Instant::now();
    let mut silent = TcpStream::connect(rig.address).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 1);
    drop(sources);
    assert!(begin.elapsed() < PATIENCE);
}
