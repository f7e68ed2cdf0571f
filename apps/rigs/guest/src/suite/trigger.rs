//! The trigger on one NIC, the emulated readout boards on the other.

use std::fs;
use std::process::{Child, Command};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::bench::Bench;
use crate::nic::PATIENCE;
use crate::test::Test;

pub(crate) const TRIGGER: &[Test] = &[Test {
    name: "trigger",
    shows: "l0-trigger decides on what pollux-emulator sends; both ledgers balance",
    run: trigger,
}];

const RUN: &str = "seed = 1\nevents = 500\nrate = 300\n";

fn trigger(bench: &Bench) -> Result<()> {
    let owner = bench.machine.owner;
    fs::write("/tmp/run.toml", RUN)?;
    // Each with a CPU for its loop.
    let mut trigger = Command::new("l0-trigger")
        .args(["--port", &owner.spec(&bench.a)?, "--truth", "/tmp/run.toml"])
        .args(["--force", "--report", "/tmp/trigger.json", "--cores", "1"])
        .spawn()?;
    // It asks for the trigger by ARP until there is an answer.
    let boards = Command::new("pollux-emulator")
        .args([
            "--port",
            &owner.spec(&bench.b)?,
            "--config",
            "/tmp/run.toml",
        ])
        .args(["--force", "--report", "/tmp/boards.json", "--cores", "0"])
        .status();
    if let Some(process) = Pid::from_raw(trigger.id().cast_signed()) {
        kill_process(process, Signal::INT)?;
    }
    let ended = wait(&mut trigger);
    ensure!(boards?.success(), "pollux-emulator failed");
    ended?;
    let report = |path| -> Result<Value> {
        let text = fs::read_to_string(path).with_context(|| format!("no {path}"))?;
        Ok(serde_json::from_str(&text)?)
    };
    compare(&report("/tmp/boards.json")?, &report("/tmp/trigger.json")?)
}

fn wait(trigger: &mut Child) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(status) = trigger.try_wait()? {
            ensure!(status.success(), "l0-trigger: {status}");
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    trigger.kill()?;
    anyhow::bail!("l0-trigger did not end when it was asked to")
}

/// What must hold between two programs that share nothing but the link.
fn compare(boards: &Value, trigger: &Value) -> Result<()> {
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    let streams = trigger["streams"].as_array().context("no streams")?;
    let arrived: u64 = streams.iter().map(|stream| count(&stream["packets"])).sum();
    let sent = count(&boards["emulator"]["frames_sent"]);
    let built = count(&trigger["events"]["built"]);
    let answered = count(&trigger["answers"]["sent"]);
    let decisions = |what: &str| count(&boards["emulator"]["decisions"][what]);
    let came_back: u64 = ["decided", "repeated", "unknown", "forgotten"]
        .map(decisions)
        .iter()
        .sum();
    println!("{sent} frames sent, {arrived} arrived, {built} events built");
    for (holds, what) in [
        (
            boards["emulator"]["complete"] == true,
            "the boards sent all events",
        ),
        (
            boards["ledger"]["balanced"] == true,
            "the emulator's ledger balances",
        ),
        (
            trigger["ledger"]["balanced"] == true,
            "the trigger's ledger balances",
        ),
        (
            sent > 0 && arrived == sent,
            "every frame arrived at its stream",
        ),
        (trigger["missing"] == 0, "no sequence number is missing"),
        (
            built == count(&trigger["events"]["accepted"]) + count(&trigger["events"]["rejected"]),
            "every event was decided",
        ),
        (answered == came_back, "every decision came back"),
    ] {
        ensure!(
            holds,
            "not so: {what}; boards {}, trigger {}",
            boards["ledger"],
            trigger["ledger"]
        );
    }
    Ok(())
}
