//! Line server beside a run: clients send lines and get an answer to each, at a Unix socket or a TCP
//! address. Programs use it for the control of their runs, with JSON objects as lines.
//!
//! A client cannot disturb the run: the number of clients, the length of a line and the time to read an
//! answer are bounded, and the thread stays off the CPUs of the loops.

mod address;
mod connection;
mod server;
mod service;
mod socket_file;

pub use address::Address;
pub use server::{CLIENTS, Server};
pub use service::{Events, Service};

#[cfg(test)]
mod tests;
