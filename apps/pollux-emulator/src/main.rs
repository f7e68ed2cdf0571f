//! `pollux-emulator`: emulated readout boards and image detectors as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    pollux_emulator::program::main()
}
