//! The same measurement in another process, and the best of both.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::measure::Row;

/// Runs this program again, with one process, and reads its rows.
pub(crate) fn rows(only: &[String], rounds: usize, cores: &str) -> Result<Vec<Value>> {
    let file = std::env::temp_dir().join(format!("compare-dpdk.{}.json", std::process::id()));
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--processes", "1", "--no-testpmd"])
        .args(["--rounds", &rounds.to_string(), "--cores", cores, "--json"])
        .arg(&file)
        .stdout(Stdio::null());
    if !only.is_empty() {
        command.args(["--only", &only.join(",")]);
    }
    let status = command.status().context("cannot run another process")?;
    ensure!(status.success(), "another process failed: {status}");
    let text = std::fs::read_to_string(&file);
    std::fs::remove_file(&file).context("cannot remove a temporary file")?;
    let mut report: Value = serde_json::from_str(&text?)?;
    match report["rows"].take() {
        Value::Array(rows) => Ok(rows),
        _ => anyhow::bail!("another process wrote no rows"),
    }
}

/// Keeps the best of both; the spread is that of the process that was disturbed most.
pub(crate) fn merge(rows: &mut [Row], others: &[Value]) -> Result<()> {
    ensure!(
        rows.len() == others.len(),
        "processes measured different rows"
    );
    for (row, other) in rows.iter_mut().zip(others) {
        ensure!(
            other["name"] == row.name && other["burst"] == row.burst,
            "processes measured different rows"
        );
        let of = |key: &str| other[key].as_f64().with_context(|| format!("no {key}"));
        row.ours = row.ours.min(of("ours")?);
        row.dpdk = row.dpdk.min(of("dpdk")?);
        row.medians[0] = row.medians[0].max(of("ours_median")?);
        row.medians[1] = row.medians[1].max(of("dpdk_median")?);
        row.spread = (row.medians[0] / row.ours).max(row.medians[1] / row.dpdk) - 1.0;
    }
    Ok(())
}
