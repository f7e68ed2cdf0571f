//! `pollux bench`. No rate is expected of any machine: only that what is reported fits together.

use std::process::{Command, Stdio};

use pollux_pmd_testkit::netns::Cable;
use serde_json::Value;

use crate::support::{Folder, Running, json_of, pollux, refused, reported, run, text};

/// Short trials at rates that are not looked at closely. A trial at a rate that no machine reaches
/// lasts as long as its frames take to be made: of few frames, too.
const QUICK: [&str; 8] = [
    "--trial",
    "0.002",
    "--trials",
    "2",
    "--tolerance",
    "0.5",
    "--settle",
    "0.05",
];

/// Checks a report against itself.
#[track_caller]
fn assert_plausible(report: &Value, sizes: &[u64]) {
    let found = report["sizes"].as_array().unwrap();
    let of = |n: &Value| n.as_u64().unwrap();
    assert!(
        found
            .iter()
            .map(|size| of(&size["size"]))
            .eq(sizes.iter().copied())
    );
    for size in found {
        let rates = size["rates"].as_array().unwrap();
        assert!(!rates.is_empty());
        let pps: Vec<_> = rates
            .iter()
            .map(|r| r["rate_pps"].as_f64().unwrap())
            .collect();
        assert!(pps.is_sorted(), "{pps:?}");
        for rate in rates {
            let outcomes =
                ["loss_free", "lossy", "not_reached", "disturbed"].map(|name| of(&rate[name]));
            assert_eq!(of(&rate["trials"]), outcomes.iter().sum::<u64>());
            assert_eq!(of(&rate["sent"]) - of(&rate["received"]), of(&rate["lost"]));
            assert!(of(&rate["latency_ns"]["count"]) >= of(&rate["received"]));
        }
        let critical = &size["critical"];
        assert_eq!(size["critical_is"] == "within", critical.is_object());
        if critical.is_object() {
            let [low, pps, high] =
                ["low_pps", "pps", "high_pps"].map(|name| critical[name].as_f64().unwrap());
            assert!(low <= pps && pps <= high && high <= report["rate_max_pps"].as_f64().unwrap());
        }
    }
}

#[test]
fn a_wire_in_the_process_is_searched() {
    let folder = Folder::new();
    let picture = folder.path("curve.svg");
    let options = [
        "--port",
        "loopback",
        "--sizes",
        "64,1518",
        "--rate-min",
        "2k",
        "--rate-max",
        "100M",
        "--plot",
        picture.to_str().unwrap(),
    ];
    let report = reported("bench", &[&options[..], &QUICK].concat(), 0);
    assert_plausible(&report, &[64, 1518]);
    assert_eq!(report["complete"], true);
    // Whatever the machine, a frame is not made in ten nanoseconds; and a wire that lets its sender
    // wait loses nothing. A trial that the machine disturbed may leave frames on the wire, which
    // are neither received nor dropped.
    for size in report["sizes"].as_array().unwrap() {
        assert_ne!(size["critical_is"], "above-max");
        let rates = size["rates"].as_array().unwrap();
        assert_eq!(rates.last().unwrap()["not_reached"], 2);
        assert!(
            rates.iter().all(|rate| rate["lossy"] == 0
                && rate["lost"] == rate["unseen"]
                && (rate["lost"] == 0 || rate["disturbed"] != 0)),
            "{size}"
        );
    }
    assert_picture(&std::fs::read_to_string(picture).unwrap());
}

/// Checks that each element is closed by its own end, and that what a picture needs is there.
fn assert_picture(svg: &str) {
    let (mut open, mut elements) = (Vec::new(), 0);
    let body = svg.split_once("?>").unwrap().1;
    for tag in body.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap();
        assert!(
            !text.contains('&') && tag.matches('"').count() % 2 == 0,
            "{tag}"
        );
        assert!(!tag.contains("NaN") && !tag.contains("inf"), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
        elements += 1;
    }
    assert!(open.is_empty() && elements > 20);
    for what in [
        "packets per second",
        "share of loss-free trials",
        "64 bytes",
        "1518 bytes",
    ] {
        assert!(svg.contains(what), "no {what}");
    }
    assert_eq!(svg.matches("<polyline").count(), 2);
}

#[test]
fn several_queues_and_flows_are_searched() {
    let options = [
        "--port",
        "loopback",
        "--sizes",
        "64",
        "--queues",
        "2",
        "--flows",
        "5",
        "--rate-min",
        "2k",
        "--rate-max",
        "100M",
    ];
    let report = reported("bench", &[&options[..], &QUICK].concat(), 0);
    assert_plausible(&report, &[64]);
    assert_eq!(
        (&report["queues"], &report["flows"]),
        (&2.into(), &5.into())
    );
    for rate in report["sizes"][0]["rates"].as_array().unwrap() {
        assert_eq!(rate["lost"], 0, "{rate}");
    }
    assert_eq!(report["ledger"]["balanced"], true);
}

#[test]
fn json_is_printed_and_a_duration_ends_the_run() {
    let endless = [
        "--port",
        "loopback",
        "--sizes",
        "64",
        "--trial",
        "100",
        "--duration",
        "0.2",
        "--json",
    ];
    let output = run("bench", &endless);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = json_of(&output);
    assert_eq!(
        (&report["schema"], &report["complete"]),
        (&1.into(), &false.into())
    );
    assert_eq!(report["sizes"][0]["critical_is"], "unknown");
    assert_eq!(report["ledger"]["balanced"], true);
}

#[test]
fn a_signal_ends_the_run_with_what_is_known() {
    let mut child = pollux("bench")
        .args([
            "--port",
            "loopback",
            "--sizes",
            "64",
            "--rate-max",
            "1M",
            "--trials",
            "1",
        ])
        .args(["--rate-min", "10", "--trial", "0.2", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line of progress says that a rate has been tried.
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(stderr).map(Result::unwrap);
    assert!(lines.any(|line| line.contains("of 1 trials loss-free")));
    let id = child.id().to_string();
    let killed = Command::new("kill").args(["-s", "INT", &id]).status();
    assert!(killed.unwrap().success());
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_plausible(&report, &[64]);
    assert_eq!(report["complete"], false);
}

#[test]
fn what_cannot_be_is_refused() {
    let says = |args: &[&str], status, what: &str| {
        let message = refused("bench", args, status);
        assert!(message.contains(what), "{args:?}: {message}");
    };
    let on = |options: &[&'static str]| [&["--port", "loopback"][..], options].concat();
    says(&[], 2, "<PORT>");
    says(&["--tx", "null"], 2, "--rx");
    says(
        &on(&["--tx", "null", "--rx", "null"]),
        2,
        "cannot be used with",
    );
    says(&["--port", "nul"], 2, "no driver `nul`");
    says(&on(&["--sizes", "60"]), 2, "at least 64 bytes");
    says(&on(&["--sizes", ""]), 2, "--sizes");
    says(
        &on(&["--rate-min", "2M", "--rate-max", "1M"]),
        2,
        "not below",
    );
    says(&on(&["--rate-max", "10Gbps"]), 2, "(pps)");
    says(&on(&["--trials", "0"]), 2, "--trials");
    says(&on(&["--tolerance", "0"]), 2, "0.001 to 0.5");
    says(&on(&["--loss-tolerance", "1"]), 2, "--loss-tolerance");
    says(&on(&["--trial", "0"]), 2, "above 0");
    says(&on(&["--cores", "0"]), 2, "2 CPUs");
    says(&on(&["--queues", "2", "--flows", "1"]), 2, "each of the 2");
    says(
        &on(&["--flows", "9", "--src", "10.0.0.1:65530"]),
        2,
        "above 65535",
    );
    says(
        &on(&["--plot", "/nowhere/x.svg"]),
        1,
        "--plot /nowhere/x.svg",
    );
    says(&on(&["--report", "/nowhere/x"]), 1, "--report /nowhere/x");
    says(
        &["--tx", "pcap:rx=/nowhere", "--rx", "null"],
        1,
        "No such file",
    );
    says(&["--tx", "loopback", "--rx", "loopback"], 2, "same number");
    let help = text(&run("bench", &["--help"]).stdout);
    for part in ["Examples:", "--loss-tolerance", "bench.md", "Port specs:"] {
        assert!(help.contains(part), "no {part}");
    }
}

/// Searches from one end of a cable to the other: both ends are in one namespace.
fn over_a_cable(options: &str) -> Option<Value> {
    let cable = Cable::bare(1500)?;
    let namespace = &cable.a;
    cable
        .b
        .ip(&format!("link set vb netns {}", namespace.name()));
    namespace.ip("link set vb up");
    let line = format!(
        "bench --sizes 512 --trial 0.002 --trials 2 --tolerance 0.5 --settle 0.05 {options}"
    );
    Some(Running::start(namespace, &line).report(0))
}

#[test]
fn a_small_ring_loses_frames_by_cause() {
    let options = "--tx af_packet:va --rx af_packet:vb --ring 2 --rate-min 2k --rate-max 100M";
    let Some(report) = over_a_cable(options) else {
        return;
    };
    assert_plausible(&report, &[512]);
    let (mut lost, mut seen) = (0, 0);
    for size in report["sizes"].as_array().unwrap() {
        assert_ne!(size["critical_is"], "above-max");
        for rate in size["rates"].as_array().unwrap() {
            lost += rate["lost"].as_u64().unwrap();
            seen += rate["dropped"]["kernel-drop"].as_u64().unwrap_or(0);
        }
    }
    assert!(lost > 0 && seen > 0, "{report:#}");
}

#[test]
fn af_xdp_is_searched() {
    let options = "--tx af_xdp:va --rx af_xdp:vb --rate-min 2k --rate-max 100M";
    let Some(report) = over_a_cable(options) else {
        return;
    };
    assert_plausible(&report, &[512]);
    let received = &report["sizes"][0]["rates"][0]["received"];
    assert!(received.as_u64().unwrap() > 0, "{report:#}");
}

#[test]
fn both_ends_of_a_vhost_socket_are_searched() {
    let folder = Folder::new();
    let socket = folder.path("bench.sock");
    let (tx, rx) = ("role=driver", "role=device,server");
    let [tx, rx] = [tx, rx].map(|role| format!("vhost-user:{},{role}", socket.display()));
    let ports = [
        "--tx",
        &tx,
        "--rx",
        &rx,
        "--rate-min",
        "2k",
        "--rate-max",
        "100M",
        "--sizes",
        "64",
    ];
    let report = reported("bench", &[&ports[..], &QUICK].concat(), 0);
    assert_plausible(&report, &[64]);
    assert!(report["sizes"][0]["rates"][0]["received"].as_u64().unwrap() > 0);
}
