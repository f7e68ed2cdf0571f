//! Functions of the card beside receiving, by the released driver: datagrams, time, generated packets,
//! pages that are added and removed, interrupts.

use std::net::SocketAddrV4;
use std::sync::Arc;

use pollux_card_model::registers::{port, tlb};
use pollux_card_model::{Register, SimulatedCard, TimingInput, WireFrame};
use pollux_mempool::region::PageSize;
use pollux_mempool::time::{Ns, WireTime};
use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::Balance;
use pollux_pmd::bus::{Bus, Device};
use pollux_pmd::drivers::card::{
    Datagram, DatagramChecksum, Edge, EdgeKind, ExternalClock, Form, Generator, SendConfig,
    StreamConfig, Streams, StreamsConfig, TimingConfig, TimingFlags, Wake,
};
use pollux_pmd::event::ClopConfig;

use super::answers::{arp, sum};
use super::support::Make;
use crate::CosimDevice;
use crate::device::grant;
use crate::rig::{datagram, neighbour, peer};

/// Addresses of a rig.
const SPEC: &str = "card-sim:mac=02:00:4c:4f:4c:00,ip=10.0.0.1+10.0.1.1";

const UDP: u16 = 5000;

fn pool(data_room: usize) -> Mempool {
    let config = PoolConfig {
        buffers: 256,
        data_room,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    };
    Mempool::new(config).unwrap()
}

/// Streams on a card, and their consumer's counts.
struct Bench<C: SimulatedCard> {
    device: CosimDevice<C>,
    streams: Streams<CosimDevice<C>>,
    delivered: u64,
}

impl<C: SimulatedCard> Bench<C> {
    /// One stream of a port, with small buffers, and whatever else there is.
    fn start(make: Make<'_, C>, options: &str, port: usize, config: StreamsConfig) -> Self {
        let device = CosimDevice::new(make());
        let spec = format!("{SPEC}{options}").parse().unwrap();
        let stream = StreamConfig {
            port,
            udp: UDP,
            form: Form::Payload,
            clop: ClopConfig {
                buffers: 8,
                size: 64,
                timeout: Ns(2_000),
                ..ClopConfig::default()
            },
        };
        let config = StreamsConfig {
            streams: vec![stream],
            ..config
        };
        let streams = Streams::start(Arc::new(device.clone()), &spec, &config, grant()).unwrap();
        Self {
            device,
            streams,
            delivered: 0,
        }
    }

    fn put(&self, frame: WireFrame) {
        self.device.with(|card, _| card.put(0, frame));
        self.device.advance(Ns(5_000));
    }

    /// A payload that fills a buffer.
    fn put_payload(&self) {
        self.put(datagram(0, 7, UDP, &[3; 48]));
    }

    /// Announced payloads, with their time stamps.
    fn receive(&mut self) -> Vec<(Vec<u8>, Option<WireTime>)> {
        let mut all = Vec::new();
        for _ in 0..10 {
            self.device.advance(Ns(1_000));
            while let Some(announced) = self.streams.poll() {
                for payload in announced.buffer.payloads() {
                    let payload = payload.unwrap();
                    let wire = payload.record.and_then(|record| record.wire);
                    all.push((payload.data.to_vec(), wire));
                }
            }
        }
        self.delivered += all.len() as u64;
        all
    }

    /// All frames that a port has sent, once they have left.
    fn sent(&self) -> Vec<Vec<u8>> {
        self.device.advance(Ns(30_000));
        let take = || self.device.with(|card, _| card.take(0));
        std::iter::from_fn(take).map(|frame| frame.bytes).collect()
    }

    /// Writes a register behind the driver's back.
    fn write(&self, at: usize, value: u32) {
        let bus = self.device.bar(0, 128 << 10).unwrap();
        bus.write32(at, value);
    }

    fn statistic(&self, wanted: &str) -> u64 {
        let all = self.streams.statistics();
        let found = all.iter().find(|(name, _)| name == wanted);
        found.unwrap().1
    }

    /// Stops: the ledger balances, and the card reaches nothing any more.
    fn stop(self) -> Balance {
        assert_eq!(self.streams.refused(), 0);
        let balance = self.streams.stop().unwrap();
        let ends = self.delivered + balance.delivered + balance.dropped_total();
        assert_eq!(balance.from_wire, ends, "{balance}");
        let left = self
            .device
            .with(|_, memory| (memory.trespasses, memory.mapped()));
        assert_eq!(left, (0, 0));
        balance
    }
}

/// A bench that sends by port 0, whose peer is known to the card.
fn sending<C: SimulatedCard>(make: Make<'_, C>, pool: &Mempool) -> Bench<C> {
    let send = SendConfig {
        ports: vec![0],
        ring: 32,
        pool: pool.clone(),
    };
    let config = StreamsConfig {
        send: Some(send),
        ..StreamsConfig::default()
    };
    let bench = Bench::start(make, "", 0, config);
    bench.put(WireFrame::good(arp(1, true)));
    assert_eq!(bench.sent().len(), 1);
    bench
}

fn to_peer(checksum: DatagramChecksum) -> Datagram {
    Datagram {
        to: peer(0, 4000).socket,
        from: 3000,
        checksum,
    }
}

/// Sends payloads, from buffers of the pool of `cache`, each in segments of at most `piece` bytes.
fn send<C: SimulatedCard>(
    bench: &mut Bench<C>,
    cache: &mut PoolCache,
    payloads: &[Vec<u8>],
    piece: usize,
    datagram: &Datagram,
) -> usize {
    let mut burst = Burst::<32>::new();
    for payload in payloads {
        let mut pieces = payload.chunks(piece);
        let mut mbuf = cache.alloc_from(pieces.next().unwrap_or(&[])).unwrap();
        for piece in pieces {
            mbuf.chain(cache.alloc_from(piece).unwrap()).unwrap();
        }
        burst.push(mbuf).unwrap();
    }
    let n = bench.streams.send(0, cache, &mut burst, datagram);
    cache.free_burst(&mut burst);
    n
}

/// The payload of a correct frame, and the checksum in its UDP header.
fn payload(frame: &[u8]) -> (Vec<u8>, u16) {
    assert_eq!(frame[..6], peer(0, 0).mac.0);
    assert_eq!(frame[6..12], neighbour(0, 0).mac.0);
    assert_eq!(frame[12..15], [8, 0, 0x45]);
    assert_eq!(sum(&[&frame[14..34]]), 0, "header sum");
    assert_eq!((frame[22], frame[23]), (64, 17));
    assert_eq!(frame[26..30], neighbour(0, 0).socket.ip().octets());
    assert_eq!(frame[30..34], peer(0, 0).socket.ip().octets());
    assert_eq!(frame[34..38], [0x0b, 0xb8, 0x0f, 0xa0], "ports");
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let len = usize::from(word(38));
    assert_eq!(usize::from(word(16)), 20 + len);
    (frame[42..34 + len].to_vec(), word(40))
}

/// Payloads of all lengths, whole and in segments, from the card's pool and from another; each kind of
/// checksum; oversize ones. Receiving continues meanwhile.
pub fn datagrams_get_their_headers_from_the_card<C: SimulatedCard>(make: Make<'_, C>) {
    let (ours, other) = (pool(2048), pool(1024));
    let mut bench = sending(make, &ours);
    let lens = [0, 1, 2, 17, 18, 600, 1471, 1472];
    let payloads = lens.map(|len| (0..len).map(|i| (i * 7 + len) as u8).collect::<Vec<_>>());
    let mut taken = 0;
    let kinds = [
        DatagramChecksum::None,
        DatagramChecksum::Card,
        DatagramChecksum::Given(0xbeef),
    ];
    for (from, piece) in [(&ours, 2048), (&ours, 401), (&other, 1024)] {
        let mut cache = from.cache(64).unwrap();
        for checksum in kinds {
            let n = send(&mut bench, &mut cache, &payloads, piece, &to_peer(checksum));
            assert_eq!(n, payloads.len());
            taken += n as u64;
            bench.put_payload();
            let frames = bench.sent();
            assert_eq!(frames.len(), payloads.len());
            for (frame, sent) in frames.iter().zip(&payloads) {
                let (got, is) = payload(frame);
                assert!(got == *sent, "a payload of {} bytes", sent.len());
                match checksum {
                    DatagramChecksum::None => assert_eq!(is, 0),
                    DatagramChecksum::Given(given) => assert_eq!(is, given),
                    DatagramChecksum::Card => {
                        let length = (8 + sent.len() as u16).to_be_bytes();
                        let udp = &frame[34..42 + sent.len()];
                        let all = sum(&[&frame[26..34], &[0, 17], &length, udp]);
                        assert_eq!((all, is == 0), (0, false));
                    }
                }
            }
            assert_eq!(bench.receive().len(), 1);
        }
        let long = [vec![0; 1473]];
        let none = to_peer(DatagramChecksum::None);
        taken += send(&mut bench, &mut cache, &long, piece, &none) as u64;
        // Nothing is in flight: completions are counted with the next burst.
        assert_eq!(send(&mut bench, &mut cache, &[], piece, &none), 0);
    }
    let sent = bench.streams.sent(0).unwrap();
    assert_eq!((sent.packets(), sent.errors()), (taken - 3, 3));
    let bytes: usize = 9 * lens.iter().sum::<usize>();
    assert_eq!(sent.bytes(), bytes as u64);
    let balance = bench.stop();
    assert_eq!((balance.dropped_total(), sent.errors()), (0, 3));
    for pool in [ours, other] {
        assert_eq!(pool.available(), pool.buffers());
    }
}

/// Read, and reported as sent; then no neighbour answers for its address.
pub fn datagrams_without_a_neighbour_are_counted<C: SimulatedCard>(make: Make<'_, C>) {
    let pool = pool(2048);
    let mut bench = sending(make, &pool);
    let mut cache = pool.cache(64).unwrap();
    let silent = Datagram {
        to: SocketAddrV4::new([10, 0, 0, 77].into(), 4000),
        ..to_peer(DatagramChecksum::None)
    };
    assert_eq!(send(&mut bench, &mut cache, &[vec![1; 20]], 64, &silent), 1);
    let known = to_peer(DatagramChecksum::None);
    assert_eq!(send(&mut bench, &mut cache, &[vec![2; 20]], 64, &known), 1);
    let mut frames = Vec::new();
    for _ in 0..5 {
        frames.append(&mut bench.sent());
    }
    let (last, questions) = frames.split_last().unwrap();
    assert_eq!(questions.len(), 1);
    assert!(questions.iter().all(|frame| frame[12..14] == [8, 6]));
    assert_eq!(payload(last).0, [2; 20]);
    assert_eq!(bench.statistic("port0_tx_unresolved"), 1);
    // Its event is processed by the next call.
    assert_eq!(send(&mut bench, &mut cache, &[], 64, &known), 0);
    drop(cache);
    let sent = bench.streams.sent(0).unwrap();
    assert_eq!(
        (sent.packets(), sent.errors(), sent.unresolved()),
        (2, 0, 1)
    );
    bench.stop();
    assert_eq!(pool.available(), pool.buffers());
}

/// The page of a list is removed: payloads wait until the driver has entered it again.
pub fn a_missing_page_is_entered_again<C: SimulatedCard>(make: Make<'_, C>) {
    let mut bench = Bench::start(make, "", 0, StreamsConfig::default());
    for round in 0..3 {
        bench.put_payload();
        assert_eq!(bench.receive().len(), 1, "round {round}");
        bench.write(tlb::THIS.at + tlb::ENTRY_CTRL.at, 0);
        bench.put_payload();
        bench.put_payload();
        assert_eq!(bench.receive().len(), 2, "round {round}");
    }
    assert_eq!(bench.statistic("tlb_faults"), 0);
    assert_eq!(bench.statistic("tlb_misses"), 3);
    let balance = bench.stop();
    assert_eq!(balance.dropped_total(), 0);
}

/// Whether an eventfd was signalled since the last time.
fn is_signalled<C: SimulatedCard>(bench: &Bench<C>) -> bool {
    let mut count = [0; 8];
    rustix::io::read(bench.streams.event().unwrap(), &mut count).is_ok()
}

/// The second buffer wakes it, or the timeout.
pub fn a_reader_sleeps_until_enough_has_come<C: SimulatedCard>(make: Make<'_, C>) {
    let wake = Wake {
        events: 2,
        hold: Ns(200_000),
    };
    let config = StreamsConfig {
        wake,
        ..StreamsConfig::default()
    };
    let mut bench = Bench::start(make, "", 0, config);
    for _ in 0..3 {
        bench.streams.arm();
        bench.put_payload();
        assert!(!is_signalled(&bench));
        bench.put_payload();
        assert!(is_signalled(&bench));
        assert_eq!(bench.receive().len(), 2);
    }
    bench.streams.arm();
    bench.put_payload();
    assert!(!is_signalled(&bench));
    bench.device.advance(Ns(200_000));
    assert!(is_signalled(&bench));
    // One that came before.
    bench.streams.arm();
    bench.device.advance(Ns(5_000));
    assert!(is_signalled(&bench));
    assert_eq!(bench.receive().len(), 1);
    bench.stop();
}

fn edges<C: SimulatedCard>(bench: &mut Bench<C>) -> Vec<Edge> {
    bench.device.advance(Ns(5_000));
    let next = || bench.streams.timing().poll();
    std::iter::from_fn(next).collect()
}

/// Payloads have stamps once the time has been set; edges are reported; those that do not fit are
/// counted, without other effect.
pub fn the_driver_tells_the_time<C: SimulatedCard>(make: Make<'_, C>) {
    let timing = TimingConfig {
        clock: Some(ExternalClock {
            period: 10_000 << 16,
            tolerance: None,
        }),
        preset: Some(WireTime(5_000)),
        events: 16,
    };
    let config = StreamsConfig {
        timing,
        ..StreamsConfig::default()
    };
    let mut bench = Bench::start(make, "", 0, config);
    assert_eq!(bench.streams.timing().now(), None);
    bench.put_payload();
    assert_eq!(bench.receive()[0].1, None);
    bench.streams.timing().set(WireTime(1_000_000));
    assert_eq!(bench.streams.timing().now(), Some(WireTime(1_000_000)));
    bench.put_payload();
    assert_eq!(bench.receive()[0].1, Some(WireTime(1_000_000)));
    let pulse = |bench: &Bench<C>, input| {
        bench.device.with(|card, _| card.pulse(input));
        bench.device.advance(Ns(1_000));
    };
    for _ in 0..3 {
        pulse(&bench, TimingInput::Clock);
    }
    bench.put_payload();
    assert_eq!(bench.receive()[0].1, Some(WireTime(1_030_000)));
    let inputs = [
        TimingInput::Start,
        TimingInput::Clock,
        TimingInput::Trigger,
        TimingInput::End,
        TimingInput::End,
    ];
    for input in inputs {
        pulse(&bench, input);
    }
    let found = edges(&mut bench);
    let wanted = [
        (EdgeKind::Start, 1_030_000),
        (EdgeKind::Trigger, 15_000),
        (EdgeKind::End, 15_000),
        (EdgeKind::End, 15_000),
        (EdgeKind::Flag, 15_000),
    ];
    let told = |edge: &Edge| (edge.kind, edge.wire.unwrap().0);
    assert_eq!(found.iter().map(told).collect::<Vec<_>>(), wanted);
    let last = found.last().unwrap();
    assert_eq!((last.burst, last.clocks, last.triggers), (1, 4, 1));
    assert_eq!(
        (last.flags, last.sequence),
        (TimingFlags::UNEXPECTED_END, 4)
    );
    let latched = bench.streams.timing().latched();
    assert_eq!((latched.start.0, latched.end.0), (1_030_000, 15_000));
    assert_eq!((latched.bursts, latched.in_burst), (1, false));
    let flags = bench.streams.timing().take_flags();
    assert_eq!(flags, TimingFlags::UNEXPECTED_END);
    assert!(bench.streams.timing().take_flags().is_empty());
    // The queue has 32 records, and the card keeps some.
    for _ in 0..100 {
        bench
            .device
            .with(|card, _| card.pulse(TimingInput::Trigger));
    }
    bench.device.advance(Ns(20_000));
    bench.put_payload();
    assert_eq!(bench.receive().len(), 1);
    let lost = bench.statistic("timing_events_lost");
    assert!(lost > 40, "{lost} of 100");
    let mut found = Vec::new();
    for _ in 0..10 {
        found.append(&mut edges(&mut bench));
    }
    assert_eq!(found.len() as u64 + lost, 100);
    let flags = bench.streams.timing().take_flags();
    assert_eq!(flags, TimingFlags::EVENT);
    assert_eq!(bench.streams.timing().refused(), 0);
    bench.stop();
}

/// From one port to the other of its pair, as fast as the wire.
pub fn the_driver_generates_and_receives_it<C: SimulatedCard>(make: Make<'_, C>) {
    const PACKETS: u32 = 100;
    let mut bench = Bench::start(make, ",loop=on", 1, StreamsConfig::default());
    let told = Generator {
        size: 40,
        count: PACKETS,
        gap: Ns(1_000),
        to: SocketAddrV4::new(*neighbour(1, 0).socket.ip(), UDP),
        from: 7,
    };
    assert!(bench.streams.generate(0, &told));
    assert!(!bench.streams.generate(2, &told), "it is not in use");
    let mut found = Vec::new();
    for _ in 0..30 {
        found.append(&mut bench.receive());
    }
    assert!(!bench.streams.is_generating(0));
    assert_eq!(found.len(), PACKETS as usize);
    for ((bytes, _), number) in found.iter().zip(0_u32..) {
        assert_eq!(bytes[..4], number.to_le_bytes());
        assert!(
            bytes[4..]
                .iter()
                .zip(4..)
                .all(|(&byte, i)| byte == (number + i) as u8)
        );
    }
    let endless = Generator { count: 0, ..told };
    assert!(bench.streams.generate(0, &endless) && bench.streams.is_generating(0));
    assert!(!bench.receive().is_empty());
    bench.streams.stop_generating(0);
    let count = |bench: &Bench<C>, of: Register| {
        bench.statistic(&format!("port0_{}", of.name.to_lowercase()))
    };
    let _ = bench.receive();
    assert!(!bench.streams.is_generating(0));
    assert_eq!(bench.delivered, count(&bench, port::GEN_PACKETS));
    bench.stop();
}
