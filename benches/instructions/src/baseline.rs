//! The baseline: what the counts were, and on what platform.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::callgrind;
use crate::loops::Loop;

/// The rise, in per cent, above which a loop counts as slower. Random variation (alignment, the
/// order of code) is below one.
const LIMIT: f64 = 3.0;

/// What else the counts depend on: they mean something only where all of it is the same.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Platform {
    /// The compiler and what it compiles for.
    rustc: String,
    /// Its memcpy is part of the loops.
    glibc: String,
    valgrind: String,
    /// Extensions of the CPU that valgrind shows. Version 3.19 has no AVX-512, so code that is
    /// chosen at run time takes its next best path here.
    cpu: Vec<String>,
}

/// The counts of all loops.
#[derive(Serialize, Deserialize)]
pub(crate) struct Baseline {
    pub(crate) platform: Platform,
    /// Instructions an element, by name of the loop.
    pub(crate) instructions: BTreeMap<String, f64>,
}

/// The extensions that there are, of those that a program may choose its code by.
pub(crate) fn cpu_features() -> Vec<&'static str> {
    let mut features = Vec::new();
    macro_rules! detect {
        ($($feature:tt)*) => {$(
            if std::arch::is_x86_feature_detected!($feature) {
                features.push($feature);
            }
        )*};
    }
    detect!("sse4.2" "avx" "avx2" "bmi2" "fma" "avx512f" "avx512vl" "avx512vbmi");
    features
}

impl Platform {
    pub(crate) fn here() -> Result<Self> {
        let line = |program: &str, arguments: &[&str]| -> Result<String> {
            let output = Command::new(program).args(arguments).output();
            let output = output.with_context(|| format!("{program} cannot be run"))?;
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let rustc = line("rustc", &["-vV"])?;
        let field = |name| rustc.lines().find_map(|line| line.strip_prefix(name));
        let (release, hash) = (field("release: "), field("commit-hash: "));
        let rustc = [release, hash, field("host: ")]
            .map(Option::unwrap_or_default)
            .join(" ");
        let cpu = callgrind::valgrind("none", &["features"])?;
        let cpu = String::from_utf8_lossy(&cpu.stdout);
        Ok(Self {
            rustc,
            glibc: line("getconf", &["GNU_LIBC_VERSION"])?,
            valgrind: line("valgrind", &["--version"])?,
            cpu: cpu.split_whitespace().map(str::to_owned).collect(),
        })
    }
}

impl Baseline {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| path.display().to_string())
    }
}

/// Prints both counts of each loop; whether none has risen by more than the limit, or `None` if the
/// baseline is of another platform, and says nothing about this one.
pub(crate) fn compare(old: &Baseline, now: &Baseline, loops: &[Loop]) -> Option<bool> {
    println!(
        "{:<20} {:>9} {:>9} {:>8}",
        "instructions", "baseline", "now", "change"
    );
    for Loop { name, element, .. } in loops {
        let count = |baseline: &Baseline| baseline.instructions.get(*name).copied();
        let text = |count: Option<f64>| count.map_or_else(|| "-".into(), |n| format!("{n:.2}"));
        let (before, count) = (count(old), count(now));
        let change = before.zip(count).map(|(before, count)| rise(before, count));
        let change = change.map_or_else(String::new, |rise| format!("{rise:+.1}%"));
        let (before, count) = (text(before), text(count));
        println!("{name:<20} {before:>9} {count:>9} {change:>8} per {element}");
    }
    if old.platform != now.platform {
        return None;
    }
    let faults = faults(&old.instructions, &now.instructions);
    for fault in &faults {
        println!("{fault}");
    }
    Some(faults.is_empty())
}

/// In per cent.
fn rise(before: f64, count: f64) -> f64 {
    (count / before - 1.0) * 100.0
}

/// What is wrong with the present counts.
fn faults(old: &BTreeMap<String, f64>, now: &BTreeMap<String, f64>) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, &count) in now {
        match old.get(name).map(|&before| rise(before, count)) {
            Some(rise) if rise > LIMIT => faults.push(format!(
                "{name} rose by {rise:.1} %, over the limit of {LIMIT} %: mend it, or run \
                 scripts/instructions --update and say in the commit why"
            )),
            Some(rise) if rise < -LIMIT => {
                println!("{name} is better than its baseline: --update keeps it so");
            }
            Some(_) => {}
            None => faults.push(format!(
                "{name} has no baseline: run scripts/instructions --update"
            )),
        }
    }
    for name in old.keys().filter(|name| !now.contains_key(*name)) {
        faults.push(format!(
            "{name} is in the baseline only: run scripts/instructions --update"
        ));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, f64)]) -> BTreeMap<String, f64> {
        counts
            .iter()
            .map(|&(name, count)| (name.to_owned(), count))
            .collect()
    }

    #[test]
    fn a_rise_above_the_limit_is_a_fault() {
        let old = counts(&[("a", 100.0), ("b", 5.0)]);
        assert!(faults(&old, &counts(&[("a", 102.9), ("b", 2.0)])).is_empty());
        let found = faults(&old, &counts(&[("a", 103.1), ("b", 5.0)]));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("a rose by 3.1 %"), "{found:?}");
    }

    #[test]
    fn every_loop_has_a_baseline_and_every_baseline_a_loop() {
        let found = faults(
            &counts(&[("a", 1.0), ("b", 1.0)]),
            &counts(&[("b", 1.0), ("c", 1.0)]),
        );
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("c has no baseline"), "{found:?}");
        assert!(
            found[1].starts_with("a is in the baseline only"),
            "{found:?}"
        );
    }

    #[test]
    fn counts_of_another_platform_are_not_judged() {
        let baseline = |rustc: &str, count| Baseline {
            platform: Platform {
                rustc: rustc.into(),
                glibc: String::new(),
                valgrind: String::new(),
                cpu: Vec::new(),
            },
            instructions: counts(&[("a", count)]),
        };
        let compared = |old, now| compare(&old, &now, &[]);
        assert_eq!(compared(baseline("1", 1.0), baseline("2", 9.0)), None);
        assert_eq!(
            compared(baseline("1", 1.0), baseline("1", 9.0)),
            Some(false)
        );
        assert_eq!(compared(baseline("1", 1.0), baseline("1", 1.0)), Some(true));
    }
}
