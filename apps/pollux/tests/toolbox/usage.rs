//! Options that all sub-commands read alike.

use crate::support::refused;

/// Sub-commands with loops, and what each needs on its command line.
const WITH_LOOPS: [(&str, &[&str]); 8] = [
    ("forward", &["null", "null"]),
    ("generate", &["null"]),
    ("verify", &["null"]),
    ("replay", &["none.pcapng", "null"]),
    ("capture", &["null", "--output", "none.pcapng"]),
    ("bench", &["--port", "loopback"]),
    ("streams", &["--port", "null"]),
    ("doctor", &["--root", "/nonexistent"]),
];

#[test]
fn lists_of_cpus_are_read_alike() {
    // `streams` runs one loop, wherever the scheduler puts it.
    for (command, args) in WITH_LOOPS.iter().filter(|(name, _)| *name != "streams") {
        for wrong in ["1-0", "x", "1,,2", "0-8192"] {
            let args = [*args, &["--cores", wrong]].concat();
            let message = refused(command, &args, 2);
            assert!(
                message.contains("a list like 2-3,8"),
                "{command}: {message}"
            );
        }
    }
}

#[test]
fn a_range_of_cpus_is_one_loop_on_each() {
    // CPU 8191 is on no machine that this runs on: the range was understood.
    for (command, args) in WITH_LOOPS
        .iter()
        .filter(|(name, _)| !["streams", "doctor"].contains(name))
    {
        let args = [*args, &["--cores", "8190-8191"]].concat();
        let message = refused(command, &args, 2);
        assert!(message.contains("8190"), "{command}: {message}");
    }
}
