//! A driver that is built outside the workspace, in a program of its own (`scripts/out-of-tree.d`).

use anyhow::{Result, ensure};

use super::forward::ForwardPath;
use crate::bench::Bench;
use crate::rig::IP_B;
use crate::test::Test;

pub(crate) const OUT_OF_TREE: &[Test] = &[Test {
    name: "forward",
    shows: "a driver from outside the workspace forwards frames between two kernels; its ledger balances",
    run: forward,
}];

fn forward(bench: &Bench) -> Result<()> {
    let mut path = ForwardPath::by(bench, &["rtl8139-forward"], &[])?;
    // Short frames, which it pads, and the longest; more than a lap of the ring.
    for size in ["4", "100", "1472"] {
        let words = ["ping", "-A", "-q", "-c", "100", "-s", size, "-W", "5"];
        let said = path.run(false, &[&words[..], &[&IP_B.to_string()]].concat())?;
        print!("{said}");
        ensure!(said.contains(" 0% packet loss"), "{size} bytes: {said}");
    }
    let status = path.interrupt()?;
    ensure!(status == Some(0), "rtl8139-forward ended with {status:?}");
    Ok(())
}
