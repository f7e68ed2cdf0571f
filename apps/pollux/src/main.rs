//! `pollux`: the command-line toolbox of Pollux.

use std::process::ExitCode;

fn main() -> ExitCode {
    pollux_toolbox::main()
}
