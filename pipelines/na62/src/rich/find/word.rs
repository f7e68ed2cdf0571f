//! A hit packed into one word: time, disk, and position on the disk.
//!
//! From the highest bit on: 16 bits of time, 1 of the disk, 7 of the row and 8 of the column. Row
//! and column are counted from below the lowest one that exists. Rows are sqrt(3)/2 pitches apart,
//! columns half a pitch. The position is computed from the word, which is faster for a vector of
//! hits than a table look-up.

use crate::rich::geometry::{PITCH_MM, PMS, PMS_PER_DISK, POSITIONS, ROW};

/// Row and column of the disk's centre.
const CENTRE: [u32; 2] = [64, 128];

/// Distance between columns and between rows, in mm.
const STEP_MM: [f32; 2] = [PITCH_MM * 0.5, PITCH_MM * ROW];

/// The bits of each photomultiplier, by its index: all but the time.
pub(super) static PM_BITS: [u32; PMS] = {
    let mut bits = [0; PMS];
    let mut pm = 0;
    while pm < PMS {
        let [x, y] = POSITIONS[pm];
        // Rounds, since both are positive.
        let column = (x / STEP_MM[0] + CENTRE[1] as f32 + 0.5) as u32;
        let row = (y / STEP_MM[1] + CENTRE[0] as f32 + 0.5) as u32;
        let disk = if pm < PMS_PER_DISK { 0 } else { SECOND_DISK };
        bits[pm] = disk | row << 8 | column;
        pm += 1;
    }
    bits
};

/// The disk bit, set for disk 1.
pub(super) const SECOND_DISK: u32 = 1 << 15;

#[inline(always)]
pub(super) fn time(word: u32) -> u32 {
    word >> 16
}

/// In mm from the disk's centre, as in [`POSITIONS`].
#[inline(always)]
pub(super) fn x(word: u32) -> f32 {
    ((word & 0xFF) as i32 - CENTRE[1] as i32) as f32 * STEP_MM[0]
}

/// In mm from the disk's centre, as in [`POSITIONS`].
#[inline(always)]
pub(super) fn y(word: u32) -> f32 {
    ((word >> 8 & 0x7F) as i32 - CENTRE[0] as i32) as f32 * STEP_MM[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_where_their_photomultipliers_are() {
        for (pm, (&bits, &[at_x, at_y])) in PM_BITS.iter().zip(&POSITIONS).enumerate() {
            for time_of in [0, 255, u32::from(u16::MAX)] {
                let word = time_of << 16 | bits;
                assert_eq!(time(word), time_of);
                let found = [x(word), y(word)].map(f32::to_bits);
                assert_eq!(found, [at_x, at_y].map(f32::to_bits), "{pm}");
                assert_eq!(word & SECOND_DISK != 0, pm >= PMS_PER_DISK);
            }
        }
    }
}
