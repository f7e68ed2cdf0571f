//! Stops before the first frame.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pollux_emulator::images::stack::{Stack, StackError};
use pollux_emulator::images::synthesis::Synthesis;
use pollux_images::stack::{StackLayout, stack_name};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd_testkit::netns::Cable;
use pollux_rdma::exchange::{Description, Listener, Offered};
use pollux_rdma::{Access, Key, Mtu, Psn, QpAddress, QpKind, QpNumber, RemoteBuffer};
use serde_json::Value;

use crate::receiver::{Bench, FastClock, small, stack};

/// No wait in these tests is longer.
const PATIENCE: Duration = Duration::from_mins(1);

fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process has a handler for SIGINT: bit 1 of the mask of caught signals.
fn handles_signals(process: &Path) -> bool {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 2 != 0))
}

/// Interrupts a run, which ends with status 0 and a report of a stop without any frame.
fn interrupt(mut child: Child, report: &Path) {
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!(report["end"], "stopped");
    assert_eq!(report["detector"]["complete"], false);
    assert_eq!(report["detector"]["packets_sent"], 0);
    assert_eq!(report["ledger"]["balanced"], true);
}

#[test]
fn a_stop_ends_the_making_and_the_reading_of_images() {
    let (dir, stop) = (tempfile::tempdir().unwrap(), StopFlag::new());
    let config = small();
    let synthesis = Synthesis::new(&config).unwrap();
    let raw = dir.path().join("raw");
    fs::write(&raw, vec![1; stack(&config).layout().module_bytes()]).unwrap();
    assert!(Stack::from_files(&config, std::slice::from_ref(&raw), &stop).is_ok());
    stop.stop();
    let made = Stack::synthetic(&synthesis, &stop);
    assert!(matches!(made, Err(StackError::Stopped)));
    let read = Stack::from_files(&config, &[raw], &stop);
    assert!(matches!(read, Err(StackError::Stopped)));
}

#[test]
fn a_stop_before_the_start_sends_nothing() {
    let config = small();
    let (bench, tx) = Bench::new(1, 64);
    let mut source = bench.source(&config, stack(&config), tx);
    bench.stop.stop();
    let report = source.run();
    assert_eq!((report.packets_sent, report.done.frames), (0, 0));
    assert!(!report.complete);
    bench.stop(source.into_link().into_queues().0);
}

#[test]
fn a_signal_while_images_are_made_ends_the_run_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let [report, truth] = ["r.json", "t.json"].map(|name| dir.path().join(name));
    // The images take a minute.
    let child = Command::new(env!("CARGO_BIN_EXE_pollux-emulator"))
        .args(["images", "--udp", "127.0.0.1:31800", "--stack", "500"])
        .args([
            "--report".as_ref(),
            report.as_os_str(),
            "--truth".as_ref(),
            truth.as_os_str(),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = Path::new("/proc").join(child.id().to_string());
    wait_until("no handler of signals", || handles_signals(&process));
    interrupt(child, &report);
    assert!(!truth.exists(), "the images were all made");
}

/// On an interface where no host answers.
#[test]
fn a_signal_while_arp_is_not_answered_ends_the_run_in_order() {
    let Some(cable) = Cable::bare(9000) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    let child = Command::new("ip")
        .args([
            "netns",
            "exec",
            cable.a.name(),
            env!("CARGO_BIN_EXE_pollux-emulator"),
        ])
        .args([
            "images",
            "af_packet:va",
            "--src-ip",
            "10.77.0.2",
            "--dst-ip",
            "10.77.0.1",
        ])
        .args(["--stack", "1", "--report"])
        .arg(&report)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("no request", || {
        let received = cable.b.exec("cat /sys/class/net/vb/statistics/rx_packets");
        let text = String::from_utf8_lossy(&received.stdout).trim().to_owned();
        text.parse::<u64>().is_ok_and(|frames| frames > 0)
    });
    interrupt(child, &report);
}

#[test]
fn a_stop_ends_the_wait_for_arp() {
    let mut config = small();
    let (bench, tx) = Bench::new(1, 64);
    let images = stack(&config);
    let layout = *images.layout();
    let mut link = bench.source(&config, images, tx).into_link();
    bench.stop.stop();
    link.resolve(&mut config, &layout, &FastClock::default(), &bench.stop)
        .unwrap();
    assert_eq!(config.addresses.dst_mac, None);
    bench.stop(link.into_queues().0);
}

/// A run into the memory of a receiver that listens at `to`.
fn into_memory(folder: &Path, to: SocketAddr, report: &Path) -> Child {
    let path = |name| folder.join(name).display().to_string();
    let port = format!("unix:{},peer={}", path("s"), path("r"));
    Command::new(env!("CARGO_BIN_EXE_pollux-emulator"))
        .args([
            "images",
            &port,
            "--stack",
            "1",
            "--rdma",
            &to.to_string(),
            "--report",
        ])
        .arg(report)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// It accepts the connection, and says nothing; or it exchanges addresses, and no packet of it comes.
#[test]
fn a_signal_while_a_receiver_does_not_answer_ends_the_run_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    for is_silent in [true, false] {
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let child = into_memory(dir.path(), listener.address().unwrap(), &report);
        let mut channel = listener.accept(PATIENCE).unwrap();
        if !is_silent {
            let layout = *stack(&small()).layout();
            let bytes = StackLayout::new(&layout, 1).bytes() as u64;
            let own = Description {
                qp: QpAddress {
                    number: QpNumber::connectable(17).unwrap(),
                    psn: Psn::new(1),
                    ip: Ipv4Addr::new(198, 18, 0, 1),
                    mac: None,
                },
                kind: QpKind::Unreliable,
                mtu: Mtu::B1024,
                buffers: vec![Offered {
                    name: stack_name(0),
                    buffer: RemoteBuffer {
                        address: 0,
                        key: Key(1),
                    },
                    bytes,
                    access: Access::WRITE,
                }],
            };
            own.exchange(&mut channel).unwrap();
        }
        interrupt(child, &report);
        fs::remove_file(&report).unwrap();
    }
}
