//! `farm`: event building at megahertz rates by scheduled traffic.

use std::process::ExitCode;

fn main() -> ExitCode {
    farm::program::main()
}
