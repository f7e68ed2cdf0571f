//! Start, stop, restart, and what is refused.

use std::sync::Arc;

use pollux_card_model::registers::event;
use pollux_card_model::{LinkSignal, SimulatedCard, TimingInput, WireFrame};
use pollux_mempool::time::WireTime;
use pollux_mempool::{Burst, Mbuf};
use pollux_pmd::ArrivalTime;
use pollux_pmd::ledger::Cause;
use pollux_pmd::port::{PortConfig, RxState};
use pollux_pmd_testkit::fake::{FakeDevice, Model, grant};
use pollux_pmd_testkit::models::card::Card;
use pollux_pmd_testkit::only_work;

use super::{Bench, MAC, frame_to, pool, probe};

#[test]
fn a_port_is_started_twenty_times_under_traffic() {
    let pool = pool(256, 2048);
    let device = FakeDevice::new(Card::new());
    let config = PortConfig::new(pool.clone());
    let mut port = probe(&device, "").unwrap().configure(config).unwrap();
    for _ in 0..20 {
        let started = port.start().unwrap();
        device.with(|card, _| {
            for len in 60..80 {
                card.0.put(0, WireFrame::good(frame_to(MAC, len)));
            }
        });
        let mut bench = Bench {
            device: device.clone(),
            pool: pool.clone(),
            cache: Some(pool.cache(64).unwrap()),
            started,
            delivered: 0,
            taken: 0,
        };
        // Some of them have come, the others are on their way.
        bench.pass(1000);
        let got = bench.receive_on(0).len();
        assert!(got < 20, "{got}");
        let (tally, delivered) = (bench.started.rx[0].tally(), bench.delivered);
        bench.cache = None;
        port = bench
            .started
            .port
            .stop(bench.started.rx, bench.started.tx)
            .unwrap();
        let mut balance = tally.balance();
        balance.delivered += delivered;
        assert!(balance.is_balanced(), "{balance}");
        assert_eq!(pool.available(), pool.buffers());
        // The rest of them comes to a card that does not receive.
        device.with(|card, world| {
            world.now += 100_000;
            pollux_pmd_testkit::fake::Model::tick(card, world);
        });
    }
    assert_eq!(device.with(|_, world| world.faults), 0);
}

#[test]
fn untaken_events_are_aborted() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    for len in 60..90 {
        bench.arrive(0, &frame_to(MAC, len));
    }
    let _ = bench.receive_on(0);
    for len in 60..70 {
        bench.with(|card| card.0.put(0, WireFrame::good(frame_to(MAC, len))));
    }
    bench.pass(2_000);
    let (balance, _) = bench.stop();
    assert!(balance.dropped_for(Cause::Aborted) > 0, "{balance}");
}

#[test]
fn a_card_that_is_pulled_out_ends_nothing_but_itself() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    bench.arrive(0, &frame_to(MAC, 60));
    bench.send_on(0, [frame_to(MAC, 60)]);
    bench.device.unplug();
    assert_eq!(bench.receive_on(0).len(), 1);
    bench.pass(20_000_000);
    bench.receive_on(0);
    assert_eq!(bench.started.port.link().to_string(), "gone");
    assert_eq!(bench.started.rx[0].state(), RxState::Gone);
    bench.cache = None;
    let tally = bench.started.rx[0].tally();
    let error = bench.started.port.stop(bench.started.rx, bench.started.tx);
    let error = error.err().unwrap().to_string();
    assert!(error.contains("gone"), "{error}");
    assert_eq!(tally.balance().from_wire, 1);
    assert_eq!(bench.pool.available(), bench.pool.buffers());
}

#[test]
fn dropping_one_queue_leaves_the_others_running() {
    let mut bench = Bench::new("", 2, pool(256, 2048));
    drop((bench.started.rx.pop(), bench.started.tx.pop()));
    for len in 60..160 {
        bench.arrive(0, &frame_to(MAC, len));
        bench.arrive(1, &frame_to(MAC, len));
        assert_eq!(bench.receive_on(0).len(), 1, "{len}");
        assert_eq!(bench.send_on(0, [frame_to(MAC, len)]), 1);
    }
    let Bench {
        device,
        pool,
        cache,
        started,
        ..
    } = bench;
    drop((cache, started));
    assert_eq!(pool.available(), pool.buffers());
    assert_eq!(device.with(|_, world| world.faults), 0);
}

#[test]
fn buffers_of_a_card_that_reads_all_ones_are_not_reused() {
    for iommu in [false, true] {
        let mut bench = Bench::new("", 1, pool(256, 2048));
        bench.device.with(|_, world| world.no_iommu = !iommu);
        bench.device.unplug();
        // The card was not notified of them, but the driver cannot know that.
        assert_eq!(bench.send_on(0, (60..68).map(|len| frame_to(MAC, len))), 8);
        bench.cache = None;
        let stopped = bench.started.port.stop(bench.started.rx, bench.started.tx);
        assert!(stopped.is_err());
        let missing = if iommu { 0 } else { 8 };
        assert_eq!(bench.pool.available(), bench.pool.buffers() - missing);
    }
}

#[test]
fn the_link_is_told() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    assert_eq!(bench.started.port.link().to_string(), "up, 10 Gb/s");
    bench.with(|card| card.0.set_signal(0, LinkSignal::RemoteFault));
    assert_eq!(bench.started.port.link().to_string(), "down");
    bench.pass(20_000_000);
    bench.receive_on(0);
    assert_eq!(bench.started.rx[0].state(), RxState::Down);
    bench.with(|card| card.0.set_signal(0, LinkSignal::Idle));
    assert_eq!(bench.started.port.link().changes, 3);
    bench.stop();
}

#[test]
fn what_cannot_be_is_refused_with_what_there_is() {
    let device = FakeDevice::new(Card::new());
    let error = |options: &str, config: PortConfig| {
        let port = probe(&device, options).and_then(|port| port.configure(config));
        port.err().unwrap().to_string()
    };
    let config = || PortConfig::new(pool(64, 2048));
    let five = PortConfig {
        rx_queues: 5,
        ..config()
    };
    let long = PortConfig {
        ring: 70_000,
        ..config()
    };
    let cases = [
        (error("mtu=9579", config()), "68 to 9578"),
        (
            error("multicast=01:00:5e:00:00:01", config()),
            "multicast=all",
        ),
        (error("ip=10.0.0", config()), "IPv4 addresses"),
        (
            error("ip=1.2.3.4+1.2.3.4+1.2.3.4+1.2.3.4+1.2.3.4", config()),
            "up to four",
        ),
        (error("hold=1s", config()), "0 to 1000000000"),
        (error("wake-events=0", config()), "1 to 65535"),
        (error("clock=70000", config()), "below 65536"),
        (error("clock-tolerance=3", config()), "clock=25"),
        (error("preset=soon", config()), "nanoseconds"),
        (error("", five), "at most 4"),
        (error("", long), "rings of at most 65536"),
    ];
    for (error, text) in cases {
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn registers_and_statistics_are_shown_to_people() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    bench.arrive(0, &frame_to(MAC, 60));
    bench.receive_on(0);
    let registers = bench.started.port.registers();
    for line in [
        "0x00008 MAGIC    0x58554c50  magic number\n",
        "0x18010 MAX_FRAME 0x000005f2",
    ] {
        assert!(registers.contains(line), "{registers}");
    }
    let statistics = bench.started.port.statistics();
    for (name, count) in [
        ("port0_rx_frames", 1),
        ("port0_pcs_ber", 0),
        ("port0_pcs_tx_errors", 0),
        ("list16_outcome_placed", 1),
        ("events_refused", 0),
    ] {
        let found = statistics.iter().find(|(known, _)| known == name);
        assert_eq!(found.map(|&(_, count)| count), Some(count), "{name}");
    }
    bench.stop();
}

/// By the spec: frames are announced together, a loop is woken for several buffers, and the timing
/// input stamps and is watched.
#[test]
fn frames_are_held_and_stamped_as_the_spec_says() {
    let options = "hold=500000,wake-events=2,wake-hold=900000,clock=10000,clock-tolerance=3000,\
                   preset=5000";
    let mut bench = Bench::new(options, 1, pool(256, 2048));
    assert!(bench.started.port.capabilities().wire_time);
    let registers = |bench: &Bench, at: usize| {
        bench
            .device
            .with(|card, world| Model::read(card, world, 0, at, 4))
    };
    let wakes = [event::QUEUE_COUNT, event::QUEUE_HOLD].map(|it| event::THIS.at + it.at);
    // Cycles of 4 ns.
    assert_eq!(wakes.map(|at| registers(&bench, at)), [2, 225_000]);
    bench.arrive(0, &frame_to(MAC, 60));
    bench.pass(400_000);
    assert!(bench.receive_on(0).is_empty(), "it waits for others");
    let pulse = |bench: &Bench, input, then| {
        bench.with(|card| card.0.pulse(input));
        bench.pass(then);
    };
    pulse(&bench, TimingInput::Start, 100_000);
    pulse(&bench, TimingInput::Clock, 10_000);
    pulse(&bench, TimingInput::Clock, 2_000);
    pulse(&bench, TimingInput::Clock, 1_000);
    bench.arrive(0, &frame_to(MAC, 64));
    bench.pass(600_000);
    let mut burst = Burst::<16>::new();
    let cache = bench.cache.as_mut().unwrap();
    bench.started.rx[0].rx(cache, &mut burst);
    let stamps: Vec<_> = burst.iter().map(Mbuf::wire_time).collect();
    cache.free_burst(&mut burst);
    bench.delivered += stamps.len() as u64;
    assert_eq!(stamps, [None, Some(WireTime(35_000))]);
    let statistics = bench.started.port.statistics();
    let count = |name: &str| {
        statistics
            .iter()
            .find(|(known, _)| known == name)
            .unwrap()
            .1
    };
    assert_eq!(
        ["timing_bursts", "timing_clocks", "timing_early"].map(count),
        [1, 3, 1]
    );
    assert!(
        count("timing_lost") > 0,
        "before the first one, and behind the last"
    );
    assert_eq!(count("host_events_discarded"), 0);
    bench.stop();
}

/// When the frames of a poll came, in nanoseconds before it.
fn ages(bench: &mut Bench) -> Vec<u64> {
    let now = bench.device.with(|_, world| world.now);
    let mut burst = Burst::<16>::new();
    let cache = bench.cache.as_mut().unwrap();
    bench.started.rx[0].rx(cache, &mut burst);
    let ages = burst.iter().map(|frame| now - frame.arrival().0).collect();
    bench.delivered += burst.len() as u64;
    cache.free_burst(&mut burst);
    ages
}

/// The age of a frame counts its wait in a queue that was not polled, whatever the card's time was
/// set to.
#[test]
fn frames_came_when_the_card_stamped_them() {
    let near = |age: u64, of: u64| age.abs_diff(of) < 1000;
    let mut bench = Bench::new("preset=7000000000", 1, pool(256, 2048));
    assert_eq!(bench.started.rx[0].arrival_time(), ArrivalTime::Hardware);
    // Before the first start of burst, they are charged for the gap.
    ages(&mut bench);
    bench.pass(3_000_000);
    bench.arrive(0, &frame_to(MAC, 60));
    assert!(matches!(ages(&mut bench)[..], [3_000_000..3_100_000]));
    for pause in [2_000_000, 40_000_000, 20_000_000] {
        // A start of burst; the polls before tell that a frame is fresh.
        bench.with(|card| card.0.pulse(TimingInput::Start));
        bench.pass(1000);
        ages(&mut bench);
        for _ in 0..3 {
            bench.arrive(0, &frame_to(MAC, 60));
            assert!(matches!(ages(&mut bench)[..], [0..60_000]));
        }
        bench.pass(1_000_000);
        bench.arrive(0, &frame_to(MAC, 60));
        bench.pass(pause);
        bench.arrive(0, &frame_to(MAC, 64));
        bench.pass(500_000);
        let old = ages(&mut bench);
        assert!(near(old[0], pause + 520_000), "{old:?} {pause}");
        assert!(near(old[1], 500_000), "{old:?} {pause}");
        assert_eq!(ages(&mut bench), []);
    }
    bench.stop();
}

/// The card's time begins anew while frames wait: they are charged for all of the gap.
#[test]
fn a_time_that_is_set_back_makes_no_frame_look_fresh() {
    let mut bench = Bench::new("preset=0", 1, pool(256, 2048));
    bench.with(|card| card.0.pulse(TimingInput::Start));
    bench.pass(80_000_000);
    for _ in 0..3 {
        bench.arrive(0, &frame_to(MAC, 60));
        ages(&mut bench);
    }
    ages(&mut bench);
    bench.pass(1_000_000);
    bench.with(|card| card.0.pulse(TimingInput::Start));
    bench.pass(1_000_000);
    bench.arrive(0, &frame_to(MAC, 60));
    bench.pass(5_000_000);
    bench.arrive(0, &frame_to(MAC, 60));
    assert!(
        ages(&mut bench)
            .iter()
            .all(|age| (7_000_000..7_100_000).contains(age))
    );
    bench.arrive(0, &frame_to(MAC, 60));
    assert!(matches!(ages(&mut bench)[..], [0..60_000]));
    bench.stop();
}

/// Without a time of the card, by polls.
#[test]
fn without_a_preset_polls_tell_when_frames_came() {
    let bench = Bench::new("", 1, pool(256, 2048));
    assert_eq!(bench.started.rx[0].arrival_time(), ArrivalTime::Poll);
    bench.stop();
}

#[test]
fn a_loop_does_nothing_but_work() {
    let device = FakeDevice::new(Card::new());
    let spec = "pci:0000:03:00.0,mtu=9000".parse().unwrap();
    only_work::assert_only_work(
        &device,
        || super::open(Arc::new(device.clone()), &spec, grant()).unwrap(),
        // The card goes on without a doorbell, which the driver does not ring while the ring is full.
        |device, frame| {
            device.with(|card, world| {
                card.follow(world);
                card.0.put(0, WireFrame::good(frame));
            });
        },
    );
}
