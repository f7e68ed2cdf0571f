//! `pollux streams` as its users meet it: the program, its output, its exit status.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod captures;
mod faults;
mod live;
mod support;
