//! Runs of `image-stream`: demonstration, captures with faults, a detector on an interface, refusals, stages on files.

#![allow(clippy::unwrap_used, clippy::panic)]

mod capture;
mod demonstration;
mod eiger;
#[cfg(feature = "hdf5")]
mod findings;
mod offline;
mod page;
mod rdma;
mod refusals;
mod replay;
mod veth;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The program.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_image-stream"));
    command.env_remove("RUST_LOG");
    command
}

/// Runs the program, which has to succeed.
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    output
}

/// Runs the program, which has to fail with this status; what it says.
fn fail(command: &mut Command, status: i32) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{command:?}: {errors}");
    assert!(!errors.contains("panicked"), "{errors}");
    errors
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
