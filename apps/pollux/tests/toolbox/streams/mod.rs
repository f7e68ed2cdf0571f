//! `pollux streams`.

mod captures;
mod faults;
mod live;
mod reassembly;

use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{self, json_of, text};

fn pollux() -> Command {
    support::pollux("streams")
}

fn run(args: &[&str]) -> Output {
    support::run("streams", args)
}

/// The message of a run that ends with this status.
fn refused(args: &[&str], status: i32) -> String {
    support::refused("streams", args, status)
}

/// The report of a run that ends as it should.
fn report(args: &[&str]) -> Value {
    let output = run(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let report = json_of(&output);
    assert_eq!(report["balanced"], true);
    report
}

/// A report without where streams go and how fast, which have tests of their own.
fn counts_alone(mut report: Value) -> Value {
    for stream in report["streams"].as_array_mut().unwrap() {
        let stream = stream.as_object_mut().unwrap();
        stream.retain(|key, _| ["src_ip", "dst_port", "packets", "bytes"].contains(&&**key));
    }
    report
}
