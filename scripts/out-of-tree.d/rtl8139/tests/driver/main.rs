//! The driver on a model of the card, and against an adversary in its place: with what
//! `pollux-pmd-testkit` offers to any driver.

mod model;

use std::sync::Arc;

use model::Card;
use pollux_pmd::bus::{BUS_MASTER, COMMAND, Device as _};
use pollux_pmd::drivers::pci::{PciDriver, open_device};
use pollux_pmd::ledger::SentView;
use pollux_pmd::mempool::{Burst, Mempool, PoolCache};
use pollux_pmd::{Cause, Ledger, Port, PortConfig, PortError, Probed, RxState, StartedPort, Tally};
use pollux_pmd_testkit::adversary::{self, Choices, FaultModel, FaultPlan, Outcome, Trial};
use pollux_pmd_testkit::fake::{FakeDevice, grant};
use pollux_pmd_testkit::only_work::assert_only_work_and_reads;
use pollux_pmd_testkit::ports::{pool, quarantined};
use pollux_rtl8139::open;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn probe(device: &FakeDevice<Card>, options: &str) -> Result<Port<Probed>, PortError> {
    let spec = format!("pci:03:00.0{options}");
    let entry =
        PciDriver::new(0x10ec, 0x8139, "RTL8139", open).with_options(&["promisc", "multicast"]);
    let driver = open_device(&[entry], Arc::new(device.clone()), &spec.parse()?, grant())?;
    Ok(Port::new(spec, driver))
}

/// A started port on a card.
struct Rig {
    device: FakeDevice<Card>,
    pool: Mempool,
    cache: PoolCache,
    started: StartedPort,
    ledger: Ledger,
    sink: Tally,
    taken: u64,
}

impl Rig {
    fn new(options: &str, data_room: usize) -> Self {
        let device = FakeDevice::new(Card::new(MAC));
        let pool = pool(200, data_room);
        let port = probe(&device, options).unwrap();
        let port = port.configure(PortConfig::new(pool.clone())).unwrap();
        let started = port.start().unwrap();
        let (mut ledger, sink) = (Ledger::new(), Tally::new());
        ledger.add("rx", started.rx[0].tally());
        ledger.add("sink", sink.view());
        let cache = pool.cache(32).unwrap();
        Self {
            device,
            pool,
            cache,
            started,
            ledger,
            sink,
            taken: 0,
        }
    }

    fn arrive(&self, frame: &[u8]) {
        self.device.with(|card, world| card.receive(world, frame));
    }

    fn receive(&mut self) -> Vec<Vec<u8>> {
        let (mut all, mut burst) = (Vec::new(), Burst::<16>::new());
        while self.started.rx[0].rx(&mut self.cache, &mut burst) > 0 {
            all.extend(burst.iter().map(|mbuf| {
                let mut bytes = vec![0; mbuf.total_len()];
                mbuf.copy_to(0, &mut bytes);
                bytes
            }));
            self.cache.free_burst(&mut burst);
        }
        self.sink.count_delivered(all.len() as u64);
        all
    }

    fn send(&mut self, frames: &[Vec<u8>]) -> usize {
        let mut burst = Burst::<16>::new();
        for bytes in frames {
            drop(burst.push(self.cache.alloc_from(bytes).unwrap()));
        }
        let taken = self.started.tx[0].tx(&mut self.cache, &mut burst);
        self.taken += taken as u64;
        self.cache.free_burst(&mut burst);
        taken
    }

    /// Stops the port: all is accounted for, and the card has reached nothing that it may not.
    fn stop(self) -> (pollux_pmd::Balance, SentView) {
        let StartedPort { port, rx, tx } = self.started;
        let sent = tx[0].sent();
        drop(self.cache);
        drop(port.stop(rx, tx).unwrap());
        let balance = self.ledger.check().unwrap();
        assert_eq!(self.pool.available(), self.pool.buffers());
        assert_eq!(sent.packets() + sent.errors(), self.taken);
        let command = self.device.config(COMMAND).unwrap();
        assert_eq!(command & BUS_MASTER, 0, "it is kept off the bus");
        self.device.with(|_, world| {
            assert_eq!((world.faults, world.reachable().len()), (0, 0));
        });
        (balance, sent)
    }
}

fn frame(to: [u8; 6], len: usize) -> Vec<u8> {
    let rest = (6..len).map(|i| (i * 7 + len) as u8);
    to.into_iter().chain(rest).collect()
}

#[test]
fn frames_of_all_lengths_pass_both_ways() {
    for data_room in [2048, 512] {
        let mut rig = Rig::new("", data_room);
        // Some laps of the ring.
        for len in (60..=1518).step_by(13) {
            let frame = frame(MAC, len);
            rig.arrive(&frame);
            assert_eq!(rig.receive(), [&frame[..]]);
            if len <= data_room {
                assert_eq!(rig.send(std::slice::from_ref(&frame)), 1);
                assert_eq!(rig.device.with(|card, _| card.sent.pop()), Some(frame));
            }
        }
        let (balance, sent) = rig.stop();
        assert_eq!(balance.dropped_total() + sent.errors(), 0);
    }
}

#[test]
fn short_frames_are_padded_and_long_ones_refused() {
    let mut rig = Rig::new("", 2048);
    let frames = [vec![7; 20], vec![7; 1519], frame(MAC, 60)];
    assert_eq!(rig.send(&frames), 3);
    let sent = rig.device.with(|card, _| card.sent.clone());
    let padded = [vec![7; 20], vec![0; 40]].concat();
    assert_eq!(sent, [padded, frames[2].clone()]);
    assert_eq!(rig.stop().1.errors(), 1);
}

#[test]
fn an_empty_ring_costs_no_register() {
    let mut rig = Rig::new("", 2048);
    // Some laps, so that there are old frames where the next will begin.
    for len in (60..1500).step_by(7) {
        rig.arrive(&frame(MAC, len));
        rig.receive();
        let before = rig.device.with(|card, _| card.reads);
        assert!(rig.receive().is_empty());
        assert_eq!(rig.device.with(|card, _| card.reads), before);
    }
    rig.stop();
}

#[test]
fn a_ring_that_is_full_loses_frames_in_the_ledger() {
    let mut rig = Rig::new("", 2048);
    (0..100).for_each(|_| rig.arrive(&frame(MAC, 1000)));
    let received = rig.receive().len();
    assert!((20..40).contains(&received), "{received}");
    let (balance, _) = rig.stop();
    assert_eq!(balance.dropped_for(Cause::RingFull), 100 - received as u64);
}

#[test]
fn frames_in_the_ring_at_the_end_are_aborted() {
    let rig = Rig::new("", 2048);
    (0..5).for_each(|_| rig.arrive(&frame(MAC, 100)));
    assert_eq!(rig.stop().0.dropped_for(Cause::Aborted), 5);
}

#[test]
fn an_empty_pool_costs_frames() {
    let mut rig = Rig::new("", 2048);
    let mut kept = Burst::<256>::new();
    rig.cache.alloc_burst(&mut kept, 256);
    rig.arrive(&frame(MAC, 100));
    assert!(rig.receive().is_empty());
    kept.clear();
    rig.arrive(&frame(MAC, 101));
    assert_eq!(rig.receive(), [frame(MAC, 101)]);
    assert_eq!(rig.stop().0.dropped_for(Cause::NoMbuf), 1);
}

#[test]
fn slots_that_are_in_use_leave_frames_with_the_caller() {
    let mut rig = Rig::new("", 2048);
    rig.device.with(|card, _| card.slow = true);
    assert_eq!(rig.send(&vec![frame(MAC, 60); 6]), 4);
    rig.device.with(|card, world| card.work(world));
    assert_eq!(rig.send(&vec![frame(MAC, 60); 2]), 2);
    // They never end.
    let (_, sent) = rig.stop();
    assert_eq!((sent.packets(), sent.errors()), (4, 2));
}

#[test]
fn filters_are_those_of_the_spec() {
    let (other, group) = ([2, 0, 0, 0, 0, 9], [0x01, 0, 0x5e, 0, 0, 0xfb]);
    for (options, wanted) in [
        ("", [true, false, false]),
        (",multicast=01:00:5e:00:00:fb", [true, false, true]),
        (",multicast=all", [true, false, true]),
        (",promisc=on", [true, true, true]),
    ] {
        let mut rig = Rig::new(options, 2048);
        for (to, wanted) in [[0xff; 6], other, group].into_iter().zip(wanted) {
            rig.arrive(&frame(to, 60));
            assert_eq!(rig.receive().len(), usize::from(wanted), "{options} {to:?}");
        }
        rig.stop();
    }
}

#[test]
fn links_and_what_is_not_there() {
    let rig = Rig::new("", 2048);
    assert_eq!(rig.started.port.link().to_string(), "up, 100 Mb/s");
    rig.device.with(|card, _| card.plugged = false);
    assert_eq!(rig.started.port.link().to_string(), "down");
    assert_eq!(rig.started.rx[0].state(), RxState::Down);
    rig.device.with(|card, _| card.plugged = true);
    assert_eq!(rig.started.port.link().changes, 3);
    assert!(rig.started.port.registers().contains("RBSTART"));
    rig.device.unplug();
    assert_eq!(rig.started.port.link().to_string(), "gone");
    assert_eq!(rig.started.rx[0].state(), RxState::Gone);
    let device = rig.device.clone();
    let error = probe(&device, "").err().unwrap().to_string();
    assert!(error.contains("does not come back from a reset"), "{error}");
    let device = FakeDevice::new(Card::new([0xff; 6]));
    let error = probe(&device, "").err().unwrap().to_string();
    assert!(error.contains("EEPROM holds no address"), "{error}");
    let error = probe(&device, ",mtu=9000").err().unwrap().to_string();
    assert!(error.contains("`mtu`"), "{error}");
}

#[test]
fn a_port_starts_and_stops_under_traffic() {
    let device = FakeDevice::new(Card::new(MAC));
    let pool = pool(200, 2048);
    let port = probe(&device, "").unwrap();
    let mut port = port.configure(PortConfig::new(pool.clone())).unwrap();
    for n in 0..100 {
        let StartedPort {
            port: started,
            rx,
            tx,
        } = port.start().unwrap();
        device.with(|card, world| card.receive(world, &frame(MAC, 60 + n)));
        assert_eq!(quarantined(&started), 0);
        port = started.stop(rx, tx).unwrap();
        device.with(|card, world| card.receive(world, &frame(MAC, 60)));
    }
    assert_eq!(device.with(|_, world| world.faults), 0);
}

#[test]
fn a_header_that_cannot_be_costs_what_is_in_the_ring() {
    let mut rig = Rig::new("", 2048);
    for word in [0x0040_0000, 0x0008_0001, 0xfff0_0001, 0x7000_0001] {
        rig.device.with(|card, world| {
            card.receive(world, &frame(MAC, 60));
            card.scribble(world, word);
        });
        assert!(rig.receive().is_empty());
        rig.arrive(&frame(MAC, 61));
        assert_eq!(rig.receive(), [frame(MAC, 61)]);
    }
    assert_eq!(rig.stop().0.dropped_for(Cause::DeviceError), 4);
}

#[test]
fn a_loop_does_nothing_but_work() {
    let device = FakeDevice::new(Card::new(MAC));
    let spec = "pci:03:00.0".parse().unwrap();
    assert_only_work_and_reads(
        &device,
        || open(Arc::new(device.clone()), &spec, grant()).unwrap(),
        |device, frame| device.with(|card, world| card.receive(world, frame)),
    );
}

fn run(plan: impl Into<FaultPlan>, steps: usize) -> Outcome {
    let (pool, spec) = (pool(200, 1024), "pci:03:00.0".parse().unwrap());
    let trial = Trial {
        model: &|| Card::new(MAC),
        open: &|device| open(Arc::new(device), &spec, grant()),
        arrive: &|card, world, choices| {
            card.receive(world, &frame(MAC, 60 + choices.below(1500)));
        },
        pool: &pool,
        shortest: 14,
    };
    adversary::run(&trial, plan, steps)
}

#[test]
fn an_adversary_costs_frames_and_nothing_else() {
    for seed in 1..4 {
        let outcome = run(Choices::Seeded(seed), 300_000);
        assert!(
            outcome.starts > 50 && outcome.violations() > 0,
            "{outcome:?}"
        );
        assert!(outcome.received.delivered > 1000, "{outcome:?}");
    }
}

#[test]
fn an_adversary_at_any_time() {
    let outcome = run(FaultModel::AnyTime.by(Choices::Seeded(7)), 100_000);
    assert!(outcome.received.delivered > 100, "{outcome:?}");
}

#[test]
fn a_confined_adversary() {
    let outcome = run(FaultModel::Confined.by(Choices::Seeded(9)), 100_000);
    assert!(outcome.received.delivered > 500, "{outcome:?}");
}
