// Made by scripts/regen from hw/rdl/layouts.toml: do not edit.

//! Offsets and sizes of what hardware fills in as well; types here are held to them.

/// Bytes of a `EventRecord`.
pub(super) const EVENT_RECORD_SIZE: usize = 64;
/// Offset of `wire` in it.
pub(super) const EVENT_RECORD_WIRE: usize = 0;
/// Offset of `index` in it.
pub(super) const EVENT_RECORD_INDEX: usize = 8;
/// Offset of `length` in it.
pub(super) const EVENT_RECORD_LENGTH: usize = 12;
/// Offset of `payload` in it.
pub(super) const EVENT_RECORD_PAYLOAD: usize = 16;
/// Offset of `sequence` in it.
pub(super) const EVENT_RECORD_SEQUENCE: usize = 56;
/// Offset of `stream` in it.
pub(super) const EVENT_RECORD_STREAM: usize = 60;
/// Offset of `kind` in it.
pub(super) const EVENT_RECORD_KIND: usize = 62;
/// Offset of `flags` in it.
pub(super) const EVENT_RECORD_FLAGS: usize = 63;

/// Bytes of a `ClopBuffer`.
pub(super) const CLOP_BUFFER_SIZE: usize = 40;
/// Kind of the event `ClopBuffer`.
pub(super) const CLOP_BUFFER_KIND: u8 = 1;
/// Offset of `payloads` in it.
pub(super) const CLOP_BUFFER_PAYLOADS: usize = 0;
/// Offset of `first` in it.
pub(super) const CLOP_BUFFER_FIRST: usize = 4;
/// Offset of `last` in it.
pub(super) const CLOP_BUFFER_LAST: usize = 8;
/// Offset of `reason` in it.
pub(super) const CLOP_BUFFER_REASON: usize = 12;
/// Offset of `oldest` in it.
pub(super) const CLOP_BUFFER_OLDEST: usize = 16;
/// Offset of `stages` in it.
pub(super) const CLOP_BUFFER_STAGES: usize = 24;

/// Bytes of a `ClopRecord`.
pub(super) const CLOP_RECORD_SIZE: usize = 16;
/// Offset of `length` in it.
pub(super) const CLOP_RECORD_LENGTH: usize = 0;
/// Offset of `source_port` in it.
pub(super) const CLOP_RECORD_SOURCE_PORT: usize = 4;
/// Offset of `flags` in it.
pub(super) const CLOP_RECORD_FLAGS: usize = 6;
/// Offset of `sequence` in it.
pub(super) const CLOP_RECORD_SEQUENCE: usize = 8;
/// Offset of `stamp` in it.
pub(super) const CLOP_RECORD_STAMP: usize = 12;
