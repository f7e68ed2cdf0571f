//! Network namespaces for tests, cables between them, and a switch. Dropping them removes them.
//! Needs root and ip(8); without these a test skips.
//!
//! ```
//! use pollux_pmd_testkit::netns::Cable;
//!
//! let Some(cable) = Cable::new(1500) else { return };
//! let kernel = cable.peer(7000);
//! let port = cable.a.within(|| "open a port on `va` here");
//! # drop((kernel, port));
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::missing_panics_doc)] // a panic is how a test fails

mod addresses;
mod cable;
mod frames;
mod namespace;
mod switch;

pub use addresses::{IP_A, IP_B, MAC_A, MAC_B};
pub use cable::Cable;
pub use frames::{assert_udp, fragments, payload, udp_frame, udp_frame_to};
pub use namespace::{Namespace, PATIENCE, run};
pub use switch::Switch;
