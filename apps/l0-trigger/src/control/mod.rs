//! Remote control of runs through a socket (docs/formats/control.md).

mod protocol;
mod state;

pub use self::protocol::LINE;
pub use self::state::{Control, RequestedRun};
