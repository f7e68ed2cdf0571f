//! The host bus without a card: the root port's handling of requests, and its reports of
//! violations.

use std::collections::BTreeMap;

use pollux_card_model::{Host, ReadError};

use super::header::{
    ABORTED, ADDRESS, BYTE_COUNT, FIRST_BE, Header, LAST_BE, LENGTH, LOWER_ADDRESS, OFFSET, STATUS,
    TAG, WRITE,
};
use super::{Behaviour, POSTED_HEADERS, RootPort, bytes};
use crate::pins::{Beat, CoreOut};

/// A cycle of `clk_core`, in picoseconds.
const CYCLE: u64 = 4_000;

/// Memory that records accesses: writes `('w', at)`, reads `('r', at)`, interrupts.
#[derive(Default)]
struct Memory {
    order: Vec<(char, u64)>,
    error: Option<ReadError>,
}

impl Host for Memory {
    fn read(&mut self, _: u8, at: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.order.push(('r', at));
        for (offset, byte) in out.iter_mut().enumerate() {
            *byte = (at as usize + offset) as u8;
        }
        self.error.map_or(Ok(()), Err)
    }

    fn write(&mut self, _: u8, at: u64, _: &[u8]) {
        self.order.push(('w', at));
    }

    fn interrupt(&mut self, _: u8, vector: u16) {
        self.order.push(('i', vector.into()));
    }
}

/// A root port, with a card that makes the test's offers and accepts everything.
struct Bench {
    port: RootPort,
    memory: Memory,
    now: u64,
    /// Beats of completions and of register requests, as received by the card.
    completions: Vec<Beat>,
    requests: Vec<Beat>,
    /// The card accepts no register requests.
    deaf: bool,
}

impl Bench {
    fn new(seed: u64, behaviour: Behaviour) -> Self {
        Self {
            port: RootPort::new(seed, behaviour),
            memory: Memory::default(),
            now: 0,
            completions: Vec::new(),
            requests: Vec::new(),
            deaf: false,
        }
    }

    /// A cycle; returns which of an offered write and read was accepted.
    fn cycle(&mut self, mut seen: CoreOut) -> (bool, bool) {
        let pins = *self.port.pins();
        (seen.rx_cpl_ready, seen.rx_req_ready) = (1, (!self.deaf).into());
        if pins.rx_cpl.valid != 0 {
            self.completions.push(pins.rx_cpl);
        }
        if pins.rx_req.valid != 0 && !self.deaf {
            self.requests.push(pins.rx_req);
        }
        self.now += CYCLE;
        self.port.edge(self.now, &seen, &mut self.memory);
        (pins.wr_req_ready != 0, pins.rd_req_ready != 0)
    }

    fn idle(&mut self, cycles: usize) {
        for _ in 0..cycles {
            self.cycle(CoreOut::default());
        }
    }

    /// Offers a write of 4 bytes until accepted; returns whether that was within so many cycles.
    fn write_within(&mut self, at: u64, cycles: usize) -> bool {
        let header = Header::default()
            .with(ADDRESS, at)
            .with(LENGTH, 1)
            .with(FIRST_BE, 15);
        let seen = CoreOut {
            wr_req: Beat::new(header.words(), [0; 8], true, true),
            ..CoreOut::default()
        };
        (0..cycles).any(|_| self.cycle(seen).0)
    }

    fn write(&mut self, at: u64) {
        assert!(self.write_within(at, 10_000), "a write that waits for ever");
    }

    /// The same of a read of some DWs.
    fn read(&mut self, at: u64, dws: u64, tag: u64) {
        let header = Header::default()
            .with(ADDRESS, at)
            .with(LENGTH, dws)
            .with(FIRST_BE, 15)
            .with(LAST_BE, if dws == 1 { 0 } else { 15 })
            .with(TAG, tag);
        let seen = CoreOut {
            rd_req: Beat::new(header.words(), [0; 8], true, true),
            ..CoreOut::default()
        };
        let taken = (0..10_000).any(|_| self.cycle(seen).1);
        assert!(taken, "a read that waits for ever");
    }

    /// Completions of each tag: lower address, byte count, bytes, in their order.
    fn answers(&self) -> BTreeMap<u64, Vec<(u64, u64, Vec<u8>)>> {
        let mut answers: BTreeMap<_, Vec<(u64, u64, Vec<u8>)>> = BTreeMap::new();
        let mut data = Vec::new();
        let mut header = Header::default();
        for beat in &self.completions {
            if beat.sop != 0 {
                header = Header::from_words(beat.header);
                data.clear();
            }
            data.extend(beat.data.iter().flat_map(|word| word.to_le_bytes()));
            if beat.eop != 0 {
                data.truncate(4 * header.get(LENGTH) as usize);
                let (lower, count) = (header.get(LOWER_ADDRESS), header.get(BYTE_COUNT));
                let of = answers.entry(header.get(TAG)).or_default();
                of.push((lower, count, std::mem::take(&mut data)));
            }
        }
        answers
    }

    fn end(self) {
        assert_eq!(self.port.violations(), &[] as &[String]);
    }
}

#[test]
fn writes_land_in_their_order_however_late_each_is() {
    for seed in 0..8 {
        let mut bench = Bench::new(seed, Behaviour::adversarial());
        let places: Vec<_> = (0..200).map(|n| 0x1000 + 8 * n).collect();
        for &at in &places {
            bench.write(at);
        }
        bench.idle(1000);
        let landed: Vec<_> = bench.memory.order.iter().map(|&(_, at)| at).collect();
        assert_eq!(landed, places);
        bench.end();
    }
}

#[test]
fn an_interrupt_and_a_read_pass_no_write_before_them() {
    for seed in 0..20 {
        let mut bench = Bench::new(seed, Behaviour::adversarial());
        bench.write(0x1000);
        bench.read(0x2000, 4, 0);
        bench.write(super::upstream::INTERRUPTS);
        bench.idle(2000);
        let at = |what| {
            bench
                .memory
                .order
                .iter()
                .position(|&(kind, _)| kind == what)
        };
        assert!(
            at('w') < at('r') && at('w') < at('i'),
            "{:?}",
            bench.memory.order
        );
        assert_eq!(bench.memory.order.len(), 3);
        bench.end();
    }
}

#[test]
fn completions_are_cut_at_boundaries_and_are_all_of_what_was_asked_for() {
    let mut cuts = 0;
    for seed in 0..20 {
        let mut bench = Bench::new(seed, Behaviour::adversarial());
        for tag in 0..4 {
            bench.read(0x1000 + 0x1004 * tag, 128, tag);
        }
        bench.idle(3000);
        for (tag, pieces) in bench.answers() {
            let (mut at, mut left) = (0x1000 + 0x1004 * tag, 512);
            let last = pieces.len() - 1;
            for (number, (lower, count, data)) in pieces.into_iter().enumerate() {
                assert_eq!((lower, count), (at & 0x7f, left));
                assert!(data.len() <= bytes(Behaviour::adversarial().max_payload));
                let expected: Vec<_> = (0..data.len() as u64).map(|n| (at + n) as u8).collect();
                assert_eq!(data, expected);
                (at, left) = (at + data.len() as u64, left - data.len() as u64);
                assert!(number == last || at.is_multiple_of(64));
                cuts += usize::from(number != last);
            }
            assert_eq!(left, 0, "tag {tag}");
        }
        bench.end();
    }
    assert!(cuts > 100, "{cuts}");
}

#[test]
fn completions_of_several_tags_come_in_any_order_and_promptly_in_theirs() {
    let order = |seed, behaviour| {
        let mut bench = Bench::new(seed, behaviour);
        (0..8).for_each(|tag| bench.read(0x1000 * (tag + 1), 16, tag));
        bench.idle(2000);
        let tag = |beat: &Beat| (beat.sop != 0).then(|| Header::from_words(beat.header).get(TAG));
        let tags: Vec<_> = bench.completions.iter().filter_map(tag).collect();
        assert_eq!(tags.len(), 8);
        bench.end();
        tags
    };
    let sorted: Vec<_> = (0..8).collect();
    assert_eq!(order(1, Behaviour::prompt()), sorted);
    assert!((0..8).any(|seed| order(seed, Behaviour::adversarial()) != sorted));
}

#[test]
fn a_read_takes_as_long_as_the_behaviour_says() {
    for seed in 0..20 {
        let mut bench = Bench::new(seed, Behaviour::adversarial());
        bench.read(0x1000, 1, 0);
        let asked = bench.now;
        while bench.completions.is_empty() {
            bench.idle(1);
        }
        let took = bench.now - asked;
        // In addition: two TLPs on the link, and cycles without acceptance.
        assert!((300_000..2_200_000).contains(&took), "{took} ps");
        bench.end();
    }
}

#[test]
fn posted_credits_come_back_only_when_writes_are_in_memory() {
    let mut bench = Bench::new(
        1,
        Behaviour {
            write: 4_000_000..=4_000_000,
            ..Behaviour::prompt()
        },
    );
    let taken = (0..2 * POSTED_HEADERS as u64)
        .take_while(|n| bench.write_within(0x1000 + 4 * n, 50))
        .count();
    // The beat that is offered in the cycle in which space is reported is accepted as well.
    assert!(
        (POSTED_HEADERS..=POSTED_HEADERS + 1).contains(&taken),
        "{taken}"
    );
    bench.port.set_behaviour(Behaviour::prompt());
    bench.idle(2000);
    assert_eq!(bench.memory.order.len(), taken);
    bench.write(0x5000);
}

#[test]
fn a_read_fails_as_memory_says_and_is_over() {
    let mut bench = Bench::new(1, Behaviour::prompt());
    bench.memory.error = Some(ReadError::Abort);
    bench.read(0x1000, 128, 3);
    bench.idle(1000);
    let last = bench.completions.last().unwrap();
    let last = Header::from_words(last.header);
    assert_eq!((last.get(STATUS), last.get(LENGTH)), (ABORTED, 0));
    // Its tag is free: no violation for a reused tag.
    bench.memory.error = None;
    bench.read(0x1000, 1, 3);
    bench.end();
}

#[test]
fn a_stray_completion_comes_to_the_card_and_answers_nothing() {
    let mut bench = Bench::new(1, Behaviour::prompt());
    bench.port.stray(0, 9);
    bench.read(0x1000, 1, 2);
    bench.idle(1000);
    let answers = bench.answers();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[&9].len(), 1);
    assert_eq!(answers[&2][0].2, [0, 1, 2, 3]);
    bench.end();
}

#[test]
fn register_accesses_of_up_to_64_bytes_come_whole_and_in_order() {
    for seed in 0..8 {
        let mut bench = Bench::new(seed, Behaviour::adversarial());
        let all: Vec<_> = (0..64).collect();
        bench.port.request_write(0, 0, 0x40, &all);
        bench.port.request_write(0, 0, 0x31, &[0xaa]);
        bench.port.request_write(0, 0, 0x36, &[1, 2, 3, 4]);
        bench.idle(1000);
        let first: Vec<_> = bench.requests.iter().filter(|beat| beat.sop != 0).collect();
        let fields = |beat: &&Beat| {
            let header = Header::from_words(beat.header);
            assert_eq!(header.get(WRITE), 1);
            [OFFSET, LENGTH, FIRST_BE, LAST_BE].map(|field| header.get(field))
        };
        let seen: Vec<_> = first.iter().map(fields).collect();
        assert_eq!(
            seen,
            [[0x40, 16, 15, 15], [0x30, 1, 2, 0], [0x34, 2, 12, 3]]
        );
        let bytes: Vec<u8> = bench.requests[..2]
            .iter()
            .flat_map(|beat| beat.data.iter().flat_map(|word| word.to_le_bytes()))
            .collect();
        assert_eq!(bytes, all);
        assert_eq!(bench.port.requests(), 0);
        bench.end();
    }
}

#[test]
fn a_register_access_stands_until_it_is_taken() {
    let mut bench = Bench::new(1, Behaviour::prompt());
    bench.deaf = true;
    bench.port.request_write(0, 0, 8, &[1, 2, 3, 4]);
    bench.port.request_write(0, 0, 12, &[5, 6, 7, 8]);
    bench.idle(500);
    assert_eq!(bench.port.accesses(), (2, 0));
    let offered = bench.port.pins().rx_req;
    bench.idle(100);
    assert_eq!(bench.port.pins().rx_req, offered);
    bench.deaf = false;
    bench.idle(10);
    assert_eq!(bench.port.accesses(), (2, 2));
    bench.end();
}

#[test]
fn what_no_card_may_do_is_told() {
    let broken = |what: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::new(1, Behaviour::prompt());
        what(&mut bench);
        bench.port.violations().join(" ")
    };
    assert!(broken(&|bench| bench.read(0x1ffc, 2, 0)).contains("crosses 4 KiB"));
    assert!(broken(&|bench| bench.read(0x1000, 256, 0)).contains("longer than"));
    assert!(broken(&|bench| bench.write(0x1002)).contains("not that of a DW"));
    let twice = |bench: &mut Bench| (0..2).for_each(|_| bench.read(0x1000, 1, 5));
    assert!(broken(&twice).contains("its tag is another's"));
    let taken_back = |bench: &mut Bench| {
        let header = Header::default().with(LENGTH, 1).with(FIRST_BE, 15);
        let seen = CoreOut {
            tx_cpl: Beat::new(header.words(), [0; 8], true, false),
            ..CoreOut::default()
        };
        bench.cycle(seen);
        bench.idle(1);
    };
    assert!(!broken(&taken_back).is_empty());
}
