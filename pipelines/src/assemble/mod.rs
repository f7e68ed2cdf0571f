//! Frame assembler: packets of a large frame, placed by number in one big buffer.
//!
//! A frame is sent as packets, by one sender or by several, each of which says its frame and its
//! number in it. The data of each packet is copied once, from the packet buffer to its place in the
//! frame, and its header, where it is kept, to a place beside the data: the data of a frame lies in
//! one piece.
//!
//! ```text
//!   packet (frame 7, sender 1, number 2)
//!     | header | data |
//!        |        +-------> data    of frame 7: | 0.0 | 0.1 | 0.2 | 1.0 | 1.1 | 1.2 |
//!        +----------------> headers of frame 7: |     |     |     |     |     |     |
//! ```
//!
//! - **Buffers** form a circular list and persist, as those of a [`Clop`](pollux_pmd::event::Clop):
//!   a frame's number says which is its own. A frame that is delivered takes the memory of its buffer
//!   along, and belongs to its reader until it is dropped, on any thread and in any order. The buffer
//!   gets spare memory; while there is none, packets for it are refused, under a cause of their own.
//!   Nothing is allocated after the start.
//! - **Several loops** may place packets of the same frame ([`Placer::for_another_loop`]). A bitmap
//!   says which parts are there: the loop that sets a bit writes the part, so a copy of a packet is
//!   a duplicate and touches nothing. The reader does not see the memory of a frame while a loop may
//!   write it: a frame is closed first, and delivered when the last writer has left it.
//! - **Delivery** is in the order of frame numbers. A frame that lacks packets is closed when its
//!   timeout is over, or when a frame is about to need its buffer, so that the reader has taken it by
//!   then; it says what it lacks ([`Frame::missing`]), and zeros or another code stand there.
//! - **Conversion** while a packet is in the cache: [`Placer::place_with`] has a function write the
//!   packet's part of the frame, and [`Placer::place_noted`] keeps notes of it beside the data.
//! - **Frame numbers** are not trusted: one that is far from the others is refused, until many say
//!   the same (a sender began anew).
//!
//! ```
//! use pollux_pipelines::Moment;
//! use pollux_pipelines::assemble::{AssembleConfig, Part, assembler};
//!
//! let (mut placer, mut reader) = assembler(AssembleConfig {
//!     packets: 2,
//!     packet_bytes: 4,
//!     ..AssembleConfig::default()
//! })?;
//! for (packet, data) in [(1, b"bbbb"), (0, b"aaaa")] {
//!     let part = Part { key: 7, sender: 0, packet, at: Moment(0), header: &[], data };
//!     assert_eq!(placer.place(&part), Ok(()));
//! }
//! let frame = reader.poll(Moment(0)).ok_or("no frame")?;
//! assert_eq!((frame.key(), frame.data()), (7, &b"aaaabbbb"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod frame;
mod memory;
mod place;
mod serials;
mod spares;
mod stage;
mod turns;
mod window;

pub use config::{AssembleConfig, AssembleError, NOTES};
pub use frame::{AssembleCounts, Frame, FrameReader};
pub use place::{Part, Placer, assembler};
pub use stage::{Assemble, PartFormat};
