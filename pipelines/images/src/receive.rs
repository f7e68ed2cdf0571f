//! Receives images: packets of a detector placed in frames, by one loop or several.
//!
//! ```text
//!  streams        PacketPlacer (one a loop)                ImageReader
//!  --------> check, find the sender, place  --> frames --> policy, counts --> images
//! ```
//!
//! - A [`PacketPlacer`] checks each packet, finds its sender (a UDP interface of a module) by the
//!   stream it came on or by the module's identifier, and copies the pixels to their place in the
//!   image, or converts them on the way. Each receive loop has one; loops share nothing that is locked
//!   ([`assemble`](pollux_pipelines::assemble)).
//! - An [`ImageReader`] delivers [`Image`]s in the order of their numbers. A number that no packet came
//!   for is an empty image. The [`DiscardPolicy`] says whether empty and partial images are delivered.
//!
//! A packet is counted once: as placed, or under its drop cause. Every sender has to stay the one that
//! it was at first: of two modules with the same identifier, or on the same stream, the second is
//! refused under a cause of its own (`module-conflict`).
//!
//! ```
//! use pollux_images::formats::{Header, Layout, write_packet};
//! use pollux_images::receive::{ReceiveConfig, Route, images};
//! use pollux_pipelines::Moment;
//! use pollux_pmd::stream::StreamId;
//!
//! let layout = Layout::jungfrau(1, 1)?;
//! let route = Route::Streams(vec![StreamId(0)]);
//! let (mut placer, mut reader) = images::<u16>(&ReceiveConfig::new(layout, route))?;
//!
//! let mut header = Header::new(layout.detector());
//! let mut payload = vec![0; layout.payload_bytes()];
//! for packet in 0..128_u32 {
//!     header.packet_number = packet.into();
//!     write_packet(&header, &vec![packet as u8; 8192], &mut payload)?;
//!     assert_eq!(placer.place(StreamId(0), &payload, Moment(0)), Ok(()));
//! }
//! let image = reader.poll(Moment(0)).ok_or("no image")?;
//! assert!(image.is_complete());
//! assert_eq!((image.pixels()[0], image.pixels()[512 * 1024 - 1]), (0, 0x7F7F));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod image;
mod loss;
mod notes;
mod place;
mod reader;
mod senders;
mod stored;
#[cfg(test)]
mod tests;

pub use config::{DiscardPolicy, ReceiveConfig, ReceiveError, Route};
pub use image::Image;
pub use loss::{Loss, PacketMask};
pub use place::{PacketPlacer, Placement, ReceiveCauses, images};
pub use reader::{FrameCounts, ImageReader};
pub use senders::{ModuleIdentity, SenderConflict, SenderView};
pub use stored::{Raw, Stored};
