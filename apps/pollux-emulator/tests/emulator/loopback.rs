//! The emulator's loop against a trigger of a few lines, over the loopback.

use std::collections::BTreeMap;

use crate::wires::{End, FastClock, Wires, datagram, link, send};
use pollux_emulator::config::{EmulatorConfig, Faults};
use pollux_emulator::link::{Link, LinkError, PortLink};
use pollux_emulator::run::{DecisionReport, EmulatorLoop, EmulatorReport};
use pollux_emulator::truth::Truth;
use pollux_mempool::{Burst, Mbuf, Mempool, PoolConfig};
use pollux_na62::formats::hits::{HitsFrame, MAX_HITS};
use pollux_na62::formats::mtp::{MAX_PACKET, MtpWriter, Primitive, SOURCE_RICH};
use pollux_na62::l0::PrimitiveId;
use pollux_na62::physics::model::{TrueRing, TruthEvent};
use pollux_na62::rich::Hit;
use pollux_pmd::lcore::{self, StopFlag};
use pollux_pmd::net::{MacAddr, ParseOptions, Parsed, Reject, Responder, UDP_HEADERS, parse};
use pollux_pmd::{Balance, Cause, PortConfig, Registry, StartedPort, TscClock};

/// Decides every event by the truth, once the frames of all boards are in.
struct Trigger {
    config: EmulatorConfig,
    truth: Truth,
    boards: BTreeMap<u64, u8>,
    frames: u64,
    rejected: u64,
    events: u64,
}

impl Trigger {
    fn new(config: &EmulatorConfig) -> Self {
        let truth = Truth::of(config).unwrap();
        Self {
            config: *config,
            truth,
            boards: BTreeMap::new(),
            frames: 0,
            rejected: 0,
            events: 0,
        }
    }

    /// One round; returns how many frames there were.
    fn poll(&mut self, end: &mut End) -> usize {
        let mut burst = Burst::<32>::new();
        let n = end.rx.rx(&mut end.cache, &mut burst);
        for mbuf in burst.iter() {
            self.take(mbuf, end);
        }
        end.cache.free_burst(&mut burst);
        n
    }

    fn take(&mut self, mbuf: &Mbuf, end: &mut End) {
        self.frames += 1;
        match parse(mbuf.data(), mbuf.total_len(), &ParseOptions::default()) {
            Ok(Parsed::Udp(udp)) => {
                let frame = HitsFrame::parse(udp.payload(mbuf.data())).unwrap();
                assert_eq!(udp.dst_port, 58_913 + u16::from(frame.sub_id()));
                let (mut events, mut hits) = (frame.events(), [Hit::default(); MAX_HITS]);
                let mut decided = Vec::new();
                while let Some((timestamp, _)) = events.next_into(&mut hits) {
                    let boards = self.boards.entry(timestamp).or_default();
                    *boards += 1;
                    if *boards == self.config.boards {
                        decided.push(timestamp);
                    }
                }
                self.answer(&decided, end);
            }
            Err(Reject::BadChecksum) => self.rejected += 1,
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, decided: &[u64], end: &mut End) {
        let mut event = TruthEvent::default();
        let mut writer = MtpWriter::new([0; MAX_PACKET], SOURCE_RICH, 0).unwrap();
        for &timestamp in decided {
            self.truth.event(
                self.truth.timeline().event_number(timestamp).unwrap(),
                &mut event,
            );
            let rings = event
                .rings
                .iter()
                .filter(|ring| TrueRing::is_findable(ring))
                .count();
            let id = PrimitiveId {
                accepted: rings > 0,
                complete: true,
                rings: rings as u8,
                ..PrimitiveId::default()
            };
            writer
                .push(Primitive {
                    id: id.to_bits(),
                    timestamp: timestamp as u32,
                    fine: 0,
                })
                .unwrap();
            self.events += 1;
        }
        if !writer.is_empty() {
            let (bytes, len) = writer.finish();
            send(
                end,
                &datagram(
                    &self.config,
                    self.config.addresses.decision_port,
                    &bytes[..len],
                ),
            );
        }
    }
}

/// Runs the emulator on a thread and the trigger here, until the emulator is done.
fn run(config: &EmulatorConfig, stop_after: Option<u64>) -> (EmulatorReport, Trigger, Balance) {
    let (wires, ours, mut theirs) = Wires::new(64);
    let stop = StopFlag::new();
    let link = link(config, ours);
    let mut emulator = EmulatorLoop::new(config, link, TscClock::get(), stop.clone()).unwrap();
    let progress = emulator.progress();
    let lcore = lcore::launch("emulator", None, move || {
        (emulator.run(), emulator.into_link())
    })
    .unwrap();
    let mut trigger = Trigger::new(config);
    while !lcore.is_finished() {
        if trigger.poll(&mut theirs) == 0 {
            std::thread::yield_now();
        }
        if stop_after.is_some_and(|frames| trigger.frames >= frames) {
            stop.stop();
        }
    }
    while trigger.poll(&mut theirs) > 0 {}
    let (report, link) = lcore.join().unwrap();
    assert_eq!(progress.frames.get(), report.frames_sent);
    let balance = link.ledger();
    wires.stop(link.into_queues(), theirs);
    (report, trigger, balance.check().unwrap())
}

fn decisions(report: &EmulatorReport) -> DecisionReport {
    report.decisions.unwrap()
}

#[test]
fn every_event_is_sent_and_decided() {
    for rate in [0, 200_000] {
        let config = EmulatorConfig {
            events: 20_000,
            rate,
            ..EmulatorConfig::default()
        };
        let (report, trigger, balance) = run(&config, None);
        assert!(report.complete);
        assert_eq!((report.events_sent, report.frames_sent), (20_000, 2500));
        assert_eq!((trigger.frames, trigger.events), (2500, 20_000));
        assert!(report.hits_sent > 100_000);
        let counts = decisions(&report).counts;
        assert_eq!(
            (counts.decided, counts.missing, counts.repeated),
            (20_000, 0, 0)
        );
        assert_eq!((counts.unknown, counts.packets), (0, balance.delivered));
        assert_eq!(decisions(&report).trigger_efficiency, Some(1.0));
        assert_eq!(decisions(&report).fake_accept_rate, Some(0.0));
        assert_eq!(counts.accepted, counts.with_ring);
        assert_eq!(balance.dropped_total(), 0);
    }
}

#[test]
fn each_fault_is_seen_at_the_other_end() {
    let faults = Faults {
        lost: 0.02,
        late: 0.05,
        duplicated: 0.05,
        reordered: 0.05,
        corrupted: 0.02,
        ..Faults::default()
    };
    let config = EmulatorConfig {
        events: 20_000,
        rate: 0,
        faults,
        ..EmulatorConfig::default()
    };
    let (report, trigger, _) = run(&config, None);
    let counts = report.faults;
    assert!(report.complete && counts.lost > 0 && counts.late > 0 && counts.corrupted > 0);
    assert_eq!(report.frames_made, 2500);
    assert_eq!(report.frames_sent, 2500 - counts.lost + counts.duplicated);
    assert_eq!(
        (trigger.frames, trigger.rejected),
        (report.frames_sent, counts.corrupted)
    );
    // A frame lost or corrupted is 32 events of one board; duplicates make up for none of them.
    let decided = decisions(&report).counts;
    assert_eq!(decided.decided, trigger.events);
    assert_eq!(decided.missing, 20_000 - trigger.events);
    assert!(decided.missing > 0 && decisions(&report).trigger_efficiency < Some(1.0));
}

#[test]
fn a_stop_leaves_no_frame_uncounted() {
    let config = EmulatorConfig {
        events: 0,
        rate: 0,
        ..EmulatorConfig::default()
    };
    let (report, trigger, balance) = run(&config, Some(1000));
    assert!(!report.complete);
    assert!(report.frames_sent >= 1000);
    assert_eq!(trigger.frames, report.frames_sent);
    assert_eq!(
        report.frames_made,
        report.frames_sent + report.frames_unsent
    );
    let counts = decisions(&report).counts;
    assert_eq!(counts.decided + counts.missing, report.events_sent);
    assert!(balance.is_balanced());
}

#[test]
fn without_a_trigger_the_loop_ends_and_says_what_is_missing() {
    let config = EmulatorConfig {
        events: 64,
        ..EmulatorConfig::default()
    };
    let (wires, ours, theirs) = Wires::new(64);
    // Each look at this clock's spin lets it pass by a nanosecond: the grace is over soon.
    let mut emulator = EmulatorLoop::new(
        &config,
        link(&config, ours),
        FastClock::default(),
        StopFlag::new(),
    )
    .unwrap();
    let report = emulator.run();
    assert_eq!((report.events_sent, report.frames_sent), (64, 8));
    assert_eq!(decisions(&report).counts.missing, 64);
    wires.stop(emulator.into_link().into_queues(), theirs);
}

#[test]
fn a_full_wire_holds_the_loop_back() {
    // Eight frames fit the wire. They are not taken, and the loop is stopped.
    let config = EmulatorConfig {
        events: 6400,
        rate: 0,
        ..EmulatorConfig::default()
    };
    let (wires, ours, theirs) = Wires::new(8);
    let stop = StopFlag::new();
    let mut emulator =
        EmulatorLoop::new(&config, link(&config, ours), TscClock::get(), stop.clone()).unwrap();
    let progress = emulator.progress();
    let lcore = lcore::launch("emulator", None, move || (emulator.run(), emulator)).unwrap();
    while progress.frames.get() == 0 {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    stop.stop();
    let (report, emulator) = lcore.join().unwrap();
    assert_eq!(report.frames_sent, 8);
    // What waits is one burst and the group behind it, not the whole run.
    assert!(report.frames_unsent <= 40, "{}", report.frames_unsent);
    assert_eq!(
        report.frames_made,
        report.frames_sent + report.frames_unsent
    );
    wires.stop(emulator.into_link().into_queues(), theirs);
}

#[test]
fn strange_frames_are_counted_by_cause_and_arp_is_answered() {
    let config = EmulatorConfig {
        events: 1,
        ..EmulatorConfig::default()
    };
    let (wires, ours, mut theirs) = Wires::new(64);
    let (boards, trigger) = (config.addresses.boards(), config.addresses.trigger());
    let decision_port = config.addresses.decision_port;

    send(
        &mut theirs,
        &datagram(&config, decision_port, b"no MTP packet"),
    );
    send(&mut theirs, &datagram(&config, decision_port + 1, b""));
    let mut bad = datagram(&config, decision_port, b"checksum");
    bad[UDP_HEADERS] ^= 1;
    send(&mut theirs, &bad);
    let mut other = config;
    other.addresses.src_ip = Some([10, 9, 8, 7].into());
    send(&mut theirs, &datagram(&other, decision_port, b""));
    send(&mut theirs, &[0xff; 60]);
    send(&mut theirs, &[1, 2, 3]);
    let mut request = [0; 60];
    let asker = Responder::new(trigger.mac, *trigger.socket.ip());
    let len = asker.request(*boards.socket.ip(), &mut request).unwrap();
    send(&mut theirs, &request[..len]);

    let mut emulator = EmulatorLoop::new(
        &config,
        link(&config, ours),
        FastClock::default(),
        StopFlag::new(),
    )
    .unwrap();
    let report = emulator.run();
    let balance = emulator.link().ledger().check().unwrap();
    let expected = [
        (Cause::Malformed, 2),
        (Cause::BadChecksum, 1),
        (Cause::NotForUs, 2),
        (Cause::DemuxMiss, 1),
    ];
    assert_eq!(balance.drops().collect::<Vec<_>>(), expected);
    assert_eq!(
        (balance.delivered, decisions(&report).counts.packets),
        (1, 0)
    );
    assert_eq!(report.frames_sent, 4);

    let mut burst = Burst::<32>::new();
    assert_eq!(theirs.rx.rx(&mut theirs.cache, &mut burst), 5);
    let arp =
        |mbuf: &&Mbuf| parse(mbuf.data(), mbuf.len(), &ParseOptions::default()) == Ok(Parsed::Arp);
    let reply = burst.iter().find(arp).unwrap();
    assert_eq!(reply.data()[22..28], boards.mac.0, "the sender's station");
    theirs.cache.free_burst(&mut burst);
    wires.stop(emulator.into_link().into_queues(), theirs);
}

#[test]
fn the_trigger_is_found_by_arp_or_missed_in_words() {
    let mut config = EmulatorConfig {
        events: 1,
        ..EmulatorConfig::default()
    };
    let (wires, ours, mut theirs) = Wires::new(64);
    let mut link = link(&config, ours);
    let missed = link.resolve(&mut config, &FastClock::default(), &StopFlag::new());
    assert!(matches!(missed, Err(LinkError::NoAnswer(_))));
    assert!(missed.unwrap_err().to_string().contains("198.18.0.1"));

    let mut requests = Burst::<32>::new();
    assert_eq!(theirs.rx.rx(&mut theirs.cache, &mut requests), 20);
    let station = MacAddr([2, 0, 0, 0, 0, 0x77]);
    let responder = Responder::new(station, config.addresses.trigger_ip);
    let mut reply = [0; 60];
    let len = responder.reply(requests[0].data(), &mut reply).unwrap();
    theirs.cache.free_burst(&mut requests);
    send(&mut theirs, &reply[..len]);
    link.resolve(&mut config, &FastClock::default(), &StopFlag::new())
        .unwrap();
    assert_eq!(config.addresses.trigger_mac, Some(station));

    let mut emulator =
        EmulatorLoop::new(&config, link, FastClock::default(), StopFlag::new()).unwrap();
    emulator.run();
    let mut burst = Burst::<32>::new();
    // One more request, then the frames.
    assert_eq!(theirs.rx.rx(&mut theirs.cache, &mut burst), 5);
    assert!(burst[1..].iter().all(|mbuf| mbuf.data()[..6] == station.0));
    theirs.cache.free_burst(&mut burst);
    wires.stop(emulator.into_link().into_queues(), theirs);
}

/// A device distributes frames over its queues: an answer may be in any of them.
#[test]
fn frames_come_by_any_queue() {
    let pool = Mempool::new(PoolConfig::default()).unwrap();
    let port = Registry::builtin().open("loopback").unwrap();
    let config = PortConfig {
        rx_queues: 3,
        tx_queues: 3,
        ..PortConfig::new(pool.clone())
    };
    let started = port.configure(config).unwrap().start().unwrap();
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = started;
    let (back, ours) = (rx.remove(0), tx.remove(0));
    let mut config = EmulatorConfig::default();
    let mut link = PortLink::new(&config, ours, rx, pool.cache(128).unwrap(), false).unwrap();
    let mut cache = pool.cache(128).unwrap();
    for (n, tx) in tx.iter_mut().enumerate() {
        // The trigger asks for the boards, from another station each time, and is known by that.
        let station = MacAddr([2, 0, 0, 0, 1, n as u8]);
        let trigger = Responder::new(station, config.addresses.trigger_ip);
        let mut request = [0; 60];
        let boards = *config.addresses.boards().socket.ip();
        let len = trigger.request(boards, &mut request).unwrap();
        let mut burst = Burst::<1>::new();
        let mbuf = cache.alloc_from(&request[..len]).unwrap();
        burst.push(mbuf).unwrap();
        assert_eq!(tx.tx(&mut cache, &mut burst), 1);
        link.resolve(&mut config, &FastClock::default(), &StopFlag::new())
            .unwrap();
        assert_eq!(config.addresses.trigger_mac, Some(station));
    }
    assert_eq!(link.ledger().check().unwrap().from_wire, 2);
    let (ours, mut theirs) = link.into_queues();
    assert_eq!(theirs.len(), 2);
    theirs.insert(0, back);
    tx.insert(0, ours);
    drop(cache);
    port.stop(theirs, tx).unwrap();
}
