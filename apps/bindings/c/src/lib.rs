//! `libpollux`: the C interface of [`pollux_embed`]. `include/pollux.h` is generated from this crate,
//! and docs/c.md is its manual.

mod api;
mod frame;
mod open;
mod options;
mod refused;
mod slots;
mod text;

pub use api::{
    pollux_alloc, pollux_close, pollux_ended, pollux_free, pollux_ledger, pollux_now, pollux_open,
    pollux_rx, pollux_tx,
};
pub use frame::pollux_frame;
pub use open::pollux_port;
pub use options::pollux_options;
