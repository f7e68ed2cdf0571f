//! The roles together over a network in memory.

mod farm;
mod network;
mod plain;
