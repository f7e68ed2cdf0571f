//! A farm in two loops of one thread: members and carriers as a program has them.

#![allow(clippy::expect_used, clippy::panic, unreachable_pub)]

mod hot_path;
mod rig;
mod short;
