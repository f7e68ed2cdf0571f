//! Event building at megahertz rates by scheduled traffic: the program `farm` as a library.
//!
//! | item | what |
//! | --- | --- |
//! | [`program`] | the command line |
//! | `run` | a run: the roles as loops of one process or of several, or some of them by hand |
//! | `sim` | simulated event builders |

// The modules are private: `pub` in them means the crate.
#![allow(unreachable_pub)]

pub mod program;
mod run;
mod sim;
