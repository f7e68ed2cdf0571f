//! Event queues and receive buffers, in one layout for hardware and software.
//!
//! - [`EventQueue`]: a ring of 64-byte [`EventRecord`]s with a phase bit, from one producer to one
//!   consumer.
//! - [`Clop`]: a circular list of persistent receive buffers (the name is NaNet's). A stream's
//!   payloads fill the buffers in turn. An event announces a buffer when it is full or when its
//!   oldest payload has reached the time-out.
//!
//! One queue carries the events of many streams. The layouts are defined in
//! `docs/formats/event-record.md` and `docs/formats/clop.md`.
//!
//! ```
//! use pollux_pmd::event::{Clop, ClopConfig, EventQueue, PayloadInfo, RegionOptions};
//! use pollux_pmd::{Clock, TscClock};
//!
//! let clock = TscClock::get();
//! let (mut events, mut announced) = EventQueue::new(256, &RegionOptions::default())?.split();
//! let (mut writer, mut reader) = Clop::new(&ClopConfig::default(), &clock)?.split();
//!
//! // The receiving loop:
//! let info = PayloadInfo { arrival: clock.now(), source_port: 58913, wire: None };
//! writer.append(&mut events, &info, b"hits")?;
//! writer.poll(&mut events, clock.now()); // announces what is older than the timeout
//! assert!(writer.flush(&mut events)); // announces the rest, at the end of a run
//!
//! // The consuming loop:
//! while let Some(event) = announced.poll() {
//!     let buffer = reader.accept(&event)?;
//!     for payload in buffer.payloads() {
//!         assert_eq!(payload?.data, b"hits");
//!     }
//! } // dropping the buffer returns it
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clop;
mod layouts;
mod memory;
mod queue;
mod record;
mod words;

pub(crate) use clop::DeviceClop;
pub use clop::{
    BadEvent, Clop, ClopBuffer, ClopConfig, ClopError, ClopEvent, ClopPayload, ClopReader,
    ClopReason, ClopRecord, ClopWriter, Framing, MalformedRecord, PayloadInfo, Payloads, Refused,
};
pub use memory::RegionOptions;
pub use queue::{EventConsumer, EventError, EventProducer, EventQueue, Full, Line, Released};
pub use record::{EventFlags, EventKind, EventRecord};

#[cfg(loom)]
#[doc(hidden)]
pub use words::mutant;
