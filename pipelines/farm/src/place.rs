//! Places of numbers in tables that are used in turn.

/// The place of a number in a table of so many places, at least one.
#[inline]
pub(crate) fn place_of(number: u64, places: usize) -> usize {
    // Tables are powers of two as a rule, and a division takes as long as ten other instructions.
    let places = places as u64;
    let place = if places.is_power_of_two() {
        number & (places - 1)
    } else {
        number % places
    };
    place as usize
}
