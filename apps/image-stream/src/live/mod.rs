//! Live stream of images in the format DECTRIS stream v2: CBOR messages over ZeroMQ PUSH
//! (docs/formats/live-stream.md).
//!
//! | item | what |
//! | --- | --- |
//! | [`LiveStream`] | a server for clients (PULL), on a thread of its own |
//! | [`LiveQueue`] | the end of its queue that the loops have |
//! | [`Series`] | a series of images, between its start and its end message |
//!
//! A PUSH socket needs a greeting, one command and frames with a length of the ZeroMQ message
//! transport protocol (ZMTP 3.0), which `zmtp` has. Of the libraries, libzmq and the crate `zeromq`
//! take a message as one block of memory and keep a queue of messages for each client, the crate one
//! of 100 000. Here an image goes from its buffer to the socket, and the number of buffers that
//! clients can hold is a constant.

mod client;
mod counts;
mod error;
mod message;
mod server;
mod stream;
mod zmtp;

pub use counts::LiveCounts;
pub use error::LiveError;
pub use message::Series;
pub use stream::{LiveConfig, LiveQueue, LiveStream, PORT};

#[cfg(test)]
mod tests;
