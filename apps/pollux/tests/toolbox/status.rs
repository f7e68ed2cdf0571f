//! Exit status of every sub-command, as docs/errors.md has it: 0 for what ended as asked, 1 for what
//! was tried and failed, 2 for what cannot be asked.

use std::fs;
use std::path::Path;

use crate::bind::kernel::Kernel;
use crate::help::subcommands;
use crate::metrics::Watched;
use crate::support::{Folder, SHORT_BENCH, file, reported, run, text, write_an_event};

const DEVICE: &str = "0000:03:00.0";

/// What a sub-command is asked for, and what becomes of it.
type Case<'a> = (&'a str, [Vec<&'a str>; 3]);

#[test]
#[expect(clippy::too_many_lines, reason = "one sub-command after the other")]
fn the_status_says_what_became_of_a_run() {
    let folder = Folder::new();
    reported("generate", &[&folder.sink("x.pcapng"), "--count", "10"], 0);
    let path = folder.path("x.pcapng");
    let (port, path) = (file(&path), path.to_str().unwrap());
    let copy = folder.path("copy.pcapng");
    let copy = copy.to_str().unwrap();
    let events = folder.path("run.events");
    write_an_event(&events);
    let events = events.to_str().unwrap();
    let kernel = Kernel::new();
    let kernel = kernel.device(DEVICE, "ixgbe", "eth1").group(DEVICE, 7);
    let root = kernel.driver("vfio-pci").root();
    let served = Watched::start("forward", &["null", "--quiet"]);
    let address = served.address();

    // 0, 1 and 2.
    let (missing, nowhere) = ("pcap:rx=/nowhere.pcapng", "/nowhere/report.json");
    let no_driver = "nowhere:eth1";
    let conversation = folder.path("play.toml");
    fs::write(
        &conversation,
        "ip = '10.0.0.1'\nmac = '02:00:00:00:00:01'\n",
    )
    .unwrap();
    let conversation = conversation.to_str().unwrap();
    let (played, unplayed) = (folder.path("played.pcapng"), folder.path("unplayed.pcapng"));
    let both = |rx: &str, tx: &Path| format!("{rx},tx={}", tx.display());
    let (plays, plays_missing) = (both(&port, &played), both(missing, &unplayed));
    let end = "--mac 02:00:00:00:00:01 --ip 10.0.0.1 --as ibv_rc_pingpong --patience 0.1";
    let ends = |more: &[&'static str]| -> Vec<&'static str> {
        more.iter().copied().chain(end.split(' ')).collect()
    };
    let cases: [Case; 19] = [
        (
            "bench",
            [
                SHORT_BENCH.to_vec(),
                vec!["--rx", missing, "--tx", "null"],
                vec![no_driver],
            ],
        ),
        (
            "bind",
            [
                vec![DEVICE, "--root", root],
                vec!["0000:04:00.0", "--root", root],
                vec!["eth7", "--root", root],
            ],
        ),
        (
            "capture",
            [
                vec![&port, "--output", copy],
                vec![missing, "--output", copy],
                vec![no_driver, "--output", copy],
            ],
        ),
        (
            "doctor",
            [
                vec!["--root", "/nonexistent"],
                vec!["--root", "/nonexistent", "--report", nowhere],
                vec!["--jitter", "soon"],
            ],
        ),
        (
            "events",
            [
                vec![events],
                vec!["/nowhere.events"],
                vec![events, "--event", "1"],
            ],
        ),
        (
            "forward",
            [vec![&port, "null"], vec![missing, "null"], vec![no_driver]],
        ),
        (
            "generate",
            [
                vec!["null", "--count", "1"],
                vec!["pcap:tx=/nowhere/x.pcapng"],
                vec!["null", "--size", "59"],
            ],
        ),
        (
            "live",
            [
                vec![address, "--count", "1", "--interval", "0.01"],
                vec!["127.0.0.1:1"],
                vec!["127.0.0.1:99999"],
            ],
        ),
        (
            "physics",
            [
                vec!["--events", "5"],
                vec!["--events", "5", "--json", nowhere],
                vec!["--events", "0"],
            ],
        ),
        (
            "ports",
            [vec![], vec!["--report", nowhere], vec!["--driver"]],
        ),
        (
            "rdma bench",
            [
                vec!["--trial", "0.001", "--bytes", "64", "--measure", "rate"],
                vec!["--trial", "0.001", "--bytes", "64", "--report", nowhere],
                vec!["null"],
            ],
        ),
        // Of both the peer is another program: scripts/rdma-interop.
        (
            "rdma ping",
            [
                vec!["--help"],
                ends(&["null", "--at", "127.0.0.1:1"]),
                ends(&[no_driver]),
            ],
        ),
        (
            "rdma play",
            [
                vec!["--config", conversation, &plays],
                vec!["--config", conversation, &plays_missing],
                vec!["--config", conversation, no_driver],
            ],
        ),
        (
            "rdma serve",
            [
                vec!["--help"],
                ends(&["null", "--at", "127.0.0.1:0"]),
                ends(&[no_driver]),
            ],
        ),
        (
            "replay",
            [
                vec![path, "null", "--speed", "max"],
                vec!["/nowhere.pcapng", "null"],
                vec![path, no_driver],
            ],
        ),
        ("streams", [vec![&port], vec![missing], vec![no_driver]]),
        (
            "switch",
            [
                vec![&port, "null:size=0", "--count", "10"],
                vec![missing, "null"],
                vec![&port, no_driver],
            ],
        ),
        (
            "unbind",
            [
                vec![DEVICE, "--root", root],
                vec!["0000:04:00.0", "--root", root],
                vec!["eth7", "--root", root],
            ],
        ),
        (
            "verify",
            [
                vec![&port, "--count", "10"],
                vec![&port, "--count", "11"],
                vec![&port, "--count", "0"],
            ],
        ),
    ];
    let names: Vec<_> = cases.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, subcommands(), "all of them");
    for (command, asked) in &cases {
        for (args, status) in asked.iter().zip(0..) {
            let output = run(command, args);
            let message = text(&output.stderr);
            assert_eq!(
                output.status.code(),
                Some(status),
                "{command} {args:?}: {message}"
            );
            assert_eq!(
                message.contains("error: "),
                status > 0,
                "{command} {args:?}: {message}"
            );
            if status == 2 {
                assert!(output.stdout.is_empty(), "{command} {args:?} began");
            }
        }
        let unknown = run(command, &["--no-such-option"]);
        assert_eq!(unknown.status.code(), Some(2), "{command}");
    }
}
