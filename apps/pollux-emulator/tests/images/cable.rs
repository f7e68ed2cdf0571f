//! On an interface: one end of a veth pair in a network namespace of its own. Needs root and ip(8).

use std::fs;
use std::process::Command;

use pollux_pmd_testkit::netns::Cable;
use serde_json::Value;

/// Runs `images` in the namespace of one end; the port is its interface.
fn images(cable: &Cable, args: &str) -> std::process::Output {
    let program = env!("CARGO_BIN_EXE_pollux-emulator");
    let start = [
        "netns",
        "exec",
        cable.a.name(),
        program,
        "images",
        "af_packet:va",
    ];
    let mut command = Command::new("ip");
    command.args(start).args(args.split_whitespace());
    command.output().unwrap()
}

#[test]
fn packets_need_jumbo_frames() {
    let Some(cable) = Cable::bare(1500) else {
        return;
    };
    let output = images(&cable, "--frames 1 --dst-mac 02:00:00:00:00:09");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("frames up to 1514 B"), "{stderr}");
    assert!(
        stderr.contains("frames of 8282 B") && stderr.contains("MTU of at least 8268 B"),
        "{stderr}"
    );
    // Packets of EIGER are shorter, and need them too.
    let output = images(
        &cable,
        "--frames 1 --detector eiger --dst-mac 02:00:00:00:00:09",
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("frames of 4186 B"));
}

/// The kernel at the other end is found by ARP, and its socket receives every packet.
#[test]
fn the_kernel_at_the_other_end_receives_all() {
    let Some(cable) = Cable::bare(9000) else {
        return;
    };
    cable.b.ip("address add 10.77.0.1/24 dev vb");
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    let args = format!(
        "--src-ip 10.77.0.2 --dst-ip 10.77.0.1 --frames 20 --rate 100 --stack 2 --report {}",
        report.display()
    );
    let output = images(&cable, &args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!(report["detector"]["packets_sent"], 2560);
    assert_eq!(report["detector"]["send_errors"], 0);
    // The answer to ARP, and perhaps that the port is closed.
    assert!(report["ledger"]["delivered"].as_u64().unwrap() >= 1);
    // No socket is open there: the kernel counts each packet whose checksum it has found correct.
    let counters = cable.b.exec("cat /proc/net/snmp");
    let text = String::from_utf8_lossy(&counters.stdout).into_owned();
    let udp: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("Udp:"))
        .collect();
    let column = |name: &str| {
        let at = udp[0]
            .split_whitespace()
            .position(|word| word == name)
            .unwrap();
        udp[1]
            .split_whitespace()
            .nth(at)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    assert_eq!(column("NoPorts"), 2560);
    assert_eq!(column("InErrors"), 0);
}
