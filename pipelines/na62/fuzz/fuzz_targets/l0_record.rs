//! Arbitrary 64 bytes as an event record, then as an L0 event with a primitive's identifier. A
//! value that is read and written again reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_na62::l0::{L0_EVENT, L0Record, PrimitiveId};
use pollux_na62::rich::find::MAX_RINGS;
use pollux_pmd::event::{ClopEvent, EventKind, EventRecord};

fuzz_target!(|data: &[u8]| {
    let [kind, ring_count, id @ .., a, b] = data else {
        return;
    };
    let mut record = EventRecord {
        kind: EventKind(*kind),
        sequence: u32::from(*a),
        ..EventRecord::default()
    };
    for (to, from) in record.payload.iter_mut().zip(id) {
        *to = *from;
    }
    if let Some(event) = ClopEvent::from_record(&record) {
        assert_eq!(
            ClopEvent::from_record(&EventRecord::from(&event)),
            Some(event)
        );
    }
    record.kind = L0_EVENT;
    record.wire.0 = u64::from(*ring_count) << 16;
    let event = L0Record::from_event(&record).expect("of that kind");
    assert_eq!(event.rings().len(), usize::from(*ring_count).min(MAX_RINGS));
    assert_eq!(L0Record::from_event(&event.to_event(7)), Some(event));

    let id = u16::from_le_bytes([*a, *b]);
    if let Some(read) = PrimitiveId::from_bits(id) {
        assert_eq!(read.to_bits(), id);
    }
});
