//! Messages of the ring as words of the gateware (FLOW and FEEDBACK in hw/docs/layouts.md).

use pollux_farm::message::{Feedback, Flow};
use pollux_farm::topology::{Descriptor, Feeders};

/// Bits of a message, lowest word first.
fn bits(words: &[u32; 8], at: usize, width: usize) -> u64 {
    let mut value = 0;
    for n in 0..width {
        let bit = at + n;
        value |= u64::from(words[bit / 32] >> (bit % 32) & 1) << n;
    }
    value
}

/// A message of the gateware, which has one event, or none.
pub(crate) fn flow(words: &[u32; 8]) -> Flow {
    let number = words[1].into();
    let has_event = bits(words, 169, 1) == 1;
    Flow {
        run: words[0],
        mep: number,
        event: if has_event { number } else { 0 },
        count: has_event.into(),
        descriptor: Descriptor(words[4] as u16),
        generation: words[3],
        attempt: (words[4] >> 16) as u16,
        part: 0,
        loops: words[5] as u8,
        hold: bits(words, 168, 1) == 1,
        members: Feeders(bits(words, 170, 32)),
        pending: Feeders(bits(words, 202, 32)),
        decided: words[2].into(),
    }
}

/// Feedback as the gateware has it.
pub(crate) fn feedback(message: &Feedback) -> [u32; 4] {
    [
        message.run,
        message.mep as u32,
        message.generation,
        u32::from(message.descriptor.0) | u32::from(message.column) << 16,
    ]
}
