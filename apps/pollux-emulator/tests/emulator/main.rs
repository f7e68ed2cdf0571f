//! The emulator: its program, its loop, and the events that it makes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod finder;
mod layout;
mod loopback;
mod no_alloc;
mod program;
mod reports;
mod rings;
mod veth;
mod wires;
