//! Decisions as packets, over a loopback port.

use std::cell::Cell;

use crate::common::{pool, reconstructed, template};
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, Mempool, PoolCache};
use pollux_na62::formats::mtp::{MtpPacket, Primitive, SOURCE_L0TP};
use pollux_na62::l0::{Decision, EventHead, PrimitiveId, Verdict};
use pollux_na62::rich::find::Ring;
use pollux_na62::stages::Answer;
use pollux_pmd::net::{ParseOptions, Parsed, parse};
use pollux_pmd::{Clock, PortConfig, Registry, RxQueue, StartedPort, TscClock, TxQueue};
use proptest::prelude::*;

const PORT: u16 = 58_913;

/// The rules that accept the event, if it is accepted.
const RULES: u8 = 0x85;

/// An answer stage at one end of a link.
struct Rig {
    answer: Answer,
    tx: TxQueue,
    rx: RxQueue,
    pool: Mempool,
    cache: PoolCache,
}

/// The contents of one received packet.
type Packet = Vec<Primitive>;

impl Rig {
    fn new(answer: Answer, ring: usize) -> Self {
        let pool = pool(256, 2048);
        let config = PortConfig {
            ring,
            ..PortConfig::new(pool.clone())
        };
        let port = Registry::builtin()
            .open("loopback")
            .unwrap()
            .configure(config)
            .unwrap();
        let StartedPort { mut rx, mut tx, .. } = port.start().unwrap();
        let cache = pool.cache(64).unwrap();
        Self {
            answer,
            tx: tx.pop().unwrap(),
            rx: rx.pop().unwrap(),
            pool,
            cache,
        }
    }

    fn push(&mut self, decision: &Decision) {
        if !self.answer.push(decision) {
            self.flush();
            assert!(self.answer.push(decision), "an empty packet has room");
        }
    }

    fn flush(&mut self) -> Vec<bool> {
        let marks = self.answer.flush(Some(&mut self.tx), &mut self.cache);
        marks.to_vec()
    }

    /// The packets on the link, parsed from the Ethernet header on.
    fn receive(&mut self) -> Vec<Packet> {
        let (mut burst, mut packets) = (Burst::<32>::new(), Vec::new());
        while self.rx.rx(&mut self.cache, &mut burst) > 0 {
            for mbuf in burst.iter() {
                let parsed = parse(mbuf.data(), mbuf.total_len(), &ParseOptions::default());
                let Ok(Parsed::Udp(udp)) = parsed else {
                    panic!("{parsed:?}")
                };
                assert_eq!(udp.dst_port, PORT);
                let packet = MtpPacket::parse(udp.payload(mbuf.data())).unwrap();
                assert_eq!((packet.source_id(), packet.sub_id()), (SOURCE_L0TP, 0));
                packets.push(packet.primitives().collect());
            }
            self.cache.free_burst(&mut burst);
        }
        packets
    }

    /// Sent, packets, no room, unresolved, no destination, missed.
    fn counts(&self) -> [u64; 6] {
        let counts = self.answer.counts();
        [
            counts.sent.get(),
            counts.packets.get(),
            counts.no_room.get(),
            counts.unresolved.get(),
            counts.no_destination.get(),
            counts.missed.get(),
        ]
    }
}

fn decision(timestamp: u64, rings: usize, accepted: bool, arrival: Tsc) -> Decision {
    let complete = timestamp.is_multiple_of(2);
    let head = EventHead {
        timestamp,
        complete,
        arrival,
        ..EventHead::default()
    };
    let verdict = Verdict {
        rules: if accepted { RULES } else { 0 },
        ..Verdict::default()
    };
    reconstructed(&head, &[], &vec![Ring::default(); rings]).decided(verdict)
}

/// The id of that decision's primitive.
fn identifier(timestamp: u64, rings: usize, accepted: bool) -> PrimitiveId {
    PrimitiveId {
        accepted,
        complete: timestamp.is_multiple_of(2),
        late: false,
        rules: if accepted { RULES } else { 0 },
        rings: rings as u8,
    }
}

fn now() -> Tsc {
    TscClock::get().now()
}

/// A stage with a budget of a minute and a known destination.
fn answer() -> Answer {
    let mut answer = Answer::new(SOURCE_L0TP, Ns(60_000_000_000), true);
    answer.set_peer(template(PORT));
    answer
}

#[test]
fn decisions_arrive_as_primitives() {
    let mut rig = Rig::new(answer(), 64);
    rig.flush(); // nothing to send
    let cases = [
        (0x1_0000_0000 | 7, 0, false),
        (1 << 31, 3, true),
        (u64::from(u32::MAX), 8, true),
    ];
    for (timestamp, rings, accepted) in cases {
        rig.push(&decision(timestamp, rings, accepted, now()));
    }
    assert!(rig.receive().is_empty(), "the packet is not full");
    rig.flush();
    rig.flush();
    let packets = rig.receive();
    assert_eq!(packets.len(), 1);
    for (primitive, (timestamp, rings, accepted)) in packets[0].iter().zip(cases) {
        assert_eq!(primitive.timestamp, timestamp as u32, "the low 32 bits");
        assert_eq!(
            PrimitiveId::from_bits(primitive.id),
            Some(identifier(timestamp, rings, accepted))
        );
    }
    assert_eq!(packets[0].len(), 3);
    assert_eq!(rig.counts(), [3, 1, 0, 0, 0, 0]);
    assert_eq!(rig.answer.total().percentiles().count, 3);
}

/// The primitive carries the time of the event: slot, and time in the slot, of the ring with the
/// most hits, whatever the slots of its neighbours in the packet; zero where there is no ring.
#[test]
fn answers_carry_the_time_of_the_strongest_ring() {
    let mut rig = Rig::new(answer(), 64);
    let ring = |hits, time| Ring {
        hits,
        time,
        ..Ring::default()
    };
    let cases: [(u64, &[Ring], u8); 6] = [
        (255, &[ring(7, 100.2)], 100),
        (256, &[ring(7, 3.0), ring(9, 200.7)], 201),
        (257, &[], 0),
        ((1 << 32) - 1, &[ring(7, 255.0)], 255),
        (1 << 32, &[ring(7, -1.0)], 0),
        ((1 << 32) + 1, &[ring(9, 50.0), ring(7, 60.0)], 50),
    ];
    for (timestamp, rings, _) in cases {
        let head = EventHead {
            timestamp,
            arrival: now(),
            ..EventHead::default()
        };
        rig.push(&reconstructed(&head, &[], rings).decided(Verdict::default()));
    }
    rig.flush();
    let packets = rig.receive();
    assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [6]);
    for (primitive, (timestamp, rings, fine)) in packets[0].iter().zip(cases) {
        assert_eq!(
            (primitive.timestamp, primitive.fine),
            (timestamp as u32, fine)
        );
        let id = PrimitiveId::from_bits(primitive.id).unwrap();
        assert_eq!(usize::from(id.rings), rings.len());
    }
}

#[test]
fn a_full_packet_is_sent_by_itself() {
    let mut rig = Rig::new(answer(), 64);
    for n in 0..255 {
        rig.push(&decision(n, 0, true, now()));
    }
    assert!(rig.receive().is_empty());
    rig.push(&decision(255, 0, true, now()));
    rig.flush();
    let packets = rig.receive();
    assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [255, 1]);
    assert_eq!(rig.counts(), [256, 2, 0, 0, 0, 0]);
    // With a new high part each, 183 fill the 1472 bytes of a packet.
    for n in 0..200 {
        rig.push(&decision(n << 8, 0, true, now()));
    }
    rig.flush();
    let lengths: Vec<_> = rig.receive().iter().map(Vec::len).collect();
    assert_eq!(lengths, [183, 17]);
}

#[test]
fn without_an_address_decisions_are_only_counted() {
    let mut rig = Rig::new(Answer::new(SOURCE_L0TP, Ns(60_000_000_000), false), 64);
    assert!(!rig.answer.is_unresolved());
    (0..300).for_each(|n| rig.push(&decision(n, 0, true, now())));
    rig.answer.flush(None, &mut rig.cache);
    assert_eq!(rig.counts(), [0, 0, 0, 0, 300, 0]);
    assert_eq!(rig.answer.total().percentiles().count, 300);
    assert!(rig.receive().is_empty());
}

#[test]
fn decisions_are_lost_and_counted_until_the_address_is_known() {
    let mut rig = Rig::new(Answer::new(SOURCE_L0TP, Ns(60_000_000_000), true), 64);
    assert!(rig.answer.is_unresolved());
    for n in 0..3 {
        rig.push(&decision(n, 0, true, now()));
    }
    rig.flush();
    assert_eq!(rig.counts(), [0, 0, 0, 3, 0, 0]);
    assert_eq!(rig.answer.total().percentiles().count, 0, "they never left");
    rig.answer.set_peer(template(PORT));
    assert!(!rig.answer.is_unresolved());
    rig.push(&decision(3, 0, true, now()));
    rig.flush();
    assert_eq!(rig.receive()[0][0].timestamp, 3);
    assert_eq!(rig.counts(), [1, 1, 0, 3, 0, 0]);
}

#[test]
fn what_departs_after_its_budget_is_counted() {
    let rig = |budget| {
        let mut answer = Answer::new(SOURCE_L0TP, budget, true);
        answer.set_peer(template(PORT));
        Rig::new(answer, 64)
    };
    let (start, ahead) = (Tsc(0), Tsc(u64::MAX)); // of the machine; another core's clock
    // Longer than this test lasts, and shorter than the machine has been running.
    let mut calm = rig(Ns(10_000_000_000));
    for (n, arrival) in (0..).zip([start, start, ahead, start, now()]) {
        calm.push(&decision(n, 0, true, arrival));
    }
    // Each is marked for itself, and nothing else changes.
    let late = [true, true, false, true, false];
    assert_eq!(calm.flush(), late);
    assert_eq!(calm.flush(), [] as [bool; 0]);
    let told = calm.receive().remove(0).into_iter().zip(0..);
    let told = told.map(|(primitive, n)| {
        let told = PrimitiveId::from_bits(primitive.id).unwrap();
        let late = told.late;
        let expected = identifier(n, 0, true);
        assert_eq!(told, PrimitiveId { late, ..expected });
        late
    });
    assert!(told.eq(late));
    assert_eq!(calm.answer.counts().late.get(), 3);
    assert_eq!(calm.answer.counts().unmarked.get(), 0);
    let one = "those within a budget are one miss";
    assert_eq!(calm.counts(), [5, 1, 0, 0, 0, 1], "{one}");
    let total = calm.answer.total().percentiles();
    assert!(total.max > 10_000_000_000, "{total:?}");

    // No packet is sent within a nanosecond of another.
    let mut strict = rig(Ns(1));
    for n in 0..2 {
        strict.push(&decision(n, 0, true, start));
        strict.flush();
    }
    assert_eq!(strict.answer.counts().late.get(), 2);
    assert_eq!(strict.counts(), [2, 2, 0, 0, 0, 2]);
}

#[test]
fn nothing_is_marked_on_a_recording() {
    let mut answer = Answer::new(SOURCE_L0TP, Ns(1), true).of_recording();
    answer.set_peer(template(PORT));
    let mut rig = Rig::new(answer, 64);
    rig.push(&decision(0, 0, true, Tsc(0)));
    assert_eq!(rig.flush(), [false]);
    let id = rig.receive()[0][0].id;
    assert_eq!(PrimitiveId::from_bits(id), Some(identifier(0, 0, true)));
    let counts = rig.answer.counts();
    assert_eq!((counts.late.get(), counts.unmarked.get()), (1, 0));
}

/// A clock that advances by this at each reading, with cycles of a nanosecond.
#[derive(Clone)]
struct Steps(Cell<u64>, u64);

impl Clock for Steps {
    fn now(&self) -> Tsc {
        self.0.set(self.0.get() + self.1);
        Tsc(self.0.get())
    }

    fn to_ns(&self, cycles: u64) -> Ns {
        Ns(cycles)
    }

    fn to_cycles(&self, ns: Ns) -> u64 {
        ns.0
    }

    fn relax(&self) {}
}

#[test]
fn what_becomes_late_after_the_last_look_at_the_clock_is_counted_as_unmarked() {
    let mut cache = pool(16, 2048).cache(8).unwrap();
    // Read when a packet is begun, when it is marked, and when it has been sent.
    for (step, marked, late, unmarked) in [
        (3333, false, 0, 0), // marked at 6666, sent at 9999
        (3334, false, 1, 1), // at 10002
        (4950, false, 1, 1), // marked at 9900: in time, were it sent at once
        (4951, true, 1, 0),  // at 9902: too little is left to write and send it
    ] {
        let clock = Steps(Cell::new(0), step);
        let mut answer = Answer::by(clock, SOURCE_L0TP, Ns(10_000), false);
        assert!(answer.push(&decision(0, 0, true, Tsc(0))));
        assert_eq!(answer.flush(None, &mut cache), [marked], "{step}");
        let counts = answer.counts();
        let seen = (counts.late.get(), counts.unmarked.get());
        assert_eq!(seen, (late, unmarked), "{step}");
    }
}

#[test]
fn what_finds_no_room_is_lost_and_counted_and_its_buffer_returned() {
    let mut rig = Rig::new(answer(), 2);
    for n in 0..5 {
        rig.push(&decision(n, 0, true, now()));
        rig.push(&decision(n, 0, true, now()));
        rig.flush();
    }
    assert_eq!(rig.counts(), [4, 2, 6, 0, 0, 0]);
    assert_eq!(rig.answer.total().percentiles().count, 4);
    assert_eq!(rig.receive().len(), 2);

    // No transmit queue.
    rig.push(&decision(5, 0, true, now()));
    rig.answer.flush(None, &mut rig.cache);
    assert_eq!(rig.counts(), [4, 2, 7, 0, 0, 0]);

    // No buffer.
    let mut hoard = Vec::new();
    while let Some(mbuf) = rig.cache.alloc() {
        hoard.push(mbuf);
    }
    rig.push(&decision(6, 0, true, now()));
    rig.flush();
    assert_eq!(rig.counts(), [4, 2, 8, 0, 0, 0]);
    drop(hoard);
    rig.push(&decision(7, 0, true, now()));
    rig.flush();
    assert_eq!(rig.receive()[0][0].timestamp, 7);

    // Buffers that are too short.
    let mut short = pool(16, 64).cache(8).unwrap();
    (0..200).for_each(|n| rig.push(&decision(n, 0, true, now())));
    rig.answer.flush(Some(&mut rig.tx), &mut short);
    assert_eq!(rig.counts(), [5, 3, 208, 0, 0, 0]);
    drop(short);

    let Rig {
        answer,
        tx,
        rx,
        pool,
        cache,
    } = rig;
    drop((answer, tx, rx, cache));
    assert_eq!(pool.available(), 256, "every buffer is back");
}

proptest! {
    #[test]
    fn every_decision_arrives_once_and_in_order(
        decisions in proptest::collection::vec(
            (any::<u64>(), 0usize..=8, any::<bool>(), 0u8..20), 0..600),
    ) {
        let mut rig = Rig::new(answer(), 1024);
        let mut received = Vec::new();
        for &(timestamp, rings, accepted, flush) in &decisions {
            rig.push(&decision(timestamp, rings, accepted, now()));
            if flush == 0 {
                rig.flush();
            }
            received.extend(rig.receive().into_iter().flatten());
        }
        rig.flush();
        received.extend(rig.receive().into_iter().flatten());
        prop_assert_eq!(received.len(), decisions.len());
        for (primitive, (timestamp, rings, accepted, _)) in received.iter().zip(&decisions) {
            prop_assert_eq!(primitive.timestamp, *timestamp as u32);
            let expected = identifier(*timestamp, *rings, *accepted);
            prop_assert_eq!(PrimitiveId::from_bits(primitive.id), Some(expected));
        }
        let counts = rig.answer.counts();
        prop_assert_eq!(counts.sent.get(), decisions.len() as u64);
    }
}
