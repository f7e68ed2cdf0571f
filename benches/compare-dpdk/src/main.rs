//! The same operations, ours and DPDK's, side by side: in one process, on one core, in turns.
//!
//! `scripts/compare-dpdk` reserves the hugepages and runs this.

mod eal;
mod measure;
mod memory;
mod net;
mod others;
mod ports;
mod rings;
mod testpmd;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde_json::json;

use crate::measure::Row;

/// Times the same operations, ours and DPDK's, side by side.
#[derive(Parser)]
struct Options {
    /// Write the rows as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Slices of each side of each row, in turns; at least 5.
    #[arg(long, default_value_t = 101, value_name = "N")]
    rounds: usize,
    /// Processes, one after the other, of whose rounds the best count: where code and memory come
    /// to lie differs from one to the next, and with it some rows on either side by a tenth.
    #[arg(long, default_value_t = 3, value_name = "N")]
    processes: usize,
    /// 11 rounds, one process, and no testpmd: a look, not a result.
    #[arg(long)]
    quick: bool,
    /// Not testpmd, as a process of its own.
    #[arg(long)]
    no_testpmd: bool,
    /// The core that measures, and a second one for rings across cores.
    #[arg(long, default_value = "0,1", value_name = "A,B")]
    cores: String,
    /// Only the groups named: memory, rings, ports, net; or one that runs by itself: mpmc_2core,
    /// dpdk_port.
    #[arg(long, value_delimiter = ',', value_name = "GROUP")]
    only: Vec<String>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let rounds = if options.quick { 11 } else { options.rounds };
    ensure!(rounds >= 5, "--rounds {rounds}: fewer than 5 say nothing");
    let cores = cores(&options.cores)?;
    let available = core_affinity::get_core_ids().unwrap_or_default();
    let second = available
        .iter()
        .any(|core| core.id == cores[1])
        .then_some(cores[1]);

    let hugepages = free_hugepages() >= 128;
    let load = load_average();
    let processes = if options.quick {
        1
    } else {
        options.processes.max(1)
    };
    let others = (1..processes)
        .map(|_| others::rows(&options.only, rounds, &options.cores))
        .collect::<Result<Vec<_>>>()?;
    eal::init(cores[0], hugepages)?;
    println!(
        "DPDK {} (-O3 {}), ours: release build",
        pollux_dpdk_sys::VERSION,
        pollux_dpdk_sys::MACHINE_FLAGS
    );
    println!(
        "core {}, load average {load}, {}",
        cores[0],
        memory_note(hugepages)
    );
    if second.is_none() {
        println!(
            "skipped: ring_spsc_2core: core {} is not available",
            cores[1]
        );
    }

    let mut rows = run(&options.only, rounds, second)?;
    for other in &others {
        others::merge(&mut rows, other)?;
    }
    print_table(&rows);
    let testpmd =
        if options.quick || options.no_testpmd || second.is_none() || !options.only.is_empty() {
            None
        } else {
            Some(testpmd::forwarded_mpps(cores, hugepages))
        };
    match &testpmd {
        Some(Ok(mpps)) => println!("\ntestpmd, io mode, two null ports, one core: {mpps:.1} Mpps"),
        Some(Err(why)) => println!("\nskipped: testpmd: {why}"),
        None => {}
    }

    if let Some(path) = &options.json {
        let report = json!({
            "rows": rows.iter().map(|row| json!({
                "name": row.name, "burst": row.burst, "ours": row.ours, "dpdk": row.dpdk,
                "unit": Row::UNIT, "ratio": row.ratio(), "spread": row.spread,
                "ours_median": row.medians[0], "dpdk_median": row.medians[1],
            })).collect::<Vec<_>>(),
            "rounds": rounds,
            "processes": processes,
            "dpdk_version": pollux_dpdk_sys::VERSION,
            "dpdk_machine_flags": pollux_dpdk_sys::MACHINE_FLAGS,
            "cpu": cpu_model(),
            "load_average": load,
            "hugepages": hugepages,
            "testpmd_io_mpps": testpmd.and_then(Result::ok),
        });
        let text = serde_json::to_string_pretty(&report)? + "\n";
        fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn run(only: &[String], rounds: usize, second: Option<usize>) -> Result<Vec<Row>> {
    let wanted = |group: &str| only.is_empty() || only.iter().any(|name| name == group);
    let mut rows = Vec::new();
    if wanted("memory") {
        rows.extend(memory::rows(rounds)?);
    }
    if wanted("rings") {
        rows.extend(rings::rows(rounds, second)?);
    }
    if wanted("ports") {
        rows.extend(ports::rows(rounds)?);
    }
    // By themselves: what the others are compared with is not to change with them.
    if only == ["mpmc_2core"] {
        rows.extend(rings::mpmc_across(rounds, second)?);
    }
    if only == ["dpdk_port"] {
        rows.extend(ports::dpdk_rows(rounds)?);
    }
    if wanted("net") {
        rows.extend(net::rows(rounds)?);
    }
    ensure!(!rows.is_empty(), "no such group: {}", only.join(", "));
    Ok(rows)
}

fn print_table(rows: &[Row]) {
    println!(
        "{}; best of the rounds; spread: median over best, the wider side",
        Row::UNIT
    );
    println!(
        "{:<26}{:>6}{:>10}{:>10}{:>8}{:>9}",
        "", "burst", "ours", "DPDK", "ratio", "spread"
    );
    for row in rows {
        println!(
            "{:<26}{:>6}{:>10.2}{:>10.2}{:>8.2}{:>8.0}%",
            row.name,
            row.burst,
            row.ours,
            row.dpdk,
            row.ratio(),
            row.spread * 100.0
        );
    }
}

fn cores(text: &str) -> Result<[usize; 2]> {
    let (a, b) = text
        .split_once(',')
        .context("--cores: two numbers with a comma between")?;
    Ok([
        a.trim().parse().context("--cores")?,
        b.trim().parse().context("--cores")?,
    ])
}

/// Free 2 MiB pages; 0 where the kernel has none.
fn free_hugepages() -> u64 {
    fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

fn memory_note(hugepages: bool) -> &'static str {
    if hugepages {
        "both sides on 2 MiB pages"
    } else {
        "no hugepages: both sides on 4 KiB pages"
    }
}

fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':'))
        .map_or_else(String::new, |(_, name)| name.trim().to_owned())
}
