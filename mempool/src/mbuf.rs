//! The packet buffer: headroom, data, tailroom, and a header of one cache line; one owner.
//!
//! ```text
//!   headers, private to the process      region of the pool, for devices and peers too
//!   +------------------+     its place   +----------+-------------------+----------+
//!   | header i         | --------------> | headroom | data (len bytes)  | tailroom |
//!   +------------------+                 +----------+-------------------+----------+
//!   |<---- 64 B ------>|                 |<- room: stride bytes, a multiple of 64 ->|
//! ```
//!
//! A device or a peer that may write to the region can corrupt the bytes of a frame, never an
//! owner, a length or a link: those are in the header, which is outside of the region.
//!
//! A free buffer's header is always in its reset state, so allocation touches no buffer memory at
//! all; the thread that frees a buffer has its header in the CPU cache and resets it there.

mod chain;
mod handle;
mod request;

pub use crate::buffers::MbufFlags;
pub(crate) use chain::MAX_SEGMENTS;
pub use chain::Segments;
pub use handle::Mbuf;
pub use request::ChecksumRequest;
