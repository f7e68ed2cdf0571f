//! The loops of a run, from packets on a port to images for the outputs, neither allocate nor enter the
//! kernel after their start. There is no warm-up: the first image counts as the last one does.
#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::mpsc::{Receiver as Outputs, sync_channel};

use arc_swap::ArcSwap;
use pollux_images::Shape;
use pollux_images::calibration::{Calibration, Map, PedestalTracker, TrackingConfig};
use pollux_images::convert::Converter;
use pollux_images::formats::{Header, Layout, write_packet};
use pollux_images::receive::{ReceiveConfig, Route, images};
use pollux_images::stages::{Capacity, ImagesEnv, image_stages};
use pollux_images::statistics::ImageStatistics;
use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pipelines::in_flight::{InFlight, InFlightOptions};
use pollux_pipelines::{DynStage, Pipeline, StageEnv};
use pollux_pmd::endpoint::{Classifier, Receiver};
use pollux_pmd::lcore::idle::IdlePolicy;
use pollux_pmd::net::{MacAddr, ParseOptions, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::stream::{DemuxBuilder, StreamId};
use pollux_pmd::{ClockChoice, PortConfig, Registry, StartedPort};
use pollux_pmd_testkit::guard::{Noise, listen};

use super::super::observe::Statistics;
use super::super::packets::{Input, PacketReception};
use super::super::place::PlaceConverted;
use super::super::workers::{self, Stacking, Worker};
use super::*;
use crate::config::DarkConfig;

const FRAMES: u64 = 18;
const PORT: u16 = 50_001;
const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Time from frame to frame, which is that of the clock here.
const PERIOD: Ns = Ns(1_000_000);

const STAGES: &str = r#"stage = [
    { name = "veto", min_photons = 10.0, min_pixels = 20 },
    { name = "peaks", min_peaks = 2, criteria = { max_peaks = 64 } },
    { name = "integrate", geometry = { dist = 0.1, poni1 = 0.02, poni2 = 0.04, pixel1 = 75e-6, pixel2 = 75e-6, wavelength = 1e-10 } },
    COMPRESS,
]"#;

/// What the loops work with, on a loopback that the test sends by.
struct Rig {
    images: ImageLoop<i16, PlaceConverted<i16>, Statistics<i16>>,
    worker: Option<Worker<i16>>,
    outputs: Outputs<Work<i16>>,
    tx: TxQueue,
    cache: PoolCache,
}

impl Rig {
    #[expect(
        clippy::too_many_lines,
        reason = "the parts of a run, one after another"
    )]
    fn new(compress: &str, stack: usize, with_worker: bool) -> Self {
        let pool = Mempool::new(PoolConfig {
            buffers: 1024,
            data_room: 8704,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let port = Registry::builtin().open("loopback").unwrap();
        let offered = port.capabilities();
        let config = PortConfig {
            ring: 512,
            ..PortConfig::new(pool.clone())
        };
        let StartedPort { rx, mut tx, .. } = port.configure(config).unwrap().start().unwrap();

        let shape = Shape::JUNGFRAU_MODULE;
        let map = |value| Map::new("map", vec![value; shape.pixels()]);
        let maps = |values: [f32; 3]| values.map(map);
        let calibration = Calibration::new(
            shape,
            maps([2500.0, 13_600.0, 14_100.0]),
            maps([500.0, -18.0, -1.4]),
            vec![false; shape.pixels()],
        );
        let calibration = calibration.unwrap();
        let dark = DarkConfig {
            every: 4,
            phase: None,
            tracking: TrackingConfig::default(),
        };
        let converters: super::super::place::Converters =
            Arc::new([ArcSwap::from_pointee(Converter::new(&calibration))]);
        let tracker = PedestalTracker::new(&calibration, dark.tracking).unwrap();
        let modules = vec![(tracker, Converter::new(&calibration))];

        let table: toml::Table = STAGES.replace("COMPRESS", compress).parse().unwrap();
        let stages: Vec<toml::Table> = table["stage"].clone().try_into().unwrap();
        let streams = vec![StreamId(0), StreamId(1)];
        let layout = Layout::jungfrau(1, 2).unwrap();
        let receive = ReceiveConfig {
            buffers: 16,
            timeout: Ns(2 * PERIOD.0),
            notes: super::super::notes::of_stages(&stages),
            ..ReceiveConfig::new(layout, Route::Streams(streams))
        };
        let (placer, reader) = images::<i16>(&receive).unwrap();
        let mut env = StageEnv::new();
        env.insert(ImagesEnv::new(shape, 512));
        let registry = image_stages::<i16>();
        let mut chain = registry.pipeline(&stages, &mut env).unwrap();
        let mut worker = None;
        if with_worker {
            let stacking = Stacking {
                images: stack,
                wait: Ns(100_000_000),
            };
            let (pool, mut all) =
                workers::pool(vec![chain], stacking, &StopFlag::new(), false).unwrap();
            let options = InFlightOptions {
                jobs: 2,
                ..InFlightOptions::default()
            };
            let in_flight = DynStage::new("workers", InFlight::new(pool, &options));
            chain = Pipeline::new(vec![in_flight]).unwrap();
            worker = all.pop();
        }
        let place = PlaceConverted {
            placer,
            converters: Arc::clone(&converters),
            dark: Some(dark.clone()),
        };
        let demux = DemuxBuilder::new().port(PORT, StreamId(0));
        let demux = demux.port(PORT + 1, StreamId(1)).build().unwrap();
        let receiver = Receiver::new(Classifier::new(ParseOptions::default()), demux, None);
        let inputs = rx.into_iter().map(|rx| Input { rx, port: 0 });
        let hosts = vec![(offered, None)];
        let cache = pool.cache(256).unwrap();
        let packets = PacketReception::new(inputs.collect(), hosts, IP, receiver, cache, place);
        let reception = Reception::Packets(packets);
        let observer = Statistics {
            images: ImageStatistics::new(shape).unwrap(),
            tap: None,
        };
        let clock = TscClock::get();
        let (sender, outputs) = sync_channel(1);
        let counts = Arc::<ImageCounts>::default();
        let sink = ImageSink::new(
            Some(sender),
            false,
            true,
            None,
            observer,
            Arc::clone(&counts),
            clock,
        );
        let images = ImageLoop {
            received: vec![reception.received_until()],
            reception: Some(reception),
            reader,
            desk: Desk::new(8, env.get::<Capacity>().unwrap()),
            chain,
            sink,
            dark: Some(Dark::new(dark, converters, modules)),
            counts,
            last_rounds: 8,
            most: None,
            clock,
            jitter: JitterMeter::new(clock),
            idle: Idle::new(IdlePolicy::default(), PERIOD, std::iter::empty()).unwrap(),
            stop: StopFlag::new(),
            recorded: false,
            gives_way: false,
            waiting: None,
            batch: Batch::with_capacity(1),
        };
        Self {
            images,
            worker,
            outputs,
            tx: tx.pop().unwrap(),
            cache: pool.cache(256).unwrap(),
        }
    }

    /// Sends a frame: some without a packet, some with copies.
    fn send(&mut self, number: u64) {
        let template = |interface: u16| {
            let end = |last: u8, port| UdpEndpoint {
                mac: MacAddr([2, 0, 0, 0, 0, last]),
                socket: SocketAddrV4::new([10, 0, 0, last].into(), port),
            };
            UdpTemplate::new(end(1, 4000), end(2, PORT + interface))
        };
        let mut header = Header::new(pollux_images::formats::Detector::Jungfrau);
        header.frame_number = number.into();
        let mut payload = vec![0; 48 + 8192];
        for packet in 0..128_u64 {
            header.packet_number = ((packet % 64) as u32).into();
            let pixels: Vec<u8> = (0..4096_u64)
                .flat_map(|pixel| raw(number, packet * 4096 + pixel).to_le_bytes())
                .collect();
            write_packet(&header, &pixels, &mut payload).unwrap();
            let copies = match (number * 128 + packet) % 301 {
                7 => 0,
                9 => 2,
                _ => 1,
            };
            let to = template((packet / 64) as u16);
            for _ in 0..copies {
                let mut mbuf = self.cache.alloc().unwrap();
                let frame = mbuf.append(UDP_HEADERS + payload.len()).unwrap();
                frame[UDP_HEADERS..].copy_from_slice(&payload);
                to.write(frame, payload.len()).unwrap();
                let mut burst = Burst::<1>::new();
                assert!(burst.push(mbuf).is_ok());
                assert_eq!(self.tx.tx(&mut self.cache, &mut burst), 1);
            }
        }
    }
}

/// A raw pixel: noise around the pedestal, and peaks of 3 x 3 pixels in two images of three.
fn raw(frame: u64, pixel: u64) -> u16 {
    let (row, column) = (pixel / 1024, pixel % 1024);
    let noise = (pixel.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as u16;
    let in_peak = row % 64 < 3 && column % 128 < 3 && row > 64 && column > 128;
    let photons = if in_peak && !frame.is_multiple_of(3) {
        20
    } else {
        0
    };
    2493 + noise + 500 * photons
}

/// Runs the loops under observation; every case has to occur.
fn run(compress: &str, stack: usize, with_worker: bool) -> Option<Noise> {
    if TscClock::select(ClockChoice::Tsc).is_err() {
        println!(
            "skipped: the kernel's clock is in use, as neither CPU nor kernel trusts the other"
        );
        return None;
    }
    let noise = listen(|ear| {
        let mut rig = Rig::new(compress, stack, with_worker);
        let start = rig.images.clock.now();
        rig.images.begin(start);
        let mut outputs = 0;
        for number in 0..FRAMES {
            rig.send(number);
            let time = PERIOD.0 * (number + 1);
            let now = Tsc(start.0 + rig.images.clock.to_cycles(Ns(time)));
            ear.during(|| {
                for _ in 0..24 {
                    rig.images.round(start, now);
                    while rig.worker.as_mut().is_some_and(Worker::process_next) {}
                }
            });
            // For a while nothing is taken, so that the queue becomes full.
            if number % 9 < 4 {
                outputs += rig.outputs.try_iter().count();
            }
        }
        let counts = &rig.images.counts;
        let frames = rig.images.reader.counts();
        assert!(
            outputs > 0 && counts.built.get() >= FRAMES / 2,
            "{counts:?}"
        );
        assert!(counts.dark.get() > 0 && counts.kept.get() > 0, "{counts:?}");
        assert!(
            counts.vetoed.get() > 0 && counts.peaks.get() > 0,
            "{counts:?}"
        );
        assert!(counts.overrun.get() > 0, "{counts:?}");
        assert!(frames.partial.get() > 0 && frames.complete.get() > 0);
    });
    Some(noise.1)
}

#[test]
fn the_image_loop_only_works() {
    let dense = run(r#"{ name = "compress" }"#, 1, false);
    dense.iter().for_each(Noise::assert_none);
    let sparse = r#"{ name = "compress", method = "sparse", min_photons = 1.0 }"#;
    run(sparse, 1, false).iter().for_each(Noise::assert_none);
}

#[test]
fn workers_and_their_loop_only_work() {
    for stack in [1, 2] {
        let noise = run(r#"{ name = "compress" }"#, stack, true);
        noise.iter().for_each(Noise::assert_none);
    }
}

/// The loop is held up for longer than an image waits for its packets, which are in its queue.
#[test]
fn a_loop_that_is_held_up_closes_no_image() {
    if TscClock::select(ClockChoice::Tsc).is_err() {
        println!(
            "skipped: the kernel's clock is in use, as neither CPU nor kernel trusts the other"
        );
        return;
    }
    let mut rig = Rig::new(r#"{ name = "compress" }"#, 1, false);
    let start = rig.images.clock.now();
    let at =
        |clock: &TscClock, periods: u64| Tsc(start.0 + clock.to_cycles(Ns(PERIOD.0 * periods)));
    rig.images.begin(start);
    // A frame of which no packet is lost.
    rig.send(1);
    let clock = rig.images.clock;
    rig.images.round(start, at(&clock, 1));
    for _ in 0..8 {
        rig.images.round(start, at(&clock, 1000));
    }
    let frames = rig.images.reader.counts();
    assert_eq!((frames.complete.get(), frames.partial.get()), (1, 0));
    // One that lacks a packet is late when the queues have been empty for long enough.
    rig.send(2);
    for round in 1001..1020 {
        rig.images.round(start, at(&clock, round));
    }
    assert_eq!((frames.complete.get(), frames.partial.get()), (1, 1));
}
