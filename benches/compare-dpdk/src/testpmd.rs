//! DPDK's own program, as a second process, for the record: what its io mode does on this machine
//! with two null ports.

use std::process::{Command, Stdio};

/// Seconds that it runs, its start included.
const SECONDS: &str = "8";

/// Million frames per second that testpmd forwards, over both ports, on one core; or why it did
/// not run. It needs a second core for its command line.
pub(crate) fn forwarded_mpps(cores: [usize; 2], hugepages: bool) -> Result<f64, String> {
    let memory: &[&str] = if hugepages {
        &["--in-memory"]
    } else {
        &["--no-huge", "--no-shconf"]
    };
    let output = Command::new("timeout")
        // Its forwarding core is the one after the main core: ours, in both.
        .args([
            SECONDS,
            "dpdk-testpmd",
            "-l",
            &format!("{},{}", cores[1], cores[0]),
        ])
        .args([
            "--main-lcore",
            &cores[1].to_string(),
            "-m",
            "256",
            "--no-pci",
            "--no-telemetry",
        ])
        .args(memory)
        .args(["--vdev=net_null0", "--vdev=net_null1", "--"])
        .args(["--forward-mode=io", "--stats-period=1", "--no-mlockall"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("timeout: {error}"))?;
    let rates = rates(&String::from_utf8_lossy(&output.stdout));
    // One line a second for each of the two ports; the best second of both together.
    rates
        .chunks_exact(2)
        .map(|ports| ports.iter().sum::<f64>() / 1e6)
        .max_by(f64::total_cmp)
        .filter(|&best| best > 0.0)
        .ok_or_else(|| "dpdk-testpmd (Debian: dpdk-dev) did not run".to_owned())
}

/// The numbers behind `Tx-pps:`.
fn rates(text: &str) -> Vec<f64> {
    let behind = |line: &str| {
        line.split_once("Tx-pps:")?
            .1
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    };
    text.lines().filter_map(behind).collect()
}
