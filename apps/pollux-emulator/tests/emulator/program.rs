//! The program `pollux-emulator`: captures, sockets, exit statuses.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use pollux_emulator::config::EmulatorConfig;
use pollux_emulator::foreign::ForeignTruth;
use pollux_emulator::truth::Truth;
use pollux_mempool::{Burst, Mempool, PoolConfig};
use pollux_na62::formats::hits::{HitsFrame, MAX_HITS};
use pollux_na62::formats::mtp::{MAX_PACKET, MtpWriter, Primitive, SOURCE_RICH};
use pollux_na62::l0::PrimitiveId;
use pollux_na62::physics::model::{TrueRing, TruthEvent};
use pollux_na62::rich::Hit;
use pollux_pmd::net::{ParseOptions, Parsed, Reject, parse};
use pollux_pmd::{PortConfig, Registry, StartedPort};
use serde_json::Value;

/// No wait in these tests is longer.
const PATIENCE: Duration = Duration::from_secs(30);

fn command(args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux-emulator"));
    command.args(args.split_whitespace());
    command
}

pub(crate) fn run(args: &str) -> Output {
    command(args).output().unwrap()
}

/// Runs with status 0.
pub(crate) fn succeed(args: &str) -> Output {
    let output = run(args);
    assert!(
        output.status.success(),
        "{args}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Runs with another status; what it said about it.
pub(crate) fn fail(args: &str, status: i32) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{args}: {stderr}");
    stderr
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What a frame of a capture is: its time in ns, and its payload unless its checksum is wrong.
type Captured = (u64, Option<Vec<u8>>);

fn read_capture(path: &Path) -> Vec<Captured> {
    let pool = Mempool::new(PoolConfig {
        buffers: 512,
        ..PoolConfig::default()
    })
    .unwrap();
    let config = PortConfig {
        tx_queues: 0,
        ..PortConfig::new(pool.clone())
    };
    let port = Registry::builtin()
        .open(&format!("pcap:rx={}", path.display()))
        .unwrap();
    let StartedPort { port, mut rx, tx } = port.configure(config).unwrap().start().unwrap();
    let (mut cache, mut burst) = (pool.cache(64).unwrap(), Burst::<32>::new());
    let mut frames = Vec::new();
    while !rx[0].state().is_final() {
        rx[0].rx(&mut cache, &mut burst);
        for mbuf in burst.iter() {
            let payload = match parse(mbuf.data(), mbuf.total_len(), &ParseOptions::default()) {
                Ok(Parsed::Udp(udp)) => Some(udp.payload(mbuf.data()).to_vec()),
                Err(Reject::BadChecksum) => None,
                other => panic!("{other:?}"),
            };
            frames.push((mbuf.wire_time().unwrap().0, payload));
        }
        cache.free_burst(&mut burst);
    }
    port.stop(rx, tx).unwrap();
    frames
}

#[test]
fn equal_seeds_write_equal_captures() {
    let dir = tempfile::tempdir().unwrap();
    let capture = |name: &str, seed| {
        let path = dir.path().join(name);
        let faults = "--lost 0.02 --late 0.02 --duplicated 0.02 --reordered 0.02 --corrupted 0.02";
        succeed(&format!(
            "--port pcap:tx={} --events 3000 --seed {seed} {faults}",
            path.display()
        ));
        fs::read(path).unwrap()
    };
    let first = capture("a", 7);
    assert!(first.len() > 100_000);
    assert!(first == capture("b", 7), "two runs, two captures");
    assert!(first != capture("c", 8), "the seed means nothing");
}

#[test]
fn a_capture_holds_the_truth() {
    let dir = tempfile::tempdir().unwrap();
    let [path, truth, report] = ["c.pcapng", "t.toml", "r.json"].map(|name| dir.path().join(name));
    succeed(&format!(
        "--port pcap:tx={} --events 1000 --rate 50000 --arrival regular --boards 3 --truth-out {} --report {}",
        path.display(),
        truth.display(),
        report.display()
    ));
    let config = EmulatorConfig::from_toml(&fs::read_to_string(truth).unwrap()).unwrap();
    assert_eq!(
        (config.events, config.boards, config.spacing()),
        (1000, 3, 800)
    );
    let (truth, frames) = (Truth::of(&config).unwrap(), read_capture(&path));
    assert_eq!(frames.len(), 32 * 3);

    let (mut event, mut hits) = (TruthEvent::default(), [Hit::default(); MAX_HITS]);
    let (mut next, mut hit_count) = ([0; 3], 0);
    for (at, payload) in &frames {
        let payload = payload.as_ref().unwrap();
        let frame = HitsFrame::parse(payload).unwrap();
        let n = &mut next[usize::from(frame.sub_id())];
        assert_eq!(u64::from(frame.sequence()), *n / 32);
        let mut events = frame.events();
        while let Some((timestamp, hits)) = events.next_into(&mut hits) {
            assert_eq!(timestamp, 1_000_000 + *n * 800);
            truth.event(*n, &mut event);
            assert_eq!(hits, event.board_hits(frame.sub_id(), 3));
            hit_count += hits.len() as u64;
            *n += 1;
        }
        // Sent when its last event has happened.
        assert_eq!(*at, 1_767_225_600_000_000_000 + (*n - 1) * 800 * 25);
    }
    assert_eq!(next, [1000; 3]);

    let report = json(&report);
    assert_eq!(report["schema"], 1);
    assert_eq!(report["emulator"]["frames_sent"], 96);
    assert_eq!(report["emulator"]["hits_sent"], hit_count);
    assert_eq!(report["emulator"]["complete"], true);
    assert_eq!(report["ports"][0]["tx_packets"], 96);
    assert_eq!(report["ledger"]["balanced"], true);
    let again: EmulatorConfig = serde_json::from_value(report["config"].clone()).unwrap();
    assert_eq!(config, again);
}

#[test]
fn the_truth_of_events_is_that_of_the_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let [path, toml, lines] = ["c.pcapng", "t.toml", "t.jsonl"].map(|name| dir.path().join(name));
    succeed(&format!(
        "--port pcap:tx={} --events 500 --seed 3 --truth-out {} --truth-events {}",
        path.display(),
        toml.display(),
        lines.display()
    ));
    let config = EmulatorConfig::from_toml(&fs::read_to_string(toml).unwrap()).unwrap();
    let lines = ForeignTruth::parse(&fs::read_to_string(lines).unwrap()).unwrap();
    assert_eq!(lines.events(), 500);
    let (truth, mut event) = (Truth::of(&config).unwrap(), TruthEvent::default());
    for n in 0..500 {
        truth.event(n, &mut event);
        let rings = lines.rings(0, truth.timeline().timestamp(n)).unwrap();
        let hits = |rings: &[TrueRing]| rings.iter().map(|ring| ring.hits).collect::<Vec<_>>();
        assert_eq!(hits(rings), hits(&event.rings));
    }
    let endless = "--port pcap:tx=/dev/null --events 0 --truth-events /dev/null";
    assert!(fail(endless, 2).contains("--truth-events: a run without an end"));
}

#[test]
fn faults_are_in_the_capture_as_counted() {
    let dir = tempfile::tempdir().unwrap();
    let [path, report] = ["c.pcapng", "r.json"].map(|name| dir.path().join(name));
    succeed(&format!(
        "--port pcap:tx={} --events 8000 --events-per-frame 8 --report {} \
         --lost 0.05 --late 0.05 --late-us 300 --duplicated 0.05 --reordered 0.05 --corrupted 0.05",
        path.display(),
        report.display()
    ));
    let frames = read_capture(&path);
    let report = json(&report);
    let count = |name: &str| report["emulator"]["faults"][name].as_u64().unwrap() as usize;
    let faults = ["lost", "late", "duplicated", "reordered", "corrupted"];
    assert!(
        faults
            .iter()
            .all(|fault| (100..=300).contains(&count(fault))),
        "{report}"
    );
    assert_eq!(frames.len(), 4000 - count("lost") + count("duplicated"));
    assert_eq!(
        frames.iter().filter(|(_, p)| p.is_none()).count(),
        count("corrupted")
    );
    assert!(frames.is_sorted_by_key(|(at, _)| *at));

    let mut seen = [0i64; 4].map(|_| Vec::new());
    for payload in frames.iter().filter_map(|(_, payload)| payload.as_ref()) {
        let frame = HitsFrame::parse(payload).unwrap();
        seen[usize::from(frame.sub_id())].push(frame.sequence());
    }
    let twice: usize = seen
        .iter()
        .map(|s| s.windows(2).filter(|w| w[0] == w[1]).count())
        .sum();
    assert_eq!(twice, count("duplicated"));
    let different: usize = seen
        .iter_mut()
        .map(|sequences| {
            sequences.sort_unstable();
            sequences.dedup();
            sequences.len()
        })
        .sum();
    assert_eq!(4000 - different, count("lost") + count("corrupted"));
}

#[test]
fn bad_usage_is_status_2_and_opens_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("not-made.pcapng");
    let config = dir.path().join("c.toml");
    let port = format!("--port pcap:tx={}", capture.display());
    assert!(fail("", 2).contains("<PORT>"));
    assert!(fail("--port loopback --udp 1.2.3.4:5", 2).contains("cannot be used with"));
    assert!(fail(&format!("{port} --sed 1"), 2).contains("--seed"));
    assert!(fail(&format!("{port} --boards 17"), 2).contains("boards = 17: must be 1 to 16"));
    assert!(fail(&format!("{port} --lost 2"), 2).contains("a probability"));
    assert!(fail(&format!("{port} --rings -1"), 2).contains("mean number of rings"));
    assert!(fail(&format!("{port} --rings=99"), 2).contains("mean number of rings"));
    assert!(fail(&format!("{port} --dst-mac 02:00"), 2).contains("not a MAC address"));
    assert!(fail(&format!("{port} --cores 9999"), 2).contains("cpu 9999"));
    assert!(fail(&format!("{port} --duration 0"), 2).contains("above 0"));
    assert!(fail("--port pacp:tx=x", 2).contains("no driver `pacp`"));
    assert!(fail("--port pcap:txx=x", 2).contains("no option `txx`"));
    assert!(fail("--check --port pcap:txx=x", 2).contains("no option `txx`"));
    assert!(fail(&format!("{port} --cores 0,9999"), 2).contains("cpu 9999"));
    let truth = dir.path().join("truth.toml");
    for wrong in ["pcap:txx=x", "pcap:rx=x", "null:size=9000"] {
        let truth = truth.display();
        let status = if wrong == "pcap:rx=x" { 1 } else { 2 };
        fail(&format!("--port {wrong} --truth-out {truth}"), status);
    }
    assert!(!truth.exists(), "what was not sent has no truth");
    assert!(fail("--udp 10.0.0.1", 2).contains("10.0.0.1"));
    assert!(fail("--udp 127.0.0.1:9 --queues 2", 2).contains("--queues"));
    assert!(fail("pcap:rx=x,tx=y --port null", 2).contains("--port"));
    fs::write(&config, "sede = 1\n").unwrap();
    let with_config = format!("{port} --config {}", config.display());
    assert!(fail(&with_config, 2).contains("unknown field `sede`"));
    assert!(fail(&format!("{port} --config /nowhere.toml"), 2).contains("/nowhere.toml"));
    assert!(!capture.exists(), "the capture was opened");
}

/// As many receive queues as are asked for are opened, or the run is refused.
#[test]
fn decisions_are_received_by_as_many_queues_as_asked_for() {
    let output = succeed("null --events 100 --queues 2 --json");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ledger"]["balanced"], true);
    // Its wires have two ends each, and the boards send by one.
    let refused = fail("loopback --events 100 --queues 2", 2);
    assert!(refused.contains("2 receive and 1 transmit"), "{refused}");
    fail("null --events 100 --queues 65", 2);
}

#[test]
fn a_failed_run_is_status_1() {
    assert!(fail("--port pcap:tx=/nowhere/x.pcapng --events 1", 1).contains("/nowhere/x.pcapng"));
    let dir = tempfile::tempdir().unwrap();
    let port = format!(
        "--port pcap:tx={} --events 100",
        dir.path().join("c").display()
    );
    assert!(fail(&format!("{port} --report /nowhere/r.json"), 1).contains("--report /nowhere/r"));
    assert!(
        !dir.path().join("c").exists(),
        "told before the port was opened"
    );
    assert!(fail(&format!("{port} --truth-out /nowhere/t"), 1).contains("--truth-out /nowhere/t"));
    // An address that is not this host's (TEST-NET-1).
    assert!(fail("--udp 127.0.0.1:9 --src-ip 192.0.2.1", 1).contains("192.0.2.1"));
    if Path::new("/dev/full").exists() {
        let stderr = fail("--port pcap:tx=/dev/full --events 100000", 1);
        assert!(stderr.contains("/dev/full"), "{stderr}");
    }
}

#[test]
fn check_does_nothing_but_say_what_would_be_done() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.pcapng");
    let output = succeed(&format!(
        "--check --port pcap:tx={} --seed 9 --boards 2",
        path.display()
    ));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("seed 9") && text.contains("2 boards") && text.contains("c.pcapng"));
    assert!(!path.exists());
    succeed("--check");
    fail("--check --boards 0", 2);
    let help = String::from_utf8(succeed("--help").stdout).unwrap();
    assert!(help.contains("Exit status") && help.contains("l0-trigger --port pcap:rx="));
}

#[test]
fn the_duration_bounds_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    let flags = "--udp 127.0.0.1:31100 --src-ip 127.0.0.1 --src-port 31000 --listen 31050";
    // No socket listens: each refusal is counted, and none is fatal.
    succeed(&format!(
        "{flags} --events 0 --rate 10000 --duration 0.5 --report {}",
        report.display()
    ));
    let report = json(&report);
    assert_eq!(report["emulator"]["complete"], false);
    assert!(
        report["emulator"]["connection_refused"].as_u64().unwrap() > 0,
        "{report}"
    );
    let sent = report["emulator"]["events_sent"].as_u64().unwrap();
    assert_eq!(
        report["emulator"]["decisions"]["missing"].as_u64(),
        Some(sent)
    );
}

/// A datagram, also where the process was stopped and continued meanwhile: a wait with a limit is
/// not taken up again by the kernel (signal(7)).
fn receive(socket: &UdpSocket, bytes: &mut [u8]) -> (usize, SocketAddr) {
    loop {
        match socket.recv_from(bytes) {
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            received => return received.unwrap(),
        }
    }
}

#[test]
fn a_signal_ends_a_run_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    let flags = "--udp 127.0.0.1:31300 --src-ip 127.0.0.1 --src-port 31200 --listen 31250";
    let trigger = UdpSocket::bind("127.0.0.1:31300").unwrap();
    trigger.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut child = command(&format!(
        "{flags} --events 0 --rate 1000 --report {}",
        report.display()
    ))
    .stdout(Stdio::null())
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    receive(&trigger, &mut [0; 2048]);
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(json(&report)["ledger"]["balanced"], true);
}

#[test]
fn decisions_come_back_through_sockets() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    // Port numbers of this test alone, below those that the system gives to clients.
    let sockets: Vec<_> = (0..2)
        .map(|board| UdpSocket::bind(("127.0.0.1", 31_500 + board)).unwrap())
        .collect();
    for socket in &sockets {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let flags = "--udp 127.0.0.1:31500 --src-ip 127.0.0.1 --src-port 31400 --listen 31450";
    let child = command(&format!(
        "{flags} --boards 2 --events 200 --rate 4000 --arrival regular --corrupted 0.3 --report {}",
        report.display()
    ))
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();

    // Decides each event by what board 0 says, rings or not.
    let (mut frames, mut refused, mut decided) = (0, 0, 0);
    let (mut bytes, mut hits) = ([0; 2048], [Hit::default(); MAX_HITS]);
    for board in 0..2u8 {
        for _ in 0..7 {
            let (len, from) = receive(&sockets[usize::from(board)], &mut bytes);
            assert_eq!(
                from.to_string(),
                format!("127.0.0.1:{}", 31_400 + u16::from(board))
            );
            frames += 1;
            let Ok(frame) = HitsFrame::parse(&bytes[..len]) else {
                refused += 1;
                continue;
            };
            assert_eq!(frame.sub_id(), board);
            if board == 0 {
                let mut events = frame.events();
                let mut writer = MtpWriter::new([0; MAX_PACKET], SOURCE_RICH, 0).unwrap();
                while let Some((timestamp, _)) = events.next_into(&mut hits) {
                    let id = PrimitiveId {
                        accepted: true,
                        complete: true,
                        rings: 1,
                        ..PrimitiveId::default()
                    };
                    writer
                        .push(Primitive {
                            id: id.to_bits(),
                            timestamp: timestamp as u32,
                            fine: 0,
                        })
                        .unwrap();
                    decided += 1;
                }
                let (bytes, len) = writer.finish();
                sockets[0]
                    .send_to(&bytes[..len], "127.0.0.1:31450")
                    .unwrap();
            }
        }
    }
    sockets[0]
        .send_to(b"not a packet of decisions", "127.0.0.1:31450")
        .unwrap();

    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report = json(&report);
    let emulator = &report["emulator"];
    assert_eq!(emulator["frames_sent"], frames);
    assert_eq!(emulator["faults"]["corrupted"], refused);
    assert_eq!(emulator["decisions"]["decided"], decided);
    assert_eq!(emulator["decisions"]["missing"], 200 - decided);
    assert_eq!(report["ledger"]["dropped"]["malformed"], 1);
    assert_eq!(report["ledger"]["balanced"], true);
}
