//! On an interface: one end of a veth pair in a network namespace of its own, the kernel at the
//! other end. Needs root, ip(8) and ping(8).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Command, Stdio};

/// Runs a command; whether it could be run and succeeded.
fn done(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Two namespaces with a cable between them; gone when dropped.
struct Cable {
    boards: String,
    trigger: String,
}

impl Cable {
    fn new() -> Option<Self> {
        let name = |end| format!("pxemu-{}-{end}", std::process::id());
        let cable = Self {
            boards: name("boards"),
            trigger: name("trigger"),
        };
        let (boards, trigger) = (&cable.boards, &cable.trigger);
        let lines = [
            format!("ip netns add {boards}"),
            format!("ip netns add {trigger}"),
            format!("ip link add v0 netns {boards} type veth peer name v1 netns {trigger}"),
            format!("ip -n {boards} link set v0 up"),
            format!("ip -n {trigger} link set v1 up"),
            format!("ip -n {trigger} addr add 10.77.0.1/24 dev v1"),
            "ping -V".to_owned(),
        ];
        lines.iter().all(|line| done(line)).then_some(cable)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in [&self.boards, &self.trigger] {
            done(&format!("ip netns del {name}"));
        }
    }
}

#[test]
fn boards_on_an_interface_find_the_trigger_and_are_found() {
    let Some(cable) = Cable::new() else {
        println!("skipped: no network namespaces (needs root, ip and ping)");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    let mut emulator = Command::new("ip")
        .args([
            "netns",
            "exec",
            &cable.boards,
            env!("CARGO_BIN_EXE_pollux-emulator"),
        ])
        .args([
            "--port",
            "af_packet:v0",
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
    let ping = format!(
        "ip netns exec {} ping -c 3 -i 0.2 -W 10 10.77.0.2",
        cable.trigger
    );
    let answered = (0..5).any(|_| done(&ping));
    done(&format!("kill -INT {}", emulator.id()));
    let status = emulator.wait().unwrap();
    assert!(answered, "nobody answered the ping");
    assert_eq!(status.code(), Some(0));

    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert!(report["emulator"]["frames_sent"].as_u64().unwrap() > 0);
    assert_eq!(report["emulator"]["send_errors"], 0);
    // ARP and pings.
    assert!(report["ledger"]["delivered"].as_u64().unwrap() >= 4);
    assert_eq!(report["ledger"]["balanced"], true);
}
