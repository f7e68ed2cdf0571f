//! Models of networks that carry fragments from sources to nodes.

mod agenda;
mod crossbar;
mod ethernet;
mod fat_tree;
mod link;

pub use agenda::{Agenda, Event, Fragment, Network, Note, Outcome};
pub use crossbar::Crossbar;
pub use ethernet::Ethernet;
pub use fat_tree::{FatTree, Shape as FatTreeShape};
pub use link::Link;
