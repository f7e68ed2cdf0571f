//! Managed runs of the three programs: `image-stream manage`, `image-stream --control` and
//! `pollux-emulator images --control`, over a cable between two network namespaces. Needs root and ip(8).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod managers;
mod pixels;
mod programs;
mod runs;
mod trouble;
