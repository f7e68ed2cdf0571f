//! The program runs, and its stage and its driver do what they say.

use std::process::Command;

#[test]
fn the_trigger_runs_with_a_stage_and_a_driver_from_outside() {
    let run = Command::new(env!("CARGO_BIN_EXE_extended-trigger"))
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&run.stdout);
    let log = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{out}{log}");
    let line = |name: &str| {
        let line = out.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no line {name} in\n{out}"))
    };
    // The program itself compares events, decisions and vetoed hits with what its driver made.
    assert!(line("port").contains("generated"), "{out}");
    assert!(line("vetoed").ends_with("hits"), "{out}");
    let ledger = line("ledger");
    let (wire, delivered) = ledger.split_once('=').unwrap();
    let first = |text: &str| {
        text.split_whitespace()
            .find_map(|word| word.parse::<u64>().ok())
    };
    assert_eq!(first(wire), first(delivered), "{ledger}");
    assert!(first(wire) > Some(0), "{ledger}");
}
