//! The SCI torus of the thesis: unidirectional rings of link controllers in two or three dimensions.

mod geometry;
mod network;

pub use geometry::{Geometry, Leg, Route};
pub use network::{Delivered, Packet, Step, Torus};
