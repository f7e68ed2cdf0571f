//! The L0 trigger: frames in, decisions out, nothing lost.

use std::process::ExitCode;

fn main() -> ExitCode {
    l0_trigger::Trigger::builder().main()
}
