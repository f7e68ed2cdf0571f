//! Protocol violations of a driver: each is counted, and nothing worse happens.

use pollux_mempool::Burst;

use super::*;
use crate::Cause;
use crate::drivers::virtio::hostile::HostileDriver;

const SPLIT: u8 = 0;
const PACKED: u8 = 1;
const IN_ORDER: u8 = 2;
const MERGEABLE: u8 = 4;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

const GUEST: u64 = HostileDriver::GUEST;
const END: u64 = GUEST + HostileDriver::LEN as u64;

/// Rings of 8 descriptors, and a pool for frames of up to 64 KiB.
struct Test {
    driver: HostileDriver,
    side: Side,
}

impl Test {
    fn new(features: u8) -> Self {
        Self {
            driver: HostileDriver::new(features, 7),
            side: Side::new(64, 1024, 128),
        }
    }

    /// Polls, and returns the number of frames received and lost.
    fn poll(&mut self) -> (usize, u64) {
        let Side {
            cache,
            origin,
            tally,
            ..
        } = &mut self.side;
        let mut burst = Burst::<32>::new();
        let n = self.driver.rx(cache, &mut burst.as_mut(), origin, tally);
        cache.free_burst(&mut burst);
        (n, tally.view().balance().dropped_total())
    }

    fn lost_for(&self, cause: Cause) -> u64 {
        self.side.tally.view().balance().dropped_for(cause)
    }

    /// Sends a frame of that length; returns how many were accepted, sent, and refused.
    fn send(&mut self, len: usize) -> (usize, u64, u64) {
        let mut burst = Burst::<4>::new();
        burst
            .push(self.side.frame(&payload(1, len), &[]).unwrap())
            .unwrap();
        let Side { cache, sent, .. } = &mut self.side;
        let taken = self.driver.tx(cache, &mut burst.as_mut(), sent);
        cache.free_burst(&mut burst);
        (taken, sent.view().packets(), sent.view().errors())
    }

    fn finish(self) {
        let pool = self.side.pool.clone();
        drop(self);
        assert_eq!(pool.available(), pool.buffers());
    }
}

#[test]
fn an_honest_driver_is_believed() {
    for features in 0..8 {
        let mut test = Test::new(features);
        for round in 0..20 {
            let id = round % 8;
            test.driver.offer(0, (GUEST, 72), 0, (id, 0), true);
            assert_eq!(test.poll(), (1, 0));
            test.driver
                .offer(1, (GUEST + 0x800, 1500), WRITE, (id, 0), true);
            assert_eq!(test.send(60), (1, u64::from(round) + 1, 0));
            assert_eq!(test.driver.read(0x800 + 12, 60), payload(1, 60));
        }
        assert_eq!(test.driver.are_broken(), (false, false));
        test.finish();
    }
}

#[test]
fn an_address_outside_costs_its_buffer() {
    let outside = [
        (0, 72),
        (GUEST - 1, 72),
        (END - 71, 72),
        (END, 72),
        (u64::MAX, 72),
        (u64::MAX - 71, 72),
        (GUEST, HostileDriver::LEN as u32 + 1),
        (GUEST, u32::MAX),
        (1 << 63, 72),
    ];
    for features in 0..8 {
        let mut test = Test::new(features);
        for (n, piece) in (0..).zip(outside) {
            let id = n as u16 % 8;
            test.driver.offer(0, piece, 0, (id, 0), true);
            assert_eq!(test.poll(), (0, n + 1), "{piece:x?}");
            test.driver.offer(1, piece, WRITE, (id, 0), true);
            assert_eq!(test.send(60), (1, 0, n + 1), "{piece:x?}");
        }
        assert_eq!(test.lost_for(Cause::DeviceError), outside.len() as u64);
        assert_eq!(test.driver.are_broken(), (false, false));
        // The last bytes are inside.
        test.driver.offer(0, (END - 72, 72), 0, (3, 0), true);
        assert_eq!(test.poll().0, 1);
        test.finish();
    }
}

#[test]
fn a_buffer_for_the_other_direction_costs_itself() {
    for features in 0..4 {
        for flags in [0, WRITE] {
            for more in [0, INDIRECT] {
                if more == 0 && flags == 0 {
                    continue;
                }
                let mut test = Test::new(features);
                test.driver
                    .offer(0, (GUEST, 72), flags | more, (0, 0), true);
                assert_eq!(test.poll(), (0, 1));
                test.driver
                    .offer(1, (GUEST, 72), flags ^ WRITE | more, (0, 0), true);
                assert_eq!(test.send(60), (1, 0, 1));
                assert_eq!(test.driver.are_broken(), (false, false));
                test.finish();
            }
        }
    }
}

#[test]
fn a_frame_that_is_none_is_counted() {
    for features in 0..4 {
        let mut test = Test::new(features);
        for (n, len) in (0..).zip([0, 11, 12]) {
            test.driver.offer(0, (GUEST, len), 0, (n as u16, 0), true);
            assert_eq!(test.poll(), (0, n + 1));
        }
        test.driver.offer(0, (GUEST, 13), 0, (3, 0), true);
        assert_eq!(test.poll(), (1, 3));
        test.finish();
    }
}

#[test]
fn a_frame_longer_than_the_longest_chain_is_too_long() {
    for features in [SPLIT, PACKED] {
        let mut test = Test::new(features);
        test.side = Side::new(8, 1024, 128);
        test.driver
            .offer(0, (GUEST, 9 * 1024 + 12), 0, (0, 0), true);
        assert_eq!(test.poll(), (0, 1));
        assert_eq!(test.lost_for(Cause::Oversize), 1);
        test.finish();
    }
}

#[test]
fn a_chain_without_end_ends() {
    // A split ring's chain has a head, so it can be returned; the end of a packed one's is
    // undefined.
    let mut test = Test::new(SPLIT);
    test.driver.offer(0, (GUEST, 72), NEXT, (1, 0), false);
    test.driver.offer(0, (GUEST, 72), NEXT, (0, 1), true);
    assert_eq!(test.poll(), (0, 1));
    test.driver
        .offer(1, (GUEST, 20), WRITE | NEXT, (2, 2), true);
    assert_eq!(test.send(60), (1, 0, 1));
    assert_eq!(test.driver.are_broken(), (false, false));
    test.finish();

    let mut test = Test::new(PACKED);
    for id in 0..8 {
        test.driver.offer(0, (GUEST, 72), NEXT, (id, 0), true);
        test.driver
            .offer(1, (GUEST, 72), NEXT | WRITE, (id, 0), true);
    }
    assert_eq!(test.poll(), (0, 1));
    assert_eq!(test.send(60), (1, 0, 1));
    assert_eq!(test.driver.are_broken(), (true, true));
    assert_eq!(test.poll(), (0, 1));
    assert_eq!(test.send(60), (0, 0, 1));
    test.finish();
}

#[test]
fn a_chain_that_leaves_the_table_costs_itself() {
    let mut test = Test::new(SPLIT);
    test.driver.offer(0, (GUEST, 72), NEXT, (0, 8), true);
    assert_eq!(test.poll(), (0, 1));
    test.driver.offer(0, (GUEST, 72), NEXT, (1, u16::MAX), true);
    assert_eq!(test.poll(), (0, 2));
    assert_eq!(test.driver.are_broken(), (false, false));
    test.finish();
}

#[test]
fn a_head_that_is_no_descriptor_breaks_the_queue() {
    for head in [8, 255, u16::MAX] {
        for features in [SPLIT, SPLIT | IN_ORDER] {
            let mut test = Test::new(features);
            test.driver.offer(0, (GUEST, 72), 0, (head, 0), true);
            test.driver.offer(1, (GUEST, 72), WRITE, (head, 0), true);
            assert_eq!(test.poll(), (0, 1));
            assert_eq!(test.send(60), (1, 0, 1));
            assert_eq!(test.driver.are_broken(), (true, true));
            test.finish();
        }
    }
}

#[test]
fn an_available_index_that_runs_ahead_or_back_breaks_the_queue() {
    for to in [9, u16::MAX, 1 << 15] {
        let mut test = Test::new(SPLIT);
        test.driver.set_available_index(0, to);
        test.driver.set_available_index(1, to);
        assert_eq!(test.poll(), (0, 1));
        assert_eq!(test.send(60), (1, 0, 1));
        assert_eq!(test.driver.are_broken(), (true, true));
        test.finish();
    }
}

#[test]
fn several_small_buffers_make_a_large_one_where_that_is_allowed() {
    for features in 0..8 {
        let mut test = Test::new(features);
        for id in 0..4 {
            let at = GUEST + u64::from(id) * 0x100;
            test.driver.offer(1, (at, 0x100), WRITE, (id, 0), true);
        }
        let len = 3 * 0x100 - 12;
        let expected = if features & MERGEABLE == 0 {
            (1, 0, 1)
        } else {
            (1, 1, 0)
        };
        assert_eq!(test.send(len), expected);
        if features & MERGEABLE != 0 {
            assert_eq!(test.driver.read(12, len), payload(1, len));
            assert_eq!(test.driver.read(10, 2), [3, 0]);
        }
        // The fourth, or the first, buffer stays available for a frame that fits.
        assert_eq!(test.send(60).1, expected.1 + 1);
        test.finish();
    }
}

#[test]
fn a_header_may_lie_across_pieces() {
    for features in 0..8 {
        let mut test = Test::new(features);
        for (id, len, flags) in [(0, 5, NEXT), (1, 3, NEXT), (2, 20, NEXT), (3, 100, 0)] {
            let at = GUEST + u64::from(id) * 0x100;
            let (pieces, is_head) = ((at, len), id == 0);
            test.driver.offer(0, pieces, flags, (id, id + 1), is_head);
            test.driver
                .offer(1, pieces, flags | WRITE, (id, id + 1), is_head);
        }
        assert_eq!(test.poll(), (1, 0));
        assert_eq!(test.side.tally.view().balance().bytes, 128 - 12);
        assert_eq!(test.send(100), (1, 1, 0));
        let mut written = test.driver.read(0x200 + 4, 16);
        written.extend(test.driver.read(0x300, 84));
        assert_eq!(written, payload(1, 100));
        assert_eq!(test.driver.are_broken(), (false, false));
        test.finish();
    }
}

#[test]
fn frames_wait_while_the_pool_is_empty() {
    for features in 0..4 {
        let mut test = Test::new(features);
        let mut all = Vec::new();
        while let Some(mbuf) = test.side.cache.alloc() {
            all.push(mbuf);
        }
        test.driver.offer(0, (GUEST, 72), 0, (0, 0), true);
        test.driver.offer(0, (GUEST, 4000), 0, (1, 0), true);
        assert_eq!(test.poll(), (0, 0));
        all.truncate(62);
        // Buffers for the first frame, and for a part of the second.
        assert_eq!(test.poll(), (1, 0));
        assert_eq!(test.poll(), (0, 0));
        all.truncate(50);
        assert_eq!(test.poll(), (1, 0));
        drop(all);
        test.finish();
    }
}

const TABLES: u8 = 8;

/// Offset of tables in the shared memory.
const TABLE: u16 = 0x2000;

/// Writes a table, and offers it to a queue, in a descriptor with these flags and a table length of
/// so many bytes.
fn offer_table(
    test: &mut Test,
    packed: bool,
    queue: u8,
    (flags, len): (u16, u32),
    entries: &[(u64, u32, u16, u16)],
) {
    let entry = |&(address, len, flags, next): &(u64, u32, u16, u16)| {
        let (a, b) = if packed { (next, flags) } else { (flags, next) };
        let rest = [a.to_le_bytes(), b.to_le_bytes()].concat();
        [&address.to_le_bytes()[..], &len.to_le_bytes(), &rest].concat()
    };
    let bytes: Vec<u8> = entries.iter().flat_map(entry).collect();
    test.driver.scribble(TABLE, &bytes);
    let at = GUEST + u64::from(TABLE);
    test.driver
        .offer(queue, (at, len), flags | INDIRECT, (0, 0), true);
}

#[test]
fn a_buffer_may_be_described_by_a_table() {
    for features in [
        SPLIT,
        PACKED,
        SPLIT | IN_ORDER,
        PACKED | IN_ORDER,
        MERGEABLE,
    ] {
        let packed = features & PACKED != 0;
        let mut test = Test::new(features | TABLES);
        // Up to the maximum: 8, as the ring.
        for count in [1, 2, 8_u16] {
            let entry = |i: u16, flags: u16| {
                let next = if i + 1 < count { NEXT } else { 0 };
                let at = GUEST + 0x100 * u64::from(i);
                (at, 100, flags | next, i + 1)
            };
            let len = u32::from(count) * 16;
            let entries: Vec<_> = (0..count).map(|i| entry(i, 0)).collect();
            offer_table(&mut test, packed, 0, (0, len), &entries);
            assert_eq!(test.poll(), (1, 0), "{features} {count}");
            let entries: Vec<_> = (0..count).map(|i| entry(i, WRITE)).collect();
            offer_table(&mut test, packed, 1, (0, len), &entries);
            let before = test.side.sent.view().packets();
            assert_eq!(test.send(100 * usize::from(count) - 12), (1, before + 1, 0));
        }
        assert_eq!(test.driver.are_broken(), (false, false));
        test.finish();
    }
}

#[test]
fn a_table_that_makes_no_sense_costs_its_buffer() {
    const SOUND: [(u64, u32, u16, u16); 2] = [(GUEST, 72, NEXT, 1), (GUEST, 72, 0, 0)];
    let lens = [0, 8, 15, 33, 9 * 16, u32::MAX - 15, 1 << 31].map(|len| ((0, len), SOUND));
    let entries = [
        // A nested table, at either place.
        [(GUEST, 32, INDIRECT, 0), SOUND[1]],
        [SOUND[0], (GUEST, 32, INDIRECT, 0)],
        // The other direction.
        [SOUND[0], (GUEST, 72, WRITE, 0)],
        [(GUEST - 1, 72, NEXT, 1), SOUND[1]],
        [SOUND[0], (END - 71, 72, 0, 0)],
    ];
    let chains = [
        // A loop, a link out of the table, and a link behind its end.
        [(GUEST, 72, NEXT, 0), SOUND[1]],
        [SOUND[0], (GUEST, 72, NEXT, 0)],
        [(GUEST, 72, NEXT, 2), SOUND[1]],
        [SOUND[0], (GUEST, 72, NEXT, u16::MAX)],
    ];
    for packed in [false, true] {
        let features = TABLES | if packed { PACKED } else { SPLIT };
        let mut test = Test::new(features);
        // In a packed ring the whole table counts: it contains no chains.
        let chains = if packed { &chains[..0] } else { &chains[..] };
        let entries = entries.iter().chain(chains);
        let all = lens
            .into_iter()
            .chain(entries.map(|&entries| ((0, 32), entries)));
        let mut lost = 0;
        for (head, entries) in all {
            lost += 1;
            offer_table(&mut test, packed, 0, head, &entries);
            assert_eq!(test.poll(), (0, lost), "{head:?} {entries:x?}");
            let written = entries.map(|(at, len, flags, next)| (at, len, flags ^ WRITE, next));
            offer_table(&mut test, packed, 1, head, &written);
            assert_eq!(test.send(60), (1, 0, lost), "{head:?} {entries:x?}");
        }
        // A table outside the memory.
        test.driver.offer(0, (END - 16, 32), INDIRECT, (0, 0), true);
        assert_eq!(test.poll(), (0, lost + 1));
        assert_eq!(test.driver.are_broken(), (false, false));
        test.finish();
    }
    // A chain that continues behind a table.
    let mut test = Test::new(TABLES);
    offer_table(&mut test, false, 0, (NEXT, 32), &SOUND);
    assert_eq!(test.poll(), (0, 1));
    test.finish();
}
