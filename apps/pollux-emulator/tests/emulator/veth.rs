//! On an interface: one end of a veth pair in a network namespace of its own, the kernel at the
//! other end. Needs root, ip(8) and ping(8).

use std::process::{Command, Stdio};

use pollux_pmd_testkit::netns::{Cable, run};

#[test]
fn boards_on_an_interface_find_the_trigger_and_are_found() {
    let Some(cable) = Cable::bare(1500) else {
        return;
    };
    if Command::new("ping").arg("-V").output().is_err() {
        println!("skipped: no `ping` program");
        return;
    }
    cable.b.ip("address add 10.77.0.1/24 dev vb");
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    let mut emulator = Command::new("ip")
        .args([
            "netns",
            "exec",
            cable.a.name(),
            env!("CARGO_BIN_EXE_pollux-emulator"),
        ])
        .args([
            "--port",
            "af_packet:va",
            "--src-ip",
            "10.77.0.2",
            "--dst-ip",
            "10.77.0.1",
        ])
        .args([
            "--rate",
            "20000",
            "--events",
            "0",
            "--duration",
            "30",
            "--report",
        ])
        .arg(&report)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The kernel has no address at that end: the answers are the emulator's.
    let ping = "ping -c 3 -i 0.2 -W 10 10.77.0.2";
    let answered = (0..5).any(|_| cable.b.exec(ping).status.success());
    let _ = run(&format!("kill -INT {}", emulator.id()));
    let status = emulator.wait().unwrap();
    assert!(answered, "the ping was not answered");
    assert_eq!(status.code(), Some(0));

    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert!(report["emulator"]["frames_sent"].as_u64().unwrap() > 0);
    assert_eq!(report["emulator"]["send_errors"], 0);
    // ARP and pings.
    assert!(report["ledger"]["delivered"].as_u64().unwrap() >= 4);
    assert_eq!(report["ledger"]["balanced"], true);
}
