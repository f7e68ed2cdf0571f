//! Messages of schema ev44: detector events.
//!
//! Source: ess-dmsc/streaming-data-types, schemas/ev44_events.fbs. What it calls an event is a hit
//! here, and what it calls a pulse is an event: docs/formats/kafka.md.

use flatbuffers::FlatBufferBuilder;
use pollux_na62::rich::Hit;

use crate::schema::field;

/// Fields of `Event44Message`.
const SOURCE_NAME: u16 = field(0);
const MESSAGE_ID: u16 = field(1);
const REFERENCE_TIME: u16 = field(2);
const REFERENCE_TIME_INDEX: u16 = field(3);
const TIME_OF_FLIGHT: u16 = field(4);
const PIXEL_ID: u16 = field(5);

/// Bytes of a message besides its vectors' elements and its source's name, at most: the offset of
/// the root, the identifier, the table of offsets (16), the table (32), the lengths of four vectors
/// and a string, and alignment.
const FIXED: usize = 128;

/// Bytes of an event: its time and the index of its first hit.
const EVENT: usize = size_of::<i64>() + size_of::<i32>();

/// Bytes of a hit: its time and its photomultiplier.
const HIT: usize = 2 * size_of::<i32>();

/// Collects events for a message.
pub struct Ev44 {
    source: String,
    /// Number of the next message.
    id: i64,
    builder: FlatBufferBuilder<'static>,
    times: Vec<i64>,
    first_hits: Vec<i32>,
    offsets: Vec<i32>,
    pixels: Vec<i32>,
}

impl Ev44 {
    /// Messages of a source.
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self {
            source: source.into(),
            id: 0,
            builder: FlatBufferBuilder::new(),
            times: Vec::new(),
            first_hits: Vec::new(),
            offsets: Vec::new(),
            pixels: Vec::new(),
        }
    }

    /// Number of collected events.
    #[must_use]
    pub fn events(&self) -> usize {
        self.times.len()
    }

    /// Upper bound of the length of the message with one more event of so many hits.
    #[must_use]
    pub fn len_with(&self, hits: usize) -> usize {
        let (events, hits) = (self.times.len() + 1, self.pixels.len() + hits);
        FIXED + self.source.len() + EVENT * events + HIT * hits
    }

    /// Adds an event: its time in ns since the Unix epoch, and its hits.
    pub fn push(&mut self, time_ns: i64, hits: &[Hit]) {
        self.times.push(time_ns);
        self.first_hits.push(self.pixels.len() as i32);
        // 25/256 ns each, rounded down.
        let offset = |hit: &Hit| (i32::from(hit.fine) * 25) >> 8;
        self.offsets.extend(hits.iter().map(offset));
        self.pixels.extend(hits.iter().map(|hit| i32::from(hit.pm)));
    }

    /// The message of the collected events; the next one begins empty, with the next number.
    pub fn message(&mut self) -> &[u8] {
        let builder = &mut self.builder;
        builder.reset();
        let pixels = builder.create_vector(&self.pixels);
        let offsets = builder.create_vector(&self.offsets);
        let first_hits = builder.create_vector(&self.first_hits);
        let times = builder.create_vector(&self.times);
        let source = builder.create_string(&self.source);
        let table = builder.start_table();
        builder.push_slot_always(MESSAGE_ID, self.id);
        builder.push_slot_always(SOURCE_NAME, source);
        builder.push_slot_always(REFERENCE_TIME, times);
        builder.push_slot_always(REFERENCE_TIME_INDEX, first_hits);
        builder.push_slot_always(TIME_OF_FLIGHT, offsets);
        builder.push_slot_always(PIXEL_ID, pixels);
        let table = builder.end_table(table);
        builder.finish(table, Some("ev44"));
        self.id += 1;
        self.times.clear();
        self.first_hits.clear();
        self.offsets.clear();
        self.pixels.clear();
        self.builder.finished_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No message is longer than its bound says, so that none exceeds the broker's limit.
        #[test]
        fn a_message_has_its_bound(
            source in ".{0,40}",
            events in proptest::collection::vec(0_usize..40, 1..60),
        ) {
            let mut ev44 = Ev44::new(&source);
            let mut bound = 0;
            for hits in events {
                bound = ev44.len_with(hits);
                ev44.push(1, &vec![Hit { pm: 7, fine: 255 }; hits]);
            }
            let len = ev44.message().len();
            prop_assert!(len <= bound && len + FIXED > bound, "{len} {bound}");
            prop_assert_eq!(ev44.events(), 0);
        }
    }

    /// The bytes after FlatBuffers' rules ("Internals"), read by hand: root, identifier, the
    /// table's offsets, vectors.
    #[test]
    fn the_layout_is_that_of_the_schema() {
        let u16_at =
            |bytes: &[u8], at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let u32_at = |bytes: &[u8], at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
        };
        let mut ev44 = Ev44::new("rich");
        ev44.push(
            1_050,
            &[
                Hit { pm: 3, fine: 0 },
                Hit {
                    pm: 1951,
                    fine: 255,
                },
            ],
        );
        ev44.push(i64::MAX, &[]);
        ev44.push(1_100, &[Hit { pm: 5, fine: 700 }]);
        let bytes = ev44.message();
        assert_eq!(&bytes[4..8], b"ev44");
        let table = u32_at(bytes, 0);
        let offsets = table - u32_at(bytes, table);
        assert_eq!(u16_at(bytes, offsets), 4 + 2 * 6);
        let place = |n: usize| table + u16_at(bytes, offsets + 4 + 2 * n);
        let vector = |n: usize, width: usize| {
            let at = place(n) + u32_at(bytes, place(n));
            let elements = &bytes[at + 4..][..u32_at(bytes, at) * width];
            elements
                .chunks_exact(width)
                .map(|bytes| {
                    let mut number = [0; 8];
                    number[..width].copy_from_slice(bytes);
                    i64::from_le_bytes(number)
                })
                .collect::<Vec<_>>()
        };
        let text: Vec<u8> = vector(0, 1).into_iter().map(|byte| byte as u8).collect();
        assert_eq!(text, b"rich");
        assert_eq!(u32_at(bytes, place(1)), 0);
        assert_eq!(vector(2, 8), [1_050, i64::MAX, 1_100]);
        assert_eq!(vector(3, 4), [0, 2, 2]);
        // 255 * 25 / 256 = 24.9, 700 * 25 / 256 = 68.4.
        assert_eq!(vector(4, 4), [0, 24, 68]);
        assert_eq!(vector(5, 4), [3, 1951, 5]);
    }
}
