//! One port behind one type without generics, for bindings of other languages.
//!
//! An [`EmbeddedPort`] has the pool, the queues, the classification of frames, the streams and the
//! ledger of one port. A [poll](EmbeddedPort::rx) neither allocates nor enters the kernel, unless the
//! kernel backs the port.
//!
//! | item | what it is |
//! | --- | --- |
//! | [`EmbeddedPort`] | opens a port by its spec, receives datagrams, sends frames |
//! | [`Options`] | streams, size of the pool, reassembly |
//! | [`Datagram`], [`SharedDatagram`] | a received datagram in one buffer, owned or read-only and shared |
//! | [`PortClock`] | times of arrival in nanoseconds |
//! | [`LedgerView`], [`Account`] | the ledger for any thread, and a reading of it |
//! | [`Owner`] | the thread that may use a port |
//! | [`OwnProcess`] | a value that a forked child process must not use or drop |
//!
//! ```
//! use pollux_embed::{EmbeddedPort, Frames, Options};
//!
//! let mut port = EmbeddedPort::open("loopback", &Options::default())?;
//! let mut frames = Frames::new();
//! let mut frame = port.alloc(60).ok_or("no buffer")?;
//! frame.data_mut().fill(0xff); // no frame of any protocol
//! frames.push(frame).map_err(|_| "no room")?;
//! assert_eq!(port.tx(&mut frames), 1);
//!
//! assert_eq!(port.rx(32, |datagram| drop(datagram)), 0);
//! port.close()?;
//! let account = port.ledger().account();
//! assert_eq!((account.from_wire, account.dropped["not-for-us"]), (1, 1));
//! assert!(account.balanced);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
mod datagram;
mod error;
mod options;
mod port;
mod process;
mod thread;

pub use account::{Account, LedgerView, SentAccount};
pub use datagram::{Datagram, SharedDatagram};
pub use error::EmbedError;
pub use options::Options;
pub use port::{BURST, EmbeddedPort, Frames, PortClock};
pub use process::{OwnProcess, Process};
pub use thread::{Owner, ThreadId};
