//! `--reassemble`: against a recording, and against fragments that scapy has made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::captures::recorded;
use super::{counts_alone, report};
use crate::support::{Capture, Folder, datagram, file, text};

#[test]
fn recorded_fragments_make_the_datagrams_that_tshark_sees() {
    let named = |path: &&PathBuf| path.ends_with("same_ports.pcap");
    let Some(path) = recorded().iter().find(named).cloned() else {
        return;
    };
    assert_eq!(
        counts_alone(report(&["--port", &file(&path), "--reassemble"])),
        json!({
            "streams": [
                {"src_ip": "169.254.92.158", "dst_port": 7502, "packets": 2, "bytes": 48 + 16_640},
                {"src_ip": "169.254.238.111", "dst_port": 7502, "packets": 2, "bytes": 48 + 12_608},
            ],
            "dropped": {},
            "from_wire": 23,
            "delivered": 23,
            "balanced": true,
        })
    );
}

/// A Python that has scapy: the system's, or the one that `scripts/gateware` makes.
fn scapy() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_pollux")).ancestors().nth(2)?;
    let candidates = ["python3".into(), target.join("gateware/venv/bin/python")];
    let found = candidates.into_iter().find(|python| {
        let import = Command::new(python).args(["-c", "import scapy"]).output();
        import.is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        println!("skipped: no scapy: apt-get install python3-scapy");
    }
    found
}

#[test]
fn fragments_of_scapy_are_joined_or_dropped_for_their_cause() {
    let Some(python) = scapy() else {
        return;
    };
    let folder = Folder::new();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/toolbox/streams/fragments.py"
    );
    let made = Command::new(python)
        .arg(script)
        .arg(folder.path(""))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let cases = std::fs::read(folder.path("cases.json")).unwrap();
    let cases: BTreeMap<String, Value> = serde_json::from_slice(&cases).unwrap();
    assert!(cases.len() > 10);
    for (name, case) in cases {
        let port = file(&folder.path(&format!("{name}.pcap")));
        let found = counts_alone(report(&["--port", &port, "--reassemble"]));
        let datagrams = case["datagrams"].as_array().unwrap();
        let bytes: u64 = datagrams.iter().map(|len| len.as_u64().unwrap()).sum();
        let streams = match datagrams.len() {
            0 => json!([]),
            packets => json!([
                {"src_ip": "10.0.0.1", "dst_port": 2000, "packets": packets, "bytes": bytes},
            ]),
        };
        assert_eq!(found["streams"], streams, "{name}");
        assert_eq!(found["dropped"], case["dropped"], "{name}");
        assert_eq!(found["from_wire"], case["frames"], "{name}");
        // By default none of them is put together.
        let found = report(&["--port", &port]);
        assert_eq!(found["dropped"]["ip-fragment"], case["frames"], "{name}");
    }
}

#[test]
fn whole_datagrams_are_counted_as_without() {
    let frames = [datagram(1, 10, &[0; 5]), vec![0; 60]];
    let capture = Capture::of_frames(&frames);
    let plain = report(&["--port", &capture.spec()]);
    assert_eq!(plain["delivered"], 1);
    assert_eq!(report(&["--port", &capture.spec(), "--reassemble"]), plain);
}
