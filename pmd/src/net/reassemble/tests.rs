#![allow(clippy::unwrap_used, clippy::panic)]

use pollux_mempool::time::{Tsc, WireTime};
use pollux_mempool::{MbufFlags, Mempool};

use super::*;
use crate::ledger::{Balance, TallyView};
use crate::net::{ParseOptions, Parsed, classify};
use pollux_pmd_testkit::frames::{Frame, udp_over_ipv6};
use pollux_pmd_testkit::ports::pool;

mod loss;
mod properties;

const MORE: u16 = 0x2000;
const MS: Ns = Ns(1_000_000);

/// A test loop around a reassembler.
struct Rig {
    pool: Mempool,
    cache: PoolCache,
    tally: Tally,
    view: TallyView,
    reassembler: Reassembler,
    now: Ns,
    /// Segments of the last datagram.
    segments: usize,
}

impl Rig {
    fn new(data_room: usize, config: ReassemblyConfig) -> Self {
        let pool = pool(1200, data_room);
        let tally = Tally::new();
        Self {
            cache: pool.cache(64).unwrap(),
            view: tally.view(),
            pool,
            tally,
            reassembler: Reassembler::new(config).unwrap(),
            now: Ns(0),
            segments: 0,
        }
    }

    fn give_mbuf(&mut self, mut mbuf: Mbuf) -> Option<Mbuf> {
        let options = ParseOptions::default();
        self.tally.count_from_wire(1, mbuf.total_len() as u64);
        let (mut parsed, mut frames) = (classify(&mbuf, &options), 1);
        if parsed == Err(Cause::IpFragment) {
            let (cache, tally) = (&mut self.cache, &mut self.tally);
            let whole = self.reassembler.take(mbuf, self.now, cache, tally)?;
            (mbuf, frames) = (whole.mbuf, whole.frames);
            parsed = classify(&mbuf, &options);
        }
        match parsed {
            Ok(Parsed::Udp(_)) => self.tally.count_delivered(frames),
            Ok(_) => self.tally.count_dropped(Cause::NotForUs, frames),
            Err(cause) => self.tally.count_dropped(cause, frames),
        }
        if matches!(parsed, Ok(Parsed::Udp(_))) {
            return Some(mbuf);
        }
        self.cache.free(mbuf);
        None
    }

    /// The payload of the datagram, if the frame completes one.
    fn give(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let mbuf = self.cache.alloc_from(frame).unwrap();
        let whole = self.give_mbuf(mbuf)?;
        let Ok(Parsed::Udp(udp)) = classify(&whole, &ParseOptions::default()) else {
            panic!("no datagram");
        };
        let mut payload = vec![0; usize::from(udp.payload_len)];
        let copied = whole.copy_to(udp.payload_offset.into(), &mut payload);
        assert_eq!(copied, payload.len());
        self.segments = whole.segment_count();
        self.cache.free(whole);
        Some(payload)
    }

    fn give_all<'a>(&mut self, frames: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<Vec<u8>> {
        let frames = frames.into_iter();
        frames.filter_map(|frame| self.give(frame)).collect()
    }

    fn held(&self) -> usize {
        self.pool.buffers() - self.pool.available() - self.cache.len()
    }

    /// Every frame is accounted for, and all buffers have been returned.
    #[track_caller]
    fn end(mut self) -> Balance {
        self.reassembler.finish(&mut self.cache, &mut self.tally);
        assert_eq!(self.held(), 0);
        let balance = self.view.balance();
        assert!(balance.is_balanced(), "{balance}");
        balance
    }

    #[track_caller]
    fn ends_with(self, delivered: u64, drops: &[(Cause, u64)]) {
        let balance = self.end();
        assert_eq!(balance.drops().collect::<Vec<_>>(), drops);
        assert_eq!(balance.delivered, delivered);
    }
}

fn rig() -> Rig {
    Rig::new(2048, ReassemblyConfig::default())
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

/// A part of a datagram in a frame of its own.
fn part(whole: &Frame, at: usize, len: usize, flags: u16) -> Vec<u8> {
    Frame {
        flags_offset: (at / 8) as u16 | flags,
        body: whole.body[at..at + len].to_vec(),
        ..whole.clone()
    }
    .bytes()
}

/// A datagram in fragments of so many bytes each, repeated.
fn fragments(whole: &Frame, sizes: &[usize]) -> Vec<Vec<u8>> {
    let (mut at, mut frames) = (0, Vec::new());
    for size in sizes.iter().cycle() {
        let len = (*size).min(whole.body.len() - at);
        let flags = if at + len < whole.body.len() { MORE } else { 0 };
        frames.push(part(whole, at, len, flags));
        at += len;
        if at == whole.body.len() {
            break;
        }
    }
    frames
}

#[test]
fn fragments_in_any_buffers_make_the_datagram() {
    let whole = Frame::udp(&payload(4000));
    let tagged = Frame {
        tags: vec![(0x88a8, 7), (0x8100, 9)],
        options: vec![1; 40],
        padding: 20,
        ..whole.clone()
    };
    for frame in [whole, tagged] {
        let parts = fragments(&frame, &[1480]);
        assert_eq!(parts.len(), 3);
        let next = Frame {
            id: frame.id + 1,
            ..frame
        };
        let mut backwards = fragments(&next, &[1480]);
        backwards.reverse();
        for data_room in [128, 1500, 2048] {
            let mut rig = Rig::new(data_room, ReassemblyConfig::default());
            assert_eq!(rig.give_all(&parts), [payload(4000)], "{data_room}");
            assert_eq!(rig.give_all(&backwards), [payload(4000)], "{data_room}");
            rig.ends_with(6, &[]);
        }
    }
}

#[test]
fn a_datagram_that_fits_a_buffer_is_in_one() {
    let whole = Frame::udp(&payload(1500));
    let mut rig = rig();
    assert_eq!(rig.give_all(&fragments(&whole, &[800])), [payload(1500)]);
    assert_eq!(rig.segments, 1);
    let whole = Frame::udp(&payload(3000));
    assert_eq!(rig.give_all(&fragments(&whole, &[1480])), [payload(3000)]);
    assert_eq!(rig.segments, 3);
    rig.ends_with(5, &[]);
}

#[test]
fn the_longest_datagram_has_room_in_small_buffers() {
    let whole = Frame::udp(&payload(65_507));
    let config = ReassemblyConfig {
        fragments: 1024,
        buffers: 1024,
        ..ReassemblyConfig::default()
    };
    let mut rig = Rig::new(128, config);
    assert_eq!(rig.give_all(&fragments(&whole, &[1480])), [payload(65_507)]);
    rig.ends_with(45, &[]);
}

#[test]
fn copies_are_dropped_and_nothing_else() {
    let parts = fragments(&Frame::udp(&payload(4000)), &[1480]);
    let mut rig = rig();
    let twice = [&parts[0], &parts[0], &parts[1], &parts[0], &parts[1]];
    assert!(rig.give_all(twice).is_empty());
    assert_eq!(rig.give(&parts[2]), Some(payload(4000)));
    // Behind the datagram, too; a first fragment alone may be of another one.
    assert_eq!(rig.give(&parts[2]), None);
    assert_eq!(rig.give(&parts[0]), None);
    let drops = [(Cause::ReassemblyTimeout, 1), (Cause::Duplicate, 4)];
    rig.ends_with(3, &drops);
}

#[test]
fn contradictions_drop_all_of_the_datagram() {
    let whole = Frame::udp(&payload(392));
    let part = |at, len, flags| part(&whole, at, len, flags);
    let other = |at: usize, len, flags| {
        let mut changed = whole.clone();
        changed.body[at + 1] ^= 1;
        super::tests::part(&changed, at, len, flags)
    };
    let (first, last) = (part(0, 200, MORE), part(200, 200, 0));
    for (name, bad) in [
        ("begins inside another (teardrop)", part(96, 200, MORE)),
        ("lies inside another", part(48, 64, MORE)),
        ("encloses another", part(0, 208, MORE)),
        ("the same place, other bytes", other(0, 200, MORE)),
    ] {
        for frames in [[&first, &bad, &last], [&bad, &first, &last]] {
            let mut rig = rig();
            assert!(rig.give_all(frames).is_empty(), "{name}");
            assert_eq!(rig.held(), 0, "{name}");
            rig.ends_with(0, &[(Cause::ReassemblyOverlap, 3)]);
        }
    }
    let (middle, end) = (part(200, 96, MORE), part(296, 104, 0));
    for (name, bad) in [
        ("another end, further in", part(200, 48, 0)),
        ("another end, further out", part(304, 96, 0)),
        ("more behind the end", part(296, 104, MORE)),
    ] {
        for frames in [[&middle, &end, &bad], [&bad, &end, &middle]] {
            let mut rig = rig();
            assert!(rig.give_all(frames).is_empty(), "{name}");
            rig.ends_with(0, &[(Cause::ReassemblyOverlap, 3)]);
        }
    }
}

#[test]
fn a_refused_datagram_is_forgotten_in_time() {
    let whole = Frame::udp(&payload(392));
    let parts = fragments(&whole, &[200]);
    let mut rig = rig();
    rig.give_all([&parts[0], &part(&whole, 96, 200, MORE)]);
    rig.now = Ns(99 * MS.0);
    assert!(rig.give_all(&parts).is_empty());
    rig.now = Ns(100 * MS.0);
    assert_eq!(rig.give_all(&parts), [payload(392)]);
    rig.ends_with(2, &[(Cause::ReassemblyOverlap, 4)]);
}

#[test]
fn fragments_of_no_length_or_of_half_a_unit_are_malformed() {
    let whole = Frame::udp(&payload(392));
    let mut rig = rig();
    let parts = fragments(&whole, &[200]);
    rig.give(&parts[0]);
    let bad = [part(&whole, 200, 0, 0), part(&whole, 200, 0, MORE)];
    assert!(rig.give_all(&bad).is_empty());
    assert_eq!(rig.give(&part(&whole, 200, 99, MORE)), None);
    // The first fragment is too short for the UDP header.
    assert_eq!(rig.give(&part(&whole, 0, 4, MORE)), None);
    assert_eq!(rig.give(&parts[1]), Some(payload(392)));
    rig.ends_with(2, &[(Cause::Malformed, 4)]);
}

#[test]
fn no_datagram_is_longer_than_there_can_be() {
    let whole = Frame::udp(&payload(3000));
    let mut rig = rig();
    rig.give(&part(&whole, 0, 1480, MORE));
    let beyond = Frame {
        flags_offset: 0x1fff,
        body: vec![0; 48],
        ..whole.clone()
    };
    assert_eq!(rig.give(&beyond.bytes()), None);
    rig.ends_with(0, &[(Cause::Oversize, 2)]);

    // A length that is valid with each fragment's own header is too long with that of the first.
    let whole = Frame::udp(&payload(65_507));
    let mut parts = fragments(&whole, &[1480]);
    let with_options = Frame {
        options: vec![1; 4],
        ..whole
    };
    parts[0] = part(&with_options, 0, 1480, MORE);
    let mut rig = super::tests::rig();
    assert!(rig.give_all(&parts).is_empty());
    rig.ends_with(0, &[(Cause::Oversize, 45)]);
}

#[test]
fn what_does_not_come_in_time_is_dropped() {
    let parts = fragments(&Frame::udp(&payload(4000)), &[1480]);
    let mut rig = rig();
    rig.give_all(&parts[..2]);
    rig.now = Ns(100 * MS.0 - 1);
    let (cache, tally) = (&mut rig.cache, &mut rig.tally);
    rig.reassembler.expire(rig.now, cache, tally);
    assert_eq!(rig.held(), 2);
    rig.now = Ns(100 * MS.0);
    let (cache, tally) = (&mut rig.cache, &mut rig.tally);
    rig.reassembler.expire(rig.now, cache, tally);
    assert_eq!(rig.held(), 0);
    assert_eq!(rig.give(&parts[2]), None);
    // A recording that is read again starts anew.
    rig.now = Ns(0);
    assert_eq!(rig.give_all(&parts), [payload(4000)]);
    rig.ends_with(3, &[(Cause::ReassemblyTimeout, 3)]);
}

#[test]
fn memory_is_bounded_by_datagrams_fragments_and_buffers() {
    let config = ReassemblyConfig {
        datagrams: 8,
        fragments: 4,
        buffers: 12,
        ..ReassemblyConfig::default()
    };
    let mut rig = Rig::new(2048, config);
    let of = |id| Frame {
        id,
        ..Frame::udp(&payload(400))
    };
    // The table has the last eight.
    for id in 0..20 {
        rig.give(&part(&of(id), 0, 80, MORE));
    }
    assert_eq!(rig.held(), 8);
    // A fifth fragment exceeds the limit, and the whole datagram is dropped.
    rig.give_all(&fragments(&of(15), &[80])[1..]);
    assert_eq!(rig.held(), 7);
    for id in [12, 13, 14, 16, 17] {
        rig.give(&part(&of(id), 80, 80, MORE));
    }
    assert_eq!(rig.held(), 12);
    // A thirteenth buffer is taken from the datagram that has waited longest for a fragment.
    let refused = |rig: &Rig| rig.view.balance().dropped_for(Cause::ReassemblyFull);
    assert_eq!(refused(&rig), 12 + 6);
    rig.give(&part(&of(12), 160, 80, MORE));
    assert_eq!((rig.held(), refused(&rig)), (12, 12 + 6 + 1));
    rig.ends_with(
        0,
        &[(Cause::ReassemblyTimeout, 12), (Cause::ReassemblyFull, 19)],
    );
}

#[test]
fn an_identification_that_is_used_again_at_once_begins_a_datagram() {
    let mut rig = rig();
    for len in [400, 500, 400] {
        let parts = fragments(&Frame::udp(&payload(len)), &[160]);
        assert_eq!(rig.give_all(&parts), [payload(len)]);
    }
    rig.ends_with(3 + 4 + 3, &[]);
}

#[test]
fn other_protocols_are_not_put_together() {
    let ping = Frame::ip(1, payload(400));
    let mut rig = rig();
    assert!(rig.give_all(&fragments(&ping, &[200])).is_empty());
    assert_eq!(rig.give(&udp_over_ipv6(44, &[0; 16])), None);
    assert_eq!(rig.held(), 0);
    rig.ends_with(0, &[(Cause::IpFragment, 3)]);
}

#[test]
fn the_checksum_is_that_of_the_whole() {
    let whole = Frame::udp(&payload(3000));
    let mut rig = rig();
    for at in [0, 1, 2] {
        let mut parts = fragments(&whole, &[1480]);
        *parts[at].last_mut().unwrap() ^= 1;
        assert!(rig.give_all(&parts).is_empty(), "{at}");
    }
    rig.ends_with(0, &[(Cause::BadChecksum, 9)]);
}

#[test]
fn a_device_vouches_for_all_fragments_or_for_none() {
    let mut parts = fragments(&Frame::udp(&payload(3000)), &[1480]);
    *parts[1].last_mut().unwrap() ^= 1;
    for trusted in 0..8 {
        let mut rig = rig();
        let mut came = None;
        for (n, frame) in parts.iter().enumerate() {
            let mut mbuf = rig.cache.alloc_from(frame).unwrap();
            if trusted >> n & 1 == 1 {
                mbuf.add_flags(MbufFlags::CHECKSUM_TRUSTED);
            }
            came = rig.give_mbuf(mbuf);
        }
        assert_eq!(came.is_some(), trusted == 7, "{trusted}");
        drop(came);
        rig.end();
    }
}

#[test]
fn a_datagram_comes_when_its_last_fragment_does() {
    let parts = fragments(&Frame::udp(&payload(3000)), &[1480]);
    let mut rig = rig();
    let mut came = None;
    for (n, frame) in parts.iter().enumerate().rev() {
        let mut mbuf = rig.cache.alloc_from(frame).unwrap();
        let at = 10 - n as u64;
        mbuf.set_origin(3, n as u16, 100 - n as u32, Tsc(at));
        mbuf.set_wire_time(WireTime(1000 * at));
        came = rig.give_mbuf(mbuf);
    }
    let whole = came.unwrap();
    assert_eq!((whole.port(), whole.queue(), whole.ordinal()), (3, 0, 100));
    assert_eq!(whole.arrival(), Tsc(10));
    assert_eq!(whole.wire_time(), Some(WireTime(10_000)));
    drop(whole);
    rig.end();
}

#[test]
fn bounds_that_make_no_sense_are_refused() {
    let good = ReassemblyConfig::default;
    let refused = |config| Reassembler::new(config).err().unwrap().to_string();
    let no_time = ReassemblyConfig {
        timeout: Ns(999_999),
        ..good()
    };
    assert_eq!(
        refused(no_time),
        "reassembly: timeout_ms = 0: it must be 1 to 60000"
    );
    let alone = ReassemblyConfig {
        fragments: 1,
        ..good()
    };
    assert!(refused(alone).contains("fragments = 1: it must be 2 to 1024"));
    let many = ReassemblyConfig {
        datagrams: 1025,
        ..good()
    };
    assert!(refused(many).contains("datagrams = 1025"));
    let none = ReassemblyConfig {
        buffers: 0,
        ..good()
    };
    assert!(refused(none).contains("buffers = 0"));
}
