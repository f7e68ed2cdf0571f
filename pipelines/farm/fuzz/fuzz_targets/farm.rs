//! Arbitrary bytes as a frame of the farm. What is read is written again as it was, and the events
//! of a payload lie within it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_farm::message::Message;
use pollux_farm::wire::{self, payload};

/// Sets the CRC, so that what is behind it is reached.
fn repair(frame: &mut [u8]) {
    if let Some(header) = frame.get_mut(..wire::HEADER) {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header[..4]);
        crc.update(&header[8..]);
        header[4..8].copy_from_slice(&crc.finalize().to_le_bytes());
    }
}

fuzz_target!(|data: &[u8]| {
    let _ = wire::decode(data);
    let mut frame = data.to_vec();
    repair(&mut frame);
    let Ok(message) = wire::decode(&frame) else {
        return;
    };
    let (header, data) = frame.split_at(wire::HEADER);
    assert_eq!(wire::encode(&message), header);
    let Message::Fragment(fragment) = message else {
        return;
    };
    let checked = payload::check(&fragment, data);
    let events: Vec<_> = payload::events(fragment.count, data).collect();
    assert!(events.len() <= usize::from(fragment.count));
    let bytes: usize = events.iter().flatten().map(|event| event.len()).sum();
    assert!(bytes <= data.len());
    if checked.is_ok() {
        assert_eq!(events.len(), usize::from(fragment.count));
        let absent = events.iter().filter(|event| event.is_none()).count();
        assert_eq!(absent, usize::from(fragment.absent));
    }
});
