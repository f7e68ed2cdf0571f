//! Control link between the nodes of an image stream and their manager: typed, versioned messages, and
//! the state of a node.
//!
//! The manager of a run "is responsible of the configuration process of the relevant nodes according to
//! the user requests and to start the acquisition process"; nodes "are on-demand publishing their
//! functional characteristics, status, etc."; on an overrun it "must be notified of the incident and
//! will pause the acquisition process" (R. Ponsard, "High Throughput, Low Latency Online Image
//! Processing by GPU/FPGA Coprocessors using RDMA Techniques", 2020, sections 2.3.1 and 4.1.1). Messages
//! are JSON objects, one a line (docs/formats/images-control.md).
//!
//! There is no input and output here: a [`Session`] makes an answer of a line, and hands events to a
//! function. A program serves it at an address with the line server of pollux-app.
//!
//! ```
//! use std::sync::mpsc;
//! use std::time::Duration;
//!
//! use pollux_images::Shape;
//! use pollux_images::control::{Arm, Capabilities, Counts, Node, Role, Session};
//!
//! struct Detector;
//!
//! impl Node for Detector {
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities::new(Role::Source, "detector 1.0", Shape::JUNGFRAU_MODULE)
//!     }
//!     fn check(&self, arm: &Arm) -> Result<(), String> {
//!         match arm {
//!             Arm::Source(_) => Ok(()),
//!             Arm::Transfers(_) => Err("this is a source: it has no transfers".into()),
//!         }
//!     }
//!     fn pause(&self, _: bool) {}
//!     fn counts(&self) -> Counts {
//!         Counts::default()
//!     }
//! }
//!
//! let (events, published) = mpsc::channel();
//! let session = Session::new(Detector, move |line| drop(events.send(line)));
//! let answer = session.answer(Ok(br#"{"version":1,"request":{"arm":{"source":{"frames":9}}}}"#));
//! assert_eq!(answer, "{\"version\":1,\"reply\":{\"done\":{\"state\":\"arming\"}}}\n");
//! // The program's thread opens its ports, says that it is ready, waits for the start, and runs.
//! let run = session.next(Duration::ZERO).expect("it is armed");
//! session.ready();
//! session.answer(Ok(br#"{"version":1,"request":"start"}"#));
//! assert!(session.is_started(Duration::ZERO) && !run.stop.is_set());
//! session.ended(Ok(()));
//! assert!(published.recv()?.contains("finished"));
//! # Ok::<(), mpsc::RecvError>(())
//! ```

mod protocol;
mod session;
mod watch;

pub use protocol::{
    Arm, Capabilities, Counts, Event, MAX_LINE, Message, ProtocolError, Reply, Request, Role,
    SourceRun, State, Status, VERSION,
};
pub use session::{ArmedRun, Node, Session};
pub use watch::OverrunWatch;

#[cfg(test)]
mod tests;
