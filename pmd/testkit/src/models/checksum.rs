//! What the models of the devices share.

use pollux_pmd::net::Checksum;

/// Sums a frame from `start` to its end, into the two bytes at `field`.
pub(super) fn insert_sum(frame: &mut [u8], start: usize, field: usize) {
    let mut sum = Checksum::new();
    sum.add(frame.get(start..).unwrap_or_default());
    let sum = sum.finish().to_be_bytes();
    if let Some(place) = frame.get_mut(field..) {
        place.iter_mut().zip(sum).for_each(|(to, byte)| *to = byte);
    }
}
