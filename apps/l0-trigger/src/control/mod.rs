//! Remote control of runs through a socket (docs/formats/control.md).

mod protocol;
mod server;
mod state;

pub use self::server::Server;
pub use self::state::{Control, RequestedRun};
