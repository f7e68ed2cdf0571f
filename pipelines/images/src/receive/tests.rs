#![allow(clippy::unwrap_used)]
mod frames;
mod images;
mod modules;
mod notes;
mod runs;
mod stacks;
mod support;
mod threads;
