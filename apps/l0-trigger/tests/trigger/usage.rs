//! Command lines and configurations: what is wrong is named, before anything is opened.

use crate::common::capture::{boards, record};
use crate::common::{Folder, Run, pcap_port, run};

/// Whatever the arguments before: these would be opened, and leave a trace.
fn refused(arguments: &[&str]) -> Run {
    let folder = Folder::new();
    let (events, report) = (folder.arg("events"), folder.arg("report"));
    let all = [arguments, &["--events-out", &events, "--report", &report]].concat();
    let ended = run(&all);
    for name in ["events", "report"] {
        assert!(
            !folder.path(name).exists(),
            "{arguments:?} made a file: {}",
            ended.stderr
        );
    }
    ended
}

#[test]
fn help_and_version_are_answered() {
    for (flag, text) in [
        ("--help", "Exit status:"),
        ("-h", "--events-out"),
        ("--version", "l0-trigger 0."),
    ] {
        let ended = run(&[flag]).expect(0);
        assert!(
            ended.stdout.contains(text) && ended.stderr.is_empty(),
            "{}",
            ended.stdout
        );
    }
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, named) in [
        (&["--prot", "loopback"][..], &["--prot", "--port"][..]),
        (&["extra"], &["extra"]),
        (&["--duration", "0"], &["--duration", "above 0"]),
        (&["--duration=-1"], &["--duration"]),
        (&["--duration", "nan"], &["--duration"]),
        (
            &["--duration", "soon"],
            &["--duration", "soon", "write a number of seconds"],
        ),
        (&["--events", "0"], &["--events"]),
        (&["--events", "1e6"], &["--events", "1e6"]),
        (&["--burst", "0"], &["--burst", "1..=32"]),
        (&["--burst", "33"], &["--burst", "1..=32"]),
        (&["--queues", "0"], &["--queues"]),
        (&["--queues", "2"], &["--queues", "demonstration"]),
        (&["--rx-loops", "0"], &["--rx-loops"]),
        (&["--rx-loops", "2"], &["--rx-loops", "demonstration"]),
        (&["--port"], &["--port"]),
        (&["--report"], &["--report"]),
        (&["--cores", "x"], &["--cores", "x"]),
        (&["--cores", "0,99"], &["--cores", "cpu 99"]),
        (&["--cores", "0,0"], &["--cores", "cpu 0 is there twice"]),
        (&["--cores", "0"], &["--cores", "2 loops: trigger,emulator"]),
        (&["--cores", "0,1,0"], &["--cores", "twice"]),
        (
            &["--cores", "0,1", "--workers", "2"],
            &["--cores", "4 loops: trigger,emulator,worker,worker"],
        ),
        (
            &["--port", "null", "--cores", "0,1"],
            &["--cores", "2 CPUs for 1 loops: trigger"],
        ),
        (
            &["--port", "loopback", "--port", "null"],
            &["--port loopback", "cannot be combined"],
        ),
    ] {
        if arguments.contains(&"--report") {
            run(arguments).expect_usage(named);
        } else {
            refused(arguments).expect_usage(named);
        }
    }
}

#[test]
fn wrong_ports_are_named() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(32), &capture);
    let good = pcap_port(&capture);
    for (spec, named) in [
        ("", &["--port", "names no driver"][..]),
        (":eth0", &["names no driver"]),
        (
            "afpacket:eth0",
            &["no driver `afpacket`", "af_packet", "pcap"],
        ),
        ("pcap", &["pcap needs rx=FILE"]),
        (
            "pcap:rxx=a.pcap",
            &["pcap has no option `rxx`", "rx, tx, pace"],
        ),
        ("pcap:a.pcap", &["pcap takes no `a.pcap`"]),
        ("pcap:rx=a,rx=b", &["`rx` is given twice"]),
        (
            "pcap:rx=a,pace=slow",
            &["`slow` is not a valid pace", "fast or recorded"],
        ),
        ("af_packet", &["needs an interface"]),
        ("af_packet:lo,frames=1", &["no option `frames`"]),
        ("af_packet:lo,ring=1", &["`1` is not a valid ring"]),
        ("af_packet:", &["needs an interface"]),
        ("null:size=x", &["`x` is not a valid size"]),
    ] {
        refused(&["--port", spec]).expect_usage(named);
        refused(&["--port", spec, "--check"]).expect_usage(named);
        refused(&["--port", &good, "--port", spec]).expect_usage(named);
        // A wrong option is reported before a port that cannot be opened.
        refused(&["--port", "pcap:rx=/nowhere", "--port", spec]).expect_usage(named);
    }
}

#[test]
fn what_a_port_does_not_offer_is_refused() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(32), &capture);
    let port = pcap_port(&capture);
    refused(&["--port", &port, "--queues", "17"])
        .expect_usage(&["17 receive queues", "at most 16"]);
    let only_sends = format!("pcap:tx={}", folder.arg("out.pcapng"));
    refused(&["--port", &only_sends]).expect_usage(&["1 receive queues", "at most 0"]);
    // A port in front of the one that is refused is not started.
    let first = format!("{port},tx={}", folder.arg("out.pcapng"));
    refused(&["--port", &first, "--port", "null:size=9000"]).expect_usage(&["9000 B"]);
    assert!(!folder.path("out.pcapng").exists());
}

#[test]
fn ports_that_cannot_be_opened_say_why() {
    let folder = Folder::new();
    let text = folder.write(
        "notes.txt",
        "this is no capture, though it is long enough for one",
    );
    let empty = folder.write("empty", "");
    let directory = folder.path("").to_str().unwrap().to_owned();
    for (spec, named) in [
        (
            format!("pcap:rx={}", folder.arg("none.pcap")),
            &["cannot open", "none.pcap", "No such file"][..],
        ),
        (format!("pcap:rx={directory}"), &["not a regular file"]),
        (format!("pcap:rx={text}"), &["notes.txt is not a capture"]),
        (format!("pcap:rx={empty}"), &["empty is not a capture"]),
        (
            "af_packet:nosuch0".into(),
            &["no network interface `nosuch0`", "lo"],
        ),
    ] {
        let ended = refused(&["--port", &spec]).expect(1).expect_message(named);
        assert_eq!(ended.stdout, "", "{spec}");
    }
}

#[test]
fn the_boards_of_the_demonstration_need_buffers_for_their_frames() {
    let folder = Folder::new();
    let config = folder.write("trigger.toml", "[memory]\ndata_room = 256");
    for more in [&[][..], &["--check"]] {
        let arguments = [&["--config", &config], more].concat();
        refused(&arguments).expect_usage(&["memory.data_room = 256", "boards' frames"]);
    }
    let arguments = ["--config", &config, "--port", "null", "--check"];
    refused(&arguments).expect(0);
}

#[test]
fn pages_that_there_are_not_are_named_before_a_port_is_opened() {
    const GIB: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages";
    let free = std::fs::read_to_string(GIB).unwrap_or_default();
    if free.trim().parse().unwrap_or(0) > 0 {
        println!("skipped: this machine has pages of 1 GiB");
        return;
    }
    let folder = Folder::new();
    let config = folder.write("trigger.toml", "[memory]\npages = \"1G\"");
    refused(&["--config", &config])
        .expect(1)
        .expect_message(&["[memory]", "pages", "1073741824"]);
    refused(&["--config", &config, "--check"]).expect(0);
}

/// The pools of several loops lack pages, and what one of them needs would take the others' away.
#[test]
fn hugepages_that_are_lacking_are_told_once_for_all_memory() {
    const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    let free = std::fs::read_to_string(FREE).unwrap_or_default();
    if free.trim() != "0" {
        println!("skipped: this machine has hugepages of 2 MiB, or does not know them");
        return;
    }
    let ended = run(&["--events", "100"]).expect(0);
    let told: Vec<_> = ended
        .stderr
        .lines()
        .filter(|line| line.contains("nr_hugepages"))
        .collect();
    assert_eq!(told.len(), 1, "{}", ended.stderr);
    assert!(told[0].contains("for all of it"), "{}", told[0]);
}

#[test]
fn a_run_on_chosen_memory_ends_as_on_any() {
    let folder = Folder::new();
    let config = folder.write(
        "trigger.toml",
        "[memory]\nbuffers = 4096\npages = \"4K\"\nnuma_node = 0\nlock = \"try\"",
    );
    run(&["--config", &config, "--events", "2000"]).expect(0);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a mistake after the other")]
fn wrong_configurations_are_named() {
    let folder = Folder::new();
    for (text, named) in [
        (
            "[trigger]\nbugdet_us = 5",
            &["unknown field `bugdet_us`", "budget_us"][..],
        ),
        ("[triger]", &["unknown field `triger`"]),
        (
            "[trigger]\nbudget_us = \"fast\"",
            &["budget_us", "invalid type: string"],
        ),
        ("[trigger]\nbudget_us = -1", &["budget_us", "-1"]),
        ("[trigger]\nip = \"198.18.0\"", &["invalid IPv4 address"]),
        ("[trigger", &["trigger.toml", "line 1"]),
        ("stream = []", &["0 [[stream]] tables", "1 to 16"]),
        (
            "[[stream]]\nudp_port = 7\n[[stream]]\nudp_port = 7",
            &["UDP port 7", "stream 0", "stream 1"],
        ),
        ("[[stream]]\nudp_port = 0", &["udp_port must not be 0"]),
        (
            "[[stream]]\nport = 7",
            &["unknown field `port`", "udp_port"],
        ),
        ("[[stream]]\nudp_port = 70000", &["udp_port", "70000"]),
        ("[memory]\nbuffers = 0", &["memory.buffers = 0"]),
        (
            "[memory]\npages = \"2MB\"",
            &["pages = \"2MB\"", "`auto`, `4K`, `2M`, `1G`"],
        ),
        (
            "[memory]\nnuma_node = 900",
            &["memory.numa_node = 900", "nodes with memory"],
        ),
        ("[memory]\nnuma_node = -1", &["numa_node", "-1"]),
        ("[memory]\nlock = true", &["lock = true", "wanted string"]),
        (
            "[memory]\nlock = \"always\"",
            &["`always`", "`try` or `require`"],
        ),
        ("[answer]\nfrom_port = 1", &["missing field `to`"]),
        (
            "[answer]\nto = \"1.2.3.4\"",
            &["to = \"1.2.3.4\"", "invalid"],
        ),
        (
            "[answer]\nto = \"1.2.3.4:5\"\nmac = \"02:00\"",
            &["answer.mac = `02:00`"],
        ),
        ("stage = []", &["[[stage]]", "at least one stage"]),
        (
            "[[stage]]\nname = \"decompres\"",
            &[
                "no stage `decompres`",
                "decompress, read-mep, read-tel62, read-mtp, build, merge, rings, decide",
            ],
        ),
        (
            "[[stage]]\ndeadline_us = 5",
            &["[[stage]] number 1 has no `name`"],
        ),
        (
            "[[stage]]\nname = \"decompress\"\n[[stage]]\nname = \"rings\"",
            &[
                "[[stage]] in line 3: stage `rings` takes events, but stage `decompress` before it",
                "makes fragments",
            ],
        ),
        (
            "[[stage]]\nname = \"decompress\"\n",
            &[
                "[[stage]] in line 1",
                "must make decisions",
                "`decompress`, makes fragments",
            ],
        ),
        (
            "[[stage]]\nname = \"decompress\"\n[[stage]]\nname = \"build\"\ndeadline = 5",
            &["stage `build`", "unknown field `deadline`", "deadline_us"],
        ),
        (
            "[[stage]]\nname = \"decompress\"\n[[stage]]\nname = \"build\"\ndeadline_us = 0",
            &[
                "[[stage]] in line 3: stage `build`: deadline_us = 0",
                "1 to 60000000",
            ],
        ),
    ] {
        let config = folder.write("trigger.toml", text);
        let named = [named, &["--config", "trigger.toml"]].concat();
        refused(&["--config", &config]).expect_usage(&named);
        refused(&["--config", &config, "--check"]).expect_usage(&named);
    }
    refused(&["--config", &folder.arg("none.toml")]).expect_usage(&[
        "--config",
        "none.toml",
        "No such file",
    ]);
    refused(&["--config", &folder.arg("")]).expect_usage(&["--config", "Is a directory"]);
    let bytes = folder.write("trigger.toml", [0xff, 0xfe, 0]);
    refused(&["--config", &bytes]).expect_usage(&["--config", "UTF-8"]);
    let truth = folder.write("truth.toml", "bords = 4");
    refused(&["--truth", &truth]).expect_usage(&["--truth", "truth.toml", "unknown field `bords`"]);
    let header = "{\"format\":\"pollux-truth\",\"version\":1}\n";
    let truth = folder.write("truth.jsonl", format!("{header}{{\"rings\":[]}}\n"));
    let named = [
        "--truth",
        "truth.jsonl",
        "line 2: missing field `timestamp`",
    ];
    refused(&["--truth", &truth]).expect_usage(&named);
    // The demonstration makes its own events.
    let truth = folder.write("truth.jsonl", header);
    refused(&["--truth", &truth]).expect_usage(&["--truth", "configuration of the emulator"]);
}

#[test]
fn a_check_says_what_would_be_done_and_opens_nothing() {
    let folder = Folder::new();
    let checked = |arguments: &[&str]| {
        let ended = refused(&[arguments, &["--check"]].concat()).expect(0);
        assert!(!ended.stderr.contains("ERROR"), "{}", ended.stderr);
        ended.stdout
    };
    let demo = checked(&[]);
    for line in [
        "4 boards, 1000000 events at 100000/s",
        "on loopback",
        "UDP port 58916",
        "budget     1000 us",
    ] {
        assert!(demo.contains(line), "no `{line}` in: {demo}");
    }
    assert!(checked(&["--events", "7"]).contains("7 events"));
    let config = folder.write(
        "trigger.toml",
        "[trigger]\nbudget_us = 250\n[answer]\nto = \"10.1.2.3:4567\"\n[[stream]]\nudp_port = 4711\n",
    );
    let capture = folder.path("boards.pcapng");
    record(&boards(32), &capture);
    let plan = checked(&[
        "--config",
        &config,
        "--port",
        "af_packet:lo",
        "--port",
        &pcap_port(&capture),
        "--cores",
        "0",
    ]);
    for line in [
        "af_packet:lo and pcap:",
        "by cpu 0",
        "UDP port 4711",
        "to 10.1.2.3:4567",
        "250 us",
    ] {
        assert!(plan.contains(line), "no `{line}` in: {plan}");
    }
    assert!(
        plan.contains("decompress -> build -> rings -> decide"),
        "{plan}"
    );
    assert!(!plan.contains("emulate"), "{plan}");
}

/// What is not there is found by a check, with the status and in the words of the run.
#[test]
fn a_check_refuses_what_the_run_would() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(32), &capture);
    let none = format!("pcap:rx={}", folder.arg("none.pcap"));
    let nowhere = folder.arg("nowhere/file");
    let sends_nowhere = format!("{},tx={nowhere}", pcap_port(&capture));
    let there = pcap_port(&capture);
    let directory = folder.arg("");
    let replay = ["--port", &there];
    for (arguments, code, named) in [
        (
            &["--port", "af_packet:nosuch0"][..],
            1,
            &["no network interface `nosuch0`", "lo"][..],
        ),
        (&["--port", "af_xdp:nosuch0"], 1, &["nosuch0"]),
        (&["--port", &none], 1, &["none.pcap", "No such file"]),
        (&["--port", &sends_nowhere], 1, &["cannot create", &nowhere]),
        (
            &["--port", &there, "--queues", "17"],
            2,
            &["17 receive queues", "at most 16"],
        ),
        (&["--port", "null:size=9000"], 2, &["9000 B"]),
        (&["--cores", "0,4711"], 2, &["cpu 4711"]),
        (
            &[&replay[..], &["--metrics", "192.0.2.1:9464"]].concat(),
            1,
            &["192.0.2.1:9464", "Cannot assign"],
        ),
        (
            &[&replay[..], &["--http", "192.0.2.1:8080"]].concat(),
            1,
            &["192.0.2.1:8080", "Cannot assign"],
        ),
    ] {
        let checked = refused(&[arguments, &["--check"]].concat());
        let checked = checked.expect(code).expect_message(named);
        assert_eq!(checked.stdout, "", "{arguments:?}");
        // A run has opened its port, and begun its files, when it comes to its servers.
        run(arguments).expect(code).expect_message(named);
    }
    for option in ["--report", "--json", "--events-out"] {
        for path in [&nowhere, &directory] {
            let arguments = ["--port", &there, option, path];
            run(&arguments).expect(1).expect_message(&[option, path]);
            let ended = run(&[&arguments[..], &["--check"]].concat()).expect(1);
            assert_eq!(ended.stdout, "");
            ended.expect_message(&[option, path]);
        }
    }
}

#[test]
fn messages_to_a_file_have_no_colours() {
    let ended = run(&["--port", "af_packet:nosuch0"]).expect(1);
    assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
    let ended = run(&["--events", "32"]).expect(0);
    assert!(!(ended.stderr + &ended.stdout).contains('\u{1b}'));
}
