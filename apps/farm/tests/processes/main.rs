//! A farm in several processes: `farm run --processes`, and its members by hand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub
)]

mod by_hand;
mod opening;
mod rig;
mod run;
