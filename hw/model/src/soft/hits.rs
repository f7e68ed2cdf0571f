//! The decompressor: docs/formats/rich-hits.md, "Expanded form".

use crate::Register;
use crate::registers::clop::{OUTCOME_BAD_VERSION, OUTCOME_MALFORMED};

/// Bytes of the header.
const HEADER: usize = 24;

/// Largest photomultiplier index.
const MOST: u32 = 1951;

/// The expanded form of a container; or the counter of its error.
pub(super) fn expand(data: &[u8]) -> Result<Vec<u8>, Register> {
    if data.len() < HEADER || &data[..4] != b"PXRH" {
        return Err(OUTCOME_MALFORMED);
    }
    if data[4] != 1 {
        return Err(OUTCOME_BAD_VERSION);
    }
    events(data).ok_or(OUTCOME_MALFORMED)
}

fn events(data: &[u8]) -> Option<Vec<u8>> {
    let count = u16::from_le_bytes([data[12], data[13]]);
    let length = u16::from_le_bytes([data[14], data[15]]);
    let first = u64::from_le_bytes(*data.get(16..)?.first_chunk()?);
    if data[7] != 0 || usize::from(length) != data.len() - HEADER {
        return None;
    }
    let mut out = data[..HEADER].to_vec();
    out[4] = 129;
    let mut at = HEADER;
    let mut slot = 0_u32;
    for event in 0..count {
        let gap = code(data, &mut at)?;
        slot = match (event, gap) {
            (0, 0) => 0,
            (0, _) => return None,
            _ => slot + gap + 1,
        };
        let hits = *data.get(at)?;
        at += 1;
        out.extend(slot.to_le_bytes());
        out.extend([hits, 0, 0, 0]);
        let mut next = 0;
        for _ in 0..hits {
            let index = next + code(data, &mut at)?;
            if index > MOST {
                return None;
            }
            out.extend((index as u16).to_le_bytes());
            next = index + 1;
        }
        out.extend(data.get(at..at + usize::from(hits))?);
        at += usize::from(hits);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    let is_whole = at == data.len() && first.checked_add(u64::from(slot)).is_some();
    is_whole.then_some(out)
}

/// A gap code, 1 or 2 bytes.
fn code(data: &[u8], at: &mut usize) -> Option<u32> {
    let low = *data.get(*at)?;
    *at += 1;
    if low & 128 == 0 {
        return Some(low.into());
    }
    let high = *data.get(*at)?;
    *at += 1;
    (high & 128 == 0).then_some(u32::from(low & 127) | u32::from(high) << 7)
}
