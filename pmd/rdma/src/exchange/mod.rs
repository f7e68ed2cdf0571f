//! Exchanges of what two ends have to know of each other to connect, over TCP or files of the host.
//!
//! | exchange | the other end |
//! | --- | --- |
//! | [`Description`] in JSON, over a file or a socket | a program that uses this crate, or a script |
//! | [`pingpong`] | `ibv_rc_pingpong` and `ibv_uc_pingpong` of libibverbs |
//! | [`perftest`] | `ib_send_bw`, `ib_write_lat` and so on of perftest 4.5 |
//!
//! All go through the host's kernel, not through a port, but for perftest's option -R, which needs
//! [`Messages`]. They are for the control thread, block, and end at a deadline, or when a flag is set
//! ([`Patience`]). What a peer sends is limited before it is read, and checked.

mod channel;
mod error;
mod json;
mod messages;
mod patience;
pub mod perftest;
pub mod pingpong;
mod text;

pub use channel::{Channel, Listener, Stream};
pub use error::ExchangeError;
pub use json::{Description, MAX_JSON, Offered};
pub use messages::Messages;
pub use patience::Patience;
