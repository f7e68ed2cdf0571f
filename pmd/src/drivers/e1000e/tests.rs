//! The driver against its model.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use pollux_mempool::region::PageSize;
use pollux_mempool::{Burst, Mbuf, MbufFlags, Mempool, PoolCache, PoolConfig};

use super::model::{Card, toeplitz};
use super::open;
use super::registers::*;
use crate::bus::adversary::Choices;
use crate::bus::fake::{FakeDevice, World};
use crate::ledger::{Balance, Cause, SentView};
use crate::port::{Port, PortConfig, PortError, Probed, RxQueue, StartedPort, TxQueue};

const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

fn pool(buffers: usize, data_room: usize) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        data_room,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .unwrap()
}

fn probe(device: &FakeDevice<Card>, options: &str) -> Result<Port<Probed>, PortError> {
    let spec = format!("pci:0000:03:00.0,{options}");
    let driver = open(Arc::new(device.clone()), &spec.parse().unwrap())?;
    Ok(Port::new(spec, driver))
}

/// A started port on a card, and what its consumer counts.
struct Bench {
    device: FakeDevice<Card>,
    pool: Mempool,
    cache: Option<PoolCache>,
    started: StartedPort,
    delivered: u64,
    taken: u64,
}

impl Bench {
    fn new(options: &str, queues: u16, pool: Mempool) -> Self {
        let device = FakeDevice::new(Card::new(MAC));
        let config = PortConfig {
            rx_queues: queues,
            tx_queues: queues,
            ring: 64,
            pool: pool.clone(),
        };
        let port = probe(&device, options).unwrap().configure(config).unwrap();
        Self {
            cache: Some(pool.cache(64).unwrap()),
            started: port.start().unwrap(),
            device,
            pool,
            delivered: 0,
            taken: 0,
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut Card, &mut World) -> T) -> T {
        self.device.with(look)
    }

    fn arrive(&self, frame: &[u8]) {
        self.with(|card, world| card.receive(world, frame));
    }

    fn frame(&mut self, bytes: &[u8]) -> Mbuf {
        self.cache.as_mut().unwrap().alloc_from(bytes).unwrap()
    }

    fn send_on(&mut self, queue: usize, frames: impl IntoIterator<Item = Vec<u8>>) -> usize {
        let mut burst = Burst::<64>::new();
        for bytes in frames {
            let frame = self.frame(&bytes);
            drop(burst.push(frame));
        }
        let cache = self.cache.as_mut().unwrap();
        let n = self.started.tx[queue].tx(cache, &mut burst);
        self.taken += n as u64;
        cache.free_burst(&mut burst);
        n
    }

    /// All that has come to a queue: bytes, and whether the checksum is vouched for.
    fn receive_on(&mut self, queue: usize) -> Vec<(Vec<u8>, bool)> {
        let mut all = Vec::new();
        let mut burst = Burst::<16>::new();
        let cache = self.cache.as_mut().unwrap();
        while self.started.rx[queue].rx(cache, &mut burst) > 0 {
            for mbuf in burst.iter() {
                let mut bytes = vec![0; mbuf.total_len()];
                mbuf.copy_to(0, &mut bytes);
                assert_eq!(usize::from(mbuf.queue()), queue);
                all.push((bytes, mbuf.flags().contains(MbufFlags::CHECKSUM_TRUSTED)));
            }
            cache.free_burst(&mut burst);
        }
        self.delivered += all.len() as u64;
        all
    }

    fn receive(&mut self) -> Vec<Vec<u8>> {
        self.receive_on(0)
            .into_iter()
            .map(|(bytes, _)| bytes)
            .collect()
    }

    /// Stops the port; the ledger balances, the pool is full, and the card has reached nothing
    /// that it may not.
    fn stop(mut self) -> (Balance, u64) {
        let StartedPort { port, rx, tx } = self.started;
        let received: Vec<_> = rx.iter().map(RxQueue::tally).collect();
        let sent: Vec<_> = tx.iter().map(TxQueue::sent).collect();
        self.cache = None;
        let port = port.stop(rx, tx).unwrap();
        let mut balance = Balance::default();
        for view in &received {
            balance.add(&view.balance());
        }
        balance.delivered = self.delivered;
        assert!(balance.is_balanced(), "{balance}");
        let packets: u64 = sent.iter().map(SentView::packets).sum();
        let errors: u64 = sent.iter().map(SentView::errors).sum();
        assert_eq!(packets + errors, self.taken);
        assert_eq!(self.pool.available(), self.pool.buffers());
        assert_eq!(self.device.with(|_, world| world.faults), 0);
        assert_eq!(self.device.with(|_, world| world.reachable().len()), 0);
        drop(port);
        (balance, errors)
    }
}

/// A frame to the card, or to another station: numbered bytes.
fn frame_to(to: [u8; 6], len: usize) -> Vec<u8> {
    let rest = (6..len).map(|i| (i * 7 + len) as u8);
    to.into_iter().chain(rest).collect::<Vec<_>>()[..len].to_vec()
}

/// The checksum of RFC 1071.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let mut sum = crate::net::Checksum::new();
    for part in parts {
        sum.add(part);
    }
    sum.finish().to_be_bytes()
}

/// A TCP or UDP segment over IPv4.
fn ipv4(protocol: u8, from: u8, port: u16, len: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend([10, 0, 0, from, 10, 0, 0, 1]);
    packet[2..4].copy_from_slice(&((20 + len) as u16).to_be_bytes());
    let sum = checksum(&[&packet]);
    packet[10..12].copy_from_slice(&sum);
    let mut segment = vec![0; len];
    segment[..2].copy_from_slice(&port.to_be_bytes());
    segment[2..4].copy_from_slice(&7_u16.to_be_bytes());
    segment[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    let at = if protocol == 6 { 16 } else { 6 };
    let length = (len as u16).to_be_bytes();
    let sum = checksum(&[&packet[12..20], &[0, protocol], &length, &segment]);
    segment[at..at + 2].copy_from_slice(&sum);
    [&MAC[..], &[2, 0, 0, 0, 0, 9, 8, 0], &packet, &segment].concat()
}

#[test]
fn frames_of_all_lengths_come_back_as_they_were() {
    for (options, room, longest) in [
        ("", 2048, 1518),
        ("descriptors=legacy", 2048, 1518),
        ("", 300, 1518),
        ("mtu=9000", 2048, 9018),
        ("mtu=9000,descriptors=legacy", 600, 9018),
        ("mtu=9212", 9216, 9230),
    ] {
        let mut bench = Bench::new(options, 1, pool(512, room));
        bench.with(|card, _| card.loopback = true);
        let lengths = (1..=300).chain((301..longest - 40).step_by(97));
        let mut sent = 0;
        for len in lengths.chain(longest - 40..=longest) {
            let mut frame = frame_to(MAC, len.max(6));
            assert_eq!(bench.send_on(0, [frame.clone()]), 1);
            frame.resize(frame.len().max(60), 0);
            assert_eq!(bench.receive(), [frame], "{options} {len}");
            sent += 1;
        }
        let (balance, errors) = bench.stop();
        assert_eq!((balance.from_wire, errors), (sent, 0));
    }
}

#[test]
fn what_no_link_carries_is_refused() {
    let mut bench = Bench::new("mtu=1000", 1, pool(256, 2048));
    assert_eq!(
        bench.send_on(0, [frame_to(MAC, 1019), frame_to(MAC, 1018)]),
        2
    );
    assert_eq!(bench.with(|card, _| card.sent[0].len()), 1);
    // The card takes it, as it is no longer than any card takes; the port does not.
    bench.arrive(&frame_to(MAC, 1019));
    // This one is too long for the card.
    bench.arrive(&frame_to(MAC, 1519));
    bench.started.rx[0].sync_counters();
    assert!(bench.receive().is_empty());
    let (balance, errors) = bench.stop();
    assert_eq!((balance.dropped_for(Cause::Oversize), errors), (2, 1));
}

#[test]
fn rings_wrap_many_times() {
    let mut bench = Bench::new("", 2, pool(512, 2048));
    bench.with(|card, _| card.loopback = true);
    for round in 0..200 {
        for queue in 0..2 {
            let n = round % 41;
            let frames = (0..n).map(|i| frame_to(MAC, 60 + i));
            assert_eq!(bench.send_on(queue, frames), n);
            assert_eq!(bench.receive().len(), n);
        }
    }
    let sent: Vec<_> = bench.started.tx.iter().map(TxQueue::sent).collect();
    let (balance, _) = bench.stop();
    let packets = sent.iter().map(SentView::packets).sum();
    assert_eq!(balance.from_wire, packets);
}

#[test]
fn a_full_transmit_ring_takes_no_more_until_the_device_is_done() {
    let mut bench = Bench::new("", 1, pool(512, 256));
    bench.with(|card, _| card.stalled = true);
    let frames = |n: usize| (0..n).map(|_| frame_to(MAC, 100));
    assert_eq!(bench.send_on(0, frames(40)), 40);
    // A ring of 64 takes 63; a frame of three pieces does not fit any more.
    assert_eq!(bench.send_on(0, frames(21)), 21);
    assert_eq!(bench.send_on(0, [frame_to(MAC, 700)]), 0);
    assert_eq!(bench.send_on(0, frames(5)), 2);
    assert_eq!(bench.send_on(0, frames(5)), 0);
    bench.with(|card, world| {
        card.stalled = false;
        card.send(world, 0);
    });
    assert_eq!(bench.send_on(0, [frame_to(MAC, 700)]), 1);
    assert_eq!(bench.send_on(0, []), 0);
    assert_eq!(bench.started.tx[0].sent().packets(), 64);
    bench.with(|card, _| card.stalled = true);
    assert_eq!(bench.send_on(0, frames(3)), 3);
    let (_, errors) = bench.stop();
    assert_eq!(errors, 3, "never reported");
}

#[test]
fn buffers_of_another_pool_are_sent_as_copies() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    let other = pool(16, 128);
    let mut cache = other.cache(8).unwrap();
    let mut burst = Burst::<4>::new();
    drop(burst.push(cache.alloc_from(&frame_to(MAC, 1000)).unwrap()));
    drop(burst.push(cache.alloc_from(&frame_to(MAC, 60)).unwrap()));
    assert_eq!(bench.started.tx[0].tx(&mut cache, &mut burst), 2);
    bench.taken += 2;
    let sent = bench.with(|card, _| card.sent[0].clone());
    assert_eq!(sent, [frame_to(MAC, 1000), frame_to(MAC, 60)]);
    drop(cache);
    assert_eq!(other.available(), 16);
    bench.stop();
}

#[test]
fn what_finds_no_room_is_counted_by_the_device_and_in_the_ledger() {
    let mut bench = Bench::new("", 1, pool(512, 2048));
    for i in 0..200 {
        bench.arrive(&frame_to(MAC, 1000 + i % 3));
    }
    bench.started.rx[0].sync_counters();
    let missed = bench.with(|card, _| card.missed);
    assert!((100..130).contains(&missed), "{missed}");
    let tally = bench.started.rx[0].tally();
    assert_eq!(tally.balance().dropped_for(Cause::RingFull), missed);
    let statistics = bench.started.port.statistics();
    let count = |name| statistics.iter().find(|(n, _)| n == name).unwrap().1;
    assert_eq!(
        (count("rx_missed"), count("rx_no_buffers") > 0),
        (missed, true)
    );
    bench.receive();
    bench.arrive(&frame_to(MAC, 60));
    let (balance, _) = bench.stop();
    let aborted = balance.dropped_for(Cause::Aborted);
    assert_eq!(balance.from_wire, 201);
    assert_eq!(balance.delivered + aborted + missed, 201);
}

#[test]
fn an_empty_pool_costs_frames_and_nothing_else() {
    let mut bench = Bench::new("", 1, pool(80, 2048));
    let mut held = Burst::<128>::new();
    for _ in 0..100 {
        bench.arrive(&frame_to(MAC, 1500));
        let cache = bench.cache.as_mut().unwrap();
        bench.started.rx[0].rx(cache, &mut held);
    }
    let held_frames = held.len() as u64;
    assert!((64..=80).contains(&held_frames), "{held_frames}");
    bench.cache.as_mut().unwrap().free_burst(&mut held);
    bench.delivered += held_frames;
    bench.receive();
    bench.arrive(&frame_to(MAC, 60));
    assert!(bench.receive().contains(&frame_to(MAC, 60)));
    let (balance, _) = bench.stop();
    assert_eq!(balance.from_wire, 101);
    assert!(balance.dropped_for(Cause::RingFull) > 0);
}

#[test]
fn flows_are_shared_out_to_both_queues() {
    // The test vectors of the hash (section 7.1.11.1, and those of Microsoft's specification).
    let key: Vec<u8> = {
        let bench = Bench::new("", 2, pool(256, 2048));
        let key = (0..10).flat_map(|i| bench.with(|card, _| card.get(RSSRK.of(i))).to_le_bytes());
        let key = key.collect();
        bench.stop();
        key
    };
    let input = [66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6];
    assert_eq!(toeplitz(&key, &input), 0x51cc_c178);
    assert_eq!(toeplitz(&key, &input[..8]), 0x323e_8fc2);

    let mut bench = Bench::new("", 2, pool(512, 2048));
    for from in 0..20 {
        bench.arrive(&ipv4(17, from, 1000, 30));
        bench.arrive(&ipv4(17, from, 2000, 30));
        bench.arrive(&ipv4(6, 1, 1000 + u16::from(from), 30));
    }
    let queues = [0, 1].map(|queue| bench.receive_on(queue));
    assert_eq!(queues[0].len() + queues[1].len(), 60);
    assert!(queues.iter().all(|frames| frames.len() > 15), "{queues:?}");
    let source = |frame: &(Vec<u8>, bool)| (frame.0[23] == 17).then_some(frame.0[29]);
    let (a, b) = (&queues[0], &queues[1]);
    let both = a
        .iter()
        .filter_map(source)
        .any(|s| b.iter().filter_map(source).any(|t| s == t));
    assert!(!both, "a flow in two queues");
    bench.stop();
}

#[test]
fn checksums_are_vouched_for_or_cost_the_frame() {
    for (options, queues) in [("", 1), ("", 2), ("descriptors=legacy", 1)] {
        let mut bench = Bench::new(options, queues, pool(256, 2048));
        let good = [ipv4(17, 1, 5, 40), ipv4(6, 1, 5, 40)];
        let mut bad = good.clone();
        bad[0][50] ^= 1;
        bad[1][50] ^= 1;
        let mut header = good[0].clone();
        header[22] ^= 1;
        let mut absent = good[0].clone();
        absent[40..42].fill(0);
        for frame in good
            .iter()
            .chain(&bad)
            .chain([&header, &absent, &frame_to(MAC, 60)])
        {
            bench.arrive(frame);
        }
        let mut all = bench.receive_on(0);
        if queues > 1 {
            all.extend(bench.receive_on(1));
        }
        let vouched = |bytes: &Vec<u8>| all.iter().find(|(b, _)| b == bytes).map(|(_, v)| *v);
        assert_eq!(good.map(|frame| vouched(&frame)), [Some(true); 2]);
        assert_eq!((vouched(&absent), vouched(&header)), (Some(false), None));
        assert_eq!(vouched(&frame_to(MAC, 60)), Some(false));
        let (balance, _) = bench.stop();
        assert_eq!(balance.dropped_for(Cause::BadChecksum), 3);
    }
}

#[test]
fn filters_let_pass_what_was_asked_for() {
    let group = |last: u8| [1, 0, 0x5e, 0, 0, last];
    let some: Vec<_> = (0..40).map(|i| format!("01:00:5e:00:00:{i:02x}")).collect();
    let listed = format!("multicast={}", some.join("+"));
    let one = format!("multicast={}", some[3]);
    let other = [2, 0, 0, 0, 0, 1];
    // To us, to all, to another, to groups 3 and 30, and to one that nobody listed.
    let frames = [MAC, [0xff; 6], other, group(3), group(30), group(200)];
    for (options, passed) in [
        ("", [true, true, false, false, false, false]),
        (&one, [true, true, false, true, false, false]),
        (&listed, [true, true, false, true, true, false]),
        ("multicast=all", [true, true, false, true, true, true]),
        ("promisc=on", [true, true, true, false, false, false]),
    ] {
        let mut bench = Bench::new(options, 1, pool(256, 2048));
        for (to, pass) in frames.into_iter().zip(passed) {
            bench.arrive(&frame_to(to, 60));
            assert_eq!(bench.receive().len() == 1, pass, "{options} {to:x?}");
        }
        bench.stop();
    }
}

#[test]
fn tags_of_vlans_stay_in_the_frame() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    let mut tagged = frame_to(MAC, 1518);
    tagged[12..16].copy_from_slice(&[0x81, 0, 0, 42]);
    bench.arrive(&tagged);
    assert_eq!(bench.receive(), [tagged]);
    bench.stop();
}

#[test]
fn the_link_is_followed() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    let link = bench.started.port.link();
    assert_eq!(link.to_string(), "up, 1 Gb/s");
    bench.with(|card, world| card.set_link(world, false));
    let down = bench.started.port.link();
    assert_eq!(
        (down.up, down.changes, down.speed),
        (false, link.changes + 1, None)
    );
    // Down and up between two looks.
    bench.with(|card, world| card.set_link(world, true));
    bench.with(|card, world| card.set_link(world, false));
    assert_eq!(bench.started.port.link().changes, down.changes + 1);
    bench.with(|_, world| world.now += 20_000_000);
    bench.receive();
    assert_eq!(bench.started.rx[0].state(), crate::RxState::Down);
    bench.with(|card, world| card.set_link(world, true));
    bench.with(|_, world| world.now += 20_000_000);
    bench.receive();
    assert_eq!(bench.started.rx[0].state(), crate::RxState::Live);
    bench.stop();
}

#[test]
fn a_queue_wakes_a_sleeper_once_it_is_armed() {
    let mut bench = Bench::new("", 2, pool(512, 2048));
    let woken = |bench: &Bench| {
        let mut count = [0; 8];
        [0, 1].map(|i: usize| {
            rustix::io::read(bench.started.rx[i].event().unwrap(), &mut count).is_ok()
        })
    };
    bench.arrive(&frame_to(MAC, 60));
    assert_eq!(woken(&bench), [false; 2], "not armed");
    bench.started.rx[0].arm();
    assert_eq!(woken(&bench), [true, false], "it came before");
    bench.arrive(&frame_to(MAC, 60));
    assert_eq!(woken(&bench), [false; 2], "once");
    bench.receive();
    bench.started.rx[0].arm();
    assert_eq!(woken(&bench), [true, false], "it came since");
    bench.started.rx[0].arm();
    bench.started.rx[0].disarm();
    bench.arrive(&frame_to(MAC, 60));
    assert_eq!(woken(&bench), [false; 2], "disarmed");
    bench.receive();
    bench.stop();
}

#[test]
fn a_port_stops_and_starts_under_traffic() {
    let pool = pool(512, 2048);
    let device = FakeDevice::new(Card::new(MAC));
    let config = PortConfig {
        ring: 64,
        ..PortConfig::new(pool.clone())
    };
    let mut port = probe(&device, "").unwrap().configure(config).unwrap();
    let arrive = |n: usize| {
        for _ in 0..n {
            device.with(|card, world| card.receive(world, &frame_to(MAC, 200)));
        }
    };
    for round in 0..100 {
        arrive(3);
        let mut started = port.start().unwrap();
        arrive(round % 80);
        let mut cache = pool.cache(16).unwrap();
        let mut burst = Burst::<8>::new();
        let n = started.rx[0].rx(&mut cache, &mut burst);
        started.tx[0].tx(&mut cache, &mut burst);
        let tally = started.rx[0].tally();
        drop((cache, burst));
        port = started.port.stop(started.rx, started.tx).unwrap();
        let mut balance = tally.balance();
        balance.delivered = n as u64;
        assert!(balance.is_balanced(), "{balance}");
        assert_eq!(balance.from_wire, (round % 80) as u64);
        assert_eq!(pool.available(), pool.buffers());
        arrive(3);
    }
    assert_eq!(device.with(|_, world| world.faults), 0);
}

#[test]
fn a_port_that_is_dropped_while_it_runs_leaves_nothing_running() {
    let bench = Bench::new("", 1, pool(256, 2048));
    let Bench {
        device,
        started,
        pool,
        cache,
        ..
    } = bench;
    // The port first: the queues are with a poll loop that ends later.
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = started;
    drop(port);
    assert_eq!(device.with(|_, world| world.reachable().len()), 0);
    let (mut cache, mut burst) = (cache.unwrap(), Burst::<8>::new());
    cache.alloc_burst(&mut burst, 1);
    tx[0].tx(&mut cache, &mut burst);
    rx[0].rx(&mut cache, &mut burst);
    device.with(|card, world| card.receive(world, &frame_to(MAC, 60)));
    drop((rx, tx, cache, burst));
    assert_eq!(device.with(|_, world| world.faults), 0);
    assert_eq!(pool.available(), pool.buffers());
}

#[test]
fn a_device_that_is_pulled_out_ends_nothing_but_itself() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    bench.arrive(&frame_to(MAC, 60));
    bench.send_on(0, [frame_to(MAC, 60)]);
    bench.device.unplug();
    bench.send_on(0, [frame_to(MAC, 60)]);
    assert_eq!(bench.receive().len(), 1);
    bench.with(|_, world| world.now += 20_000_000);
    bench.receive();
    assert_eq!(bench.started.rx[0].state(), crate::RxState::Down);
    assert!(!bench.started.port.link().up);
    let StartedPort { port, rx, tx } = bench.started;
    let (tally, sent) = (rx[0].tally(), tx[0].sent());
    bench.cache = None;
    let error = port.stop(rx, tx).err().unwrap().to_string();
    assert!(error.contains("it is gone"), "{error}");
    assert_eq!(
        (tally.balance().from_wire, sent.packets(), sent.errors()),
        (1, 1, 1)
    );
    assert_eq!(bench.pool.available(), bench.pool.buffers());
    let error = probe(&bench.device, "").err().unwrap().to_string();
    assert!(error.contains("it is gone"), "{error}");
}

#[test]
fn what_cannot_be_is_refused_with_what_there_is() {
    let device = FakeDevice::new(Card::new(MAC));
    let error = |options: &str, config: PortConfig| {
        let port = probe(&device, options).and_then(|port| port.configure(config));
        port.err().unwrap().to_string()
    };
    let config = || PortConfig::new(pool(64, 2048));
    let cases = [
        (error("mtu=9213", config()), "68 to 9212"),
        (error("multicast=x", config()), "group addresses"),
        (error("descriptors=new", config()), "extended or legacy"),
        (
            error(
                "",
                PortConfig {
                    rx_queues: 3,
                    ..config()
                },
            ),
            "at most 2",
        ),
        (
            error(
                "",
                PortConfig {
                    ring: 40_000,
                    ..config()
                },
            ),
            "rings of at most 32768",
        ),
        (
            error("", PortConfig::new(pool(64, 255))),
            "buffers of 256 bytes and more",
        ),
        (
            error(
                "descriptors=legacy",
                PortConfig {
                    rx_queues: 2,
                    ..config()
                },
            ),
            "one, or descriptors=extended",
        ),
    ];
    for (error, text) in cases {
        assert!(error.contains(text), "{error}");
    }
    let nameless = FakeDevice::new(Card::new([0; 6]));
    let error = probe(&nameless, "").err().unwrap().to_string();
    assert!(error.contains("no address of a station"), "{error}");
}

/// Writes the receive descriptor that the driver looks at next.
fn give(bench: &Bench, number: usize, status: u32, len: u16) {
    let word = u64::from(len) << 32 | u64::from(status);
    bench.with(|card, world| {
        let base = u64::from(card.get(RDBAL.of(0))) | u64::from(card.get(RDBAH.of(0))) << 32;
        assert!(world.write(base + number as u64 * 16 + 8, &word.to_le_bytes()));
    });
}

#[test]
fn violations_cost_the_frame_and_are_counted() {
    const DD: u32 = 1;
    const EOP: u32 = 2;
    let mut bench = Bench::new("mtu=9000", 1, pool(512, 2048));
    // Longer than the buffer, of no length, a piece that is not full, what the link broke, and a
    // frame that never ends.
    give(&bench, 0, DD | EOP, 2049);
    give(&bench, 1, DD | EOP, 0);
    give(&bench, 2, DD, 100);
    give(&bench, 3, DD, 2048);
    give(&bench, 4, DD | EOP, 1);
    give(&bench, 5, DD | EOP | 1 << 24, 100);
    for number in 6..14 {
        give(&bench, number, DD, 2048);
    }
    give(&bench, 14, DD | EOP, 1);
    // An honest one.
    give(&bench, 15, DD | EOP, 60);
    assert_eq!(bench.receive().len(), 1);
    let (balance, _) = bench.stop();
    assert_eq!(balance.dropped_for(Cause::DeviceError), 4);
    assert_eq!(balance.dropped_for(Cause::Oversize), 1);
    assert_eq!(balance.from_wire, 6);
}

#[test]
fn an_adversary_breaks_no_promise() {
    for (seed, options, room) in [
        (1, "", 2048),
        (2, "mtu=9000", 1024),
        (3, "mtu=9000,descriptors=legacy", 512),
        (4, "promisc=on,multicast=all", 9216),
    ] {
        let pool = pool(200, room);
        let outcome = super::hostile::run(&pool, options, Choices::Seeded(seed), 250_000);
        let violations = outcome.violations();
        let some = outcome
            .starts
            .min(outcome.sent)
            .min(outcome.received.delivered);
        assert!(some > 100 && violations > 100, "{outcome:?}");
    }
}

#[test]
fn registers_are_shown_to_people() {
    let bench = Bench::new("", 1, pool(256, 2048));
    let registers = bench.started.port.registers();
    for line in [
        "0x00008 STATUS   0x00080083  device status FD LU SPEED=0x2 MASTER_ENABLE\n",
        "0x02818 RDT0     0x0000003f  receive ring tail\n",
    ] {
        assert!(registers.contains(line), "{registers}");
    }
    assert!(!registers.contains("MPC"), "reading it would clear it");
    bench.stop();
}
