#![allow(clippy::unwrap_used)]
use super::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use pollux_mempool::PoolCache;
use proptest::prelude::*;

use super::link::{Peer, Sent};
use crate::event::OutputEvent;
use crate::testing::{ACCEPTED, CACHE, event, pool};

fn plan(text: &str) -> Result<Ejfat, String> {
    let spec: OutputSpec = text
        .parse()
        .map_err(|error: OutputError| error.to_string())?;
    Ejfat::of(&spec).map_err(|error| error.to_string())
}

#[test]
fn specs_are_read() {
    let output = plan("ejfat:127.0.0.1:19522").unwrap();
    assert_eq!((output.piece, output.data_id), (1500 - 64, 1));
    let output =
        plan("ejfat:[::1]:19522,mtu=9000,data-id=65535,sync=[::1]:19523,source-id=4294967295");
    let output = output.unwrap();
    assert_eq!((output.piece, output.data_id), (9000 - 84, 65_535));
    assert_eq!(output.source_id, u32::MAX);
    assert_eq!(plan("ejfat:127.0.0.1:1,mtu=65").unwrap().piece, 1);
    assert_eq!(plan("ejfat:[::1]:1,mtu=85").unwrap().piece, 1);
    let output = plan("ejfat:10.0.0.1:1,mac=02:00:00:00:00:01,port=pcap:rx=a,tx=b").unwrap();
    assert_eq!(output.port(), Some("pcap:rx=a,tx=b"));
}

#[test]
fn wrong_specs_are_named() {
    for (text, named) in [
        ("ejfat", "it needs the load balancer"),
        ("ejfat:mtu=9000", "it needs the load balancer"),
        ("ejfat:10.0.0.1", "`10.0.0.1` is not a valid target"),
        ("ejfat:10.0.0.1:0", "the port is 1 to 65535"),
        (
            "ejfat:10.0.0.1:1,mtu=64",
            "`64` is not a valid mtu: a number of 65 to 65535",
        ),
        ("ejfat:[::1]:1,mtu=84", "a number of 85 to 65535"),
        ("ejfat:10.0.0.1:1,mtu=65536", "a number of 65 to 65535"),
        ("ejfat:10.0.0.1:1,data-id=65536", "is not a valid data-id"),
        ("ejfat:10.0.0.1:1,sync=here", "`here` is not a valid sync"),
        ("ejfat:10.0.0.1:1,source-id=3", "source-id goes with sync"),
        (
            "ejfat:10.0.0.1:1,sink=1",
            "ejfat has no option `sink`; it has: data-id",
        ),
        (
            "ejfat:10.0.0.1:1,mac=02:00:00:00:00:01",
            "mac goes with port=SPEC",
        ),
        (
            "ejfat:10.0.0.1:1,mac=ff:ff:ff:ff:ff:ff,port=null",
            "is not a valid mac",
        ),
        ("ejfat:[::1]:1,port=null", "IPv4 addresses alone"),
    ] {
        let error = plan(text).unwrap_err();
        assert!(
            error.starts_with(&format!("output spec `{text}`: ")),
            "{error}"
        );
        assert!(error.contains(named), "{error}");
    }
}

/// Datagrams that have left, and what becomes of the next ones.
#[derive(Default)]
struct Wire {
    sent: Vec<(Peer, Vec<u8>)>,
    /// Results of the next attempts; then all are sent.
    script: Vec<Sent>,
    /// Results of the next polls; then nothing is refused.
    refusals: Vec<bool>,
}

#[derive(Clone, Default)]
struct FakeLink(Arc<Mutex<Wire>>);

impl Link for FakeLink {
    fn send(&mut self, to: Peer, datagram: &[u8]) -> Sent {
        let mut wire = self.0.lock().unwrap();
        let sent = wire.script.pop().unwrap_or(Sent::Yes);
        if sent == Sent::Yes {
            wire.sent.push((to, datagram.to_vec()));
        }
        sent
    }

    fn poll(&mut self) -> bool {
        self.0.lock().unwrap().refusals.pop().unwrap_or(false)
    }
}

struct Rig {
    wire: Arc<Mutex<Wire>>,
    counts: Arc<OutputCounts>,
    output: Box<EjfatOutput>,
}

fn rig(piece: usize, script: Vec<Sent>) -> Rig {
    let link = FakeLink::default();
    let wire = Arc::clone(&link.0);
    wire.lock().unwrap().script = script;
    let counts = Arc::<OutputCounts>::default();
    let spec = "ejfat:127.0.0.1:1".parse().unwrap();
    let parts = (0x1234, piece);
    let output = EjfatOutput::new(
        &spec,
        Box::new(link),
        parts,
        None,
        false,
        Arc::clone(&counts),
    );
    Rig {
        wire,
        counts,
        output: Box::new(output),
    }
}

impl Rig {
    fn push(&mut self, timestamp: u64, hits: u16, cache: &mut PoolCache) -> Vec<u8> {
        let decision = event(timestamp, hits, ACCEPTED, cache);
        let event = OutputEvent {
            number: 5,
            view: decision.view(),
        };
        let hits = event.view.hits().iter();
        let hits = hits.flat_map(|hit| [hit.pm.to_le_bytes(), hit.fine.to_le_bytes()].concat());
        let bytes = event.record(false).into_iter().chain(hits).collect();
        self.counts.queue.handed.add(1);
        self.output.push(event);
        bytes
    }

    fn finish(self) -> Arc<Mutex<Wire>> {
        self.output.finish(Instant::now());
        assert_eq!(self.counts.pending(), 0);
        assert!(self.counts.report("x").balanced);
        self.wire
    }
}

fn be(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Pieces of any size give the events again, whatever is full on the way; the layout is that of
    /// docs/formats/ejfat.md, read by its offsets.
    #[test]
    fn pieces_make_the_event(piece in 1_usize..2200, hits in 0_u16..513, full in 0_usize..5) {
        let pool = pool(4);
        let mut cache = pool.cache(CACHE).unwrap();
        let mut rig = rig(piece, (0..full).map(|_| Sent::Full).collect());
        let mut wanted = Vec::new();
        for n in 0..3 {
            let timestamp = 0x0102_0304_0506_0708 + n;
            wanted.push((timestamp, rig.push(timestamp, hits, &mut cache)));
            while !rig.output.has_room() {
                rig.output.work();
            }
        }
        let counts = Arc::clone(&rig.counts);
        let wire = rig.finish();
        prop_assert_eq!(counts.delivered.get(), 3);
        let wire = wire.lock().unwrap();
        prop_assert_eq!(counts.messages.get(), wire.sent.len() as u64);
        let mut events = BTreeMap::<u64, Vec<u8>>::new();
        for (peer, datagram) in &wire.sent {
            prop_assert_eq!(*peer, Peer::Data);
            prop_assert!(datagram.len() <= 36 + piece && datagram.len() > 36);
            prop_assert_eq!(&datagram[..6], b"LB\x02\x01\0\0");
            let number = be(&datagram[8..16]);
            prop_assert_eq!(be(&datagram[6..8]), number & 0xffff);
            prop_assert_eq!(&datagram[16..20], b"\x10\0\x12\x34");
            prop_assert_eq!(be(&datagram[28..36]), number);
            prop_assert_eq!(be(&datagram[24..28]), 64 + 4 * u64::from(hits));
            let event = events.entry(number).or_default();
            prop_assert_eq!(be(&datagram[20..24]), event.len() as u64);
            event.extend_from_slice(&datagram[36..]);
        }
        prop_assert_eq!(events.into_iter().collect::<Vec<_>>(), wanted);
    }

    /// Whatever the link does, each event has one outcome.
    #[test]
    fn each_event_has_one_outcome(
        script in proptest::collection::vec(0..8, 0..200),
        refusals in proptest::collection::vec(any::<bool>(), 0..50),
    ) {
        let pool = pool(4);
        let mut cache = pool.cache(CACHE).unwrap();
        let script = script.into_iter().map(|n| match n {
            0 => Sent::Full,
            1 | 2 => Sent::Refused,
            3 => Sent::Failed("no route".into()),
            _ => Sent::Yes,
        });
        let mut rig = rig(100, script.collect());
        rig.wire.lock().unwrap().refusals = refusals;
        for n in 0..40 {
            if rig.output.has_room() {
                rig.push(n, 20, &mut cache);
            }
            if n % 3 == 0 {
                rig.output.work();
            }
        }
        rig.finish();
    }
}

/// A host that refuses every datagram, as the kernel reports it: with the attempt that follows, or
/// when asked.
#[test]
fn a_refused_event_is_the_one_that_was_sent() {
    let pool = pool(4);
    let mut cache = pool.cache(CACHE).unwrap();
    let mut rig = rig(2000, [Sent::Yes, Sent::Refused, Sent::Yes].into());
    // The first is sent; the second meets the refusal of the first, and is sent then.
    rig.push(1, 10, &mut cache);
    rig.push(2, 10, &mut cache);
    assert_eq!(
        (rig.counts.refused.get(), rig.counts.delivered.get()),
        (1, 0)
    );
    rig.wire.lock().unwrap().refusals = vec![true];
    rig.output.work();
    assert_eq!(
        (rig.counts.refused.get(), rig.counts.delivered.get()),
        (2, 0)
    );
    rig.push(3, 10, &mut cache);
    rig.output.work();
    assert_eq!(
        (rig.counts.refused.get(), rig.counts.delivered.get()),
        (2, 1)
    );
    assert_eq!(rig.finish().lock().unwrap().sent.len(), 3);
}

#[test]
fn an_event_that_cannot_be_sent_is_unsent() {
    let pool = pool(4);
    let mut cache = pool.cache(CACHE).unwrap();
    let mut rig = rig(50, vec![Sent::Failed("no route".into()), Sent::Yes]);
    rig.push(1, 10, &mut cache);
    assert_eq!(rig.counts.unsent.get(), 1);
    rig.push(2, 0, &mut cache);
    let counts = Arc::clone(&rig.counts);
    // One piece of the first, two of the second.
    assert_eq!(rig.finish().lock().unwrap().sent.len(), 3);
    assert_eq!((counts.delivered.get(), counts.unsent.get()), (1, 1));
}

/// Two events of one number are two of one burst whose datagrams a receiver would mix.
#[test]
fn an_event_with_the_number_of_another_is_not_sent() {
    let pool = pool(4);
    let mut cache = pool.cache(CACHE).unwrap();
    let mut rig = rig(2000, Vec::new());
    for timestamp in [7, 8, 7, 9, 7] {
        rig.push(timestamp, 10, &mut cache);
    }
    let counts = Arc::clone(&rig.counts);
    let wire = rig.finish();
    let wire = wire.lock().unwrap();
    let numbers = wire.sent.iter().map(|(_, datagram)| be(&datagram[8..16]));
    assert_eq!(numbers.collect::<Vec<_>>(), [7, 8, 9]);
    let report = counts.report("x");
    assert_eq!((report.delivered, report.lost.repeated), (3, 2));
    assert!(report.balanced);
}
