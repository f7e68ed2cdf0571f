//! Runs tests one after the other, each in a process of its own: one that crashes or hangs has
//! failed, and the next begins with devices that are free.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::control::{Control, Row};
use crate::nic::run as run_program;
use crate::plan::Plan;

/// After this a test hangs.
const LIMIT: Duration = Duration::from_mins(2);

const OUTPUT: &str = "/tmp/output";

pub(crate) fn run(plan: &Plan, wanted: &[String]) -> Result<()> {
    let mut control = Control::open()?;
    for test in plan.tests() {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == test.name) {
            continue;
        }
        control.begin(test.name)?;
        println!("== {} {}", plan.machine.name, test.name);
        let began = Instant::now();
        let (ended, said) = one(plan.machine.name, test.name)?;
        print!("{said}{}", run_program(&["dmesg", "-c"])?);
        let lines = said.lines();
        let (result, why) = match ended {
            Some(status) if status.success() => lines
                .rev()
                .find_map(|line| line.strip_prefix("skipped: "))
                .map_or(("pass", String::new()), |why| ("skipped", why.into())),
            Some(status) => {
                let error = lines.rev().find_map(|line| line.strip_prefix("error: "));
                ("fail", error.map_or(status.to_string(), Into::into))
            }
            None => ("fail", format!("hung: ended after {LIMIT:?}")),
        };
        control.report(&Row {
            test: test.name,
            result,
            why: &why,
            seconds: began.elapsed().as_secs_f64(),
        })?;
    }
    control.end()
}

/// How a test ended, unless it had to be ended, and all it said.
fn one(machine: &str, test: &str) -> Result<(Option<ExitStatus>, String)> {
    let output = File::create(OUTPUT)?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(["test", machine, test])
        .stdout(output.try_clone()?)
        .stderr(output)
        // With all that it starts.
        .process_group(0)
        .spawn()
        .context("cannot start a test")?;
    let ended = wait(&mut child)?;
    // What a test has started ends with it.
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let ended = match ended {
        None => {
            child.wait()?;
            None
        }
        some => some,
    };
    let mut said = Vec::new();
    File::open(OUTPUT)?.read_to_end(&mut said)?;
    Ok((ended, String::from_utf8_lossy(&said).into_owned()))
}

fn wait(child: &mut Child) -> Result<Option<ExitStatus>> {
    let began = Instant::now();
    while began.elapsed() < LIMIT {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(None)
}
