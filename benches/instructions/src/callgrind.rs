//! Runs this program under callgrind.

use std::env;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use crate::loops::Loop;

/// Instructions that a loop executes for each element.
///
/// The loop runs twice, one time twice as long as the other: the difference is the work of the
/// second half, without the start of the program and of the loop.
pub(crate) fn instructions(case: &Loop) -> Result<f64> {
    let short = run(case, case.rounds)?;
    let long = run(case, 2 * case.rounds)?;
    let difference = long
        .checked_sub(short)
        .context("the longer run is shorter")?;
    // The baseline has as many digits.
    let exact = difference as f64 / (case.rounds * case.elements) as f64;
    Ok((exact * 100.0).round() / 100.0)
}

fn run(case: &Loop, rounds: u64) -> Result<u64> {
    let output = valgrind("callgrind", &["run", case.name, &rounds.to_string()])?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split_once("Collected : "))
        .and_then(|(_, count)| count.trim().parse().ok())
        .with_context(|| format!("callgrind reports no count:\n{report}"))
}

/// What this program prints with these arguments under a tool of valgrind's.
pub(crate) fn valgrind(tool: &str, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new("valgrind");
    command.arg(format!("--tool={tool}"));
    if tool == "callgrind" {
        command.arg("--callgrind-out-file=/dev/null");
    }
    // Without an environment: its size would move the stack, and copies depend on alignment.
    let output = command
        .arg(env::current_exe()?)
        .args(arguments)
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .output()
        .context("valgrind cannot be run: apt-get install valgrind")?;
    if !output.status.success() {
        bail!("valgrind: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output)
}
