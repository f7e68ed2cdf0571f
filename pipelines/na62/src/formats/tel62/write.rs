//! Writer of an event's TDC data.

use super::data::{Edge, FPGAS, LEADING, TIME, TRAILING};
use crate::formats::WriteError;

/// Writes the TDC data of one event at slot `timestamp` into `buf`; returns its length in bytes.
/// The edges are sorted by FPGA (0 to 3), then by time.
///
/// # Errors
/// [`WriteError::Full`] if the buffer is too small; [`WriteError::Invalid`] if the edges are out of
/// order or out of range, or half a wrap of the frame timestamp (0.8 ms) or more away from the
/// event.
pub fn write_tel62(
    buf: &mut [u8],
    sub_id: u8,
    trigger_type: u8,
    timestamp: u32,
    edges: &[Edge],
) -> Result<usize, WriteError> {
    let slot = |edge: &Edge| (edge.time >> 8) as u32;
    for edge in edges {
        let offset = slot(edge).wrapping_sub(timestamp) as i32;
        if i16::try_from(offset).is_err() || edge.time >> 40 != 0 {
            return Err(WriteError::Invalid("an edge too far from its event"));
        }
        if u32::from(edge.fpga) >= FPGAS || edge.tdc > 3 || edge.channel > 31 {
            return Err(WriteError::Invalid(
                "an FPGA, TDC or channel that does not exist",
            ));
        }
    }
    if !edges.is_sorted_by_key(|edge| (edge.fpga, edge.time)) {
        return Err(WriteError::Invalid(
            "edges must be sorted by FPGA, then by time",
        ));
    }

    let mut len = 0;
    let mut put = |word: [u8; 4]| {
        let place = buf.get_mut(len..len + 4).ok_or(WriteError::Full)?;
        place.copy_from_slice(&word);
        len += 4;
        Ok(())
    };
    let by_fpga = || edges.chunk_by(|a, b| a.fpga == b.fpga);
    // A board always answers with at least one FPGA, even without frames.
    let flags = by_fpga()
        .fold(0, |flags, chunk| flags | 1 << chunk[0].fpga)
        .max(1);
    put([flags, trigger_type, sub_id, 0])?;
    if edges.is_empty() {
        put([0; 4])?;
    }
    for fpga in by_fpga() {
        let frames = || fpga.chunk_by(|a, b| slot(a) == slot(b));
        let count = u8::try_from(frames().count())
            .map_err(|_| WriteError::Invalid("more than 255 frames of one FPGA"))?;
        put([count, count, fpga[0].fpga, 0])?;
        for frame in frames() {
            let words = u16::try_from(frame.len() + 1)
                .map_err(|_| WriteError::Invalid("more than 65534 edges in one slot"))?;
            put(((u32::from(words) << 16) | (slot(&frame[0]) & 0xFFFF)).to_le_bytes())?;
            for edge in frame {
                let id = if edge.leading { LEADING } else { TRAILING };
                let time = edge.time as u32 & TIME;
                let place = (u32::from(edge.tdc) << 24) | (u32::from(edge.channel) << 19);
                put(((id << 28) | place | time).to_le_bytes())?;
            }
        }
    }
    Ok(len)
}
