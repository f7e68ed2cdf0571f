//! Fields of FlatBuffers tables by their numbers.

use flatbuffers::VOffsetT;

/// Position of a field in a table's list of offsets. A field's number is its place in the schema's
/// table, from 0; two lengths of 2 bytes precede the list (FlatBuffers, "Internals", "Tables").
pub(crate) const fn field(number: VOffsetT) -> VOffsetT {
    4 + 2 * number
}
