//! `pollux rdma serve` and `ping`: what they compare, and how a signal ends them.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use pollux_pmd::lcore::{self, StopFlag};
use pollux_pmd::mempool::region::MemoryRegion;
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::{Clock as _, PortConfig, Registry, StartedPort, TscClock};
use pollux_rdma::exchange::{Channel, pingpong};
use pollux_rdma::roce::{RoceEndpoint, RoceOptions};
use pollux_rdma::{
    Access, Event, Memory, Message, PathOptions, Payload, QpOptions, Receive, Status, Wait,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{json_of, pollux, text};

/// No wait in these tests is longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Two ends of a wire, in a folder.
struct Wire(TempDir);

impl Wire {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, end: &str) -> PathBuf {
        self.0.path().join(end)
    }

    /// The port of an end.
    fn port(&self, own: &str, peer: &str, mac: u8) -> String {
        let [own, peer] = [own, peer].map(|end| self.path(end));
        format!(
            "unix:{},peer={},mac=02:00:00:00:00:{mac:02x}",
            own.display(),
            peer.display()
        )
    }

    /// An end of a program with these options.
    fn start(&self, role: &str, at: &str, options: &str) -> Child {
        let (port, ip) = match role {
            "serve" => (self.port("a", "b", 1), "10.0.0.1"),
            _ => (self.port("b", "a", 2), "10.0.0.2"),
        };
        pollux("rdma")
            .args([
                role,
                &port,
                "--ip",
                ip,
                "--at",
                at,
                "--json",
                "--patience",
                "20",
            ])
            .args(options.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// A server, and the address at which it listens.
    fn serve(&self, at: &str, options: &str) -> (Server, String) {
        let mut child = self.start("serve", at, options);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("ready at ").unwrap().to_owned();
        (Server { child, out }, at)
    }
}

/// A server that is ready: the rest of its output is a report.
struct Server {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn report(mut self, status: i32) -> (Value, String) {
        let report = serde_json::from_reader(&mut self.out).unwrap();
        let output = self.child.wait_with_output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{message}");
        (report, message)
    }
}

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.unwrap().success());
}

fn is_success(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    json_of(output)
}

#[test]
fn two_ends_compare_what_they_receive() {
    // Messages that the server compares, and the client.
    let programs = [
        ("ibv_rc_pingpong", "", 40, 40),
        ("ibv_uc_pingpong", "--kind uc", 40, 40),
        ("ib_send_bw", "", 40, 0),
        ("ib_send_bw", "--cm", 40, 0),
        ("ib_send_lat", "", 40, 40),
        // PUTs overwrite each other.
        ("ib_write_bw", "", 1, 0),
        ("ib_write_lat", "", 40, 40),
        ("ib_read_bw", "", 0, 40),
        ("ib_read_lat", "", 0, 40),
        ("rping", "", 40, 40),
    ];
    std::thread::scope(|scope| {
        for (program, more, at_server, at_client) in programs {
            scope.spawn(move || {
                let wire = Wire::new();
                let options = format!("--as {program} --bytes 9000 --count 40 --timeout 18 {more}");
                let is_managed = program == "rping" || more == "--cm";
                let at = if is_managed {
                    "10.0.0.1:7174"
                } else {
                    "127.0.0.1:0"
                };
                let (server, at) = wire.serve(at, options.trim());
                let client = wire.start("ping", &at, options.trim());
                let client = is_success(&client.wait_with_output().unwrap());
                let (server, _) = server.report(0);
                for (report, checked) in [(&server, at_server), (&client, at_client)] {
                    assert_eq!(report["end"], "complete", "{program}");
                    assert_eq!(report["messages"], 40, "{program}");
                    assert_eq!(report["checked"], checked, "{program}: {report}");
                    assert_eq!(report["ledger"]["balanced"], true, "{program}");
                }
            });
        }
    });
}

/// As `ibv_rc_pingpong`'s client, but for the byte at 70 of its message.
fn send_a_wrong_byte(wire: &Wire, at: SocketAddr) {
    let pool = Mempool::new(PoolConfig {
        buffers: 1024,
        data_room: 5120,
        ..PoolConfig::default()
    })
    .unwrap();
    let registry = Registry::builtin();
    let port = registry.open(&wire.port("b", "a", 2)).unwrap();
    let capabilities = port.capabilities();
    let started = port.configure(PortConfig::new(pool.clone())).unwrap();
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = started.start().unwrap();
    let queues = (rx.pop().unwrap(), tx.pop().unwrap());
    let options = RoceOptions::new(Ipv4Addr::new(10, 0, 0, 2));
    let cache = pool.cache(64).unwrap();
    let (control, mut roce) = RoceEndpoint::new(&options, &capabilities, queues, cache).unwrap();
    let mut endpoint = control.endpoint();
    let stop = StopFlag::new();
    let flag = stop.clone();
    let lcore = lcore::launch("peer", None, move || {
        let clock = TscClock::get();
        let begin = clock.now();
        while !flag.is_set() {
            let _ = roce.poll(clock.to_ns(clock.now().0.wrapping_sub(begin.0)));
            std::thread::yield_now();
        }
        roce
    });
    let memory = Memory::new(MemoryRegion::builder(4096).build().unwrap());
    let buffer = endpoint
        .register_buffer(&memory, 0..4096, Access::LOCAL)
        .unwrap();
    let mut message = [0x7b; 100];
    message[70] = 0x7a;
    buffer.write(0, &message).unwrap();
    let mut qp = endpoint.create_queue_pair(&QpOptions::default()).unwrap();
    let to = buffer.part(1024, 100);
    qp.post_receive(Receive { cookie: 0, to }).unwrap();
    let mut channel = Channel::connect(at, PATIENCE).unwrap();
    let path = PathOptions::default();
    pingpong::client(&mut channel, &qp.address(), |peer| {
        endpoint.connect(&qp, peer, &path)
    })
    .unwrap();
    let payload = Payload::Indirect(buffer.part(0, 100));
    let (cookie, immediate) = (0, None);
    qp.send(Message {
        cookie,
        payload,
        immediate,
    })
    .unwrap();
    qp.doorbell();
    let event = qp.wait_event(Wait::Sleep(PATIENCE));
    assert!(
        matches!(event, Some(Event::Done(done)) if done.status == Status::Ok),
        "{event:?}"
    );
    stop.stop();
    let (rx, tx) = lcore.unwrap().join().unwrap().into_queues();
    port.stop(vec![rx], tx.into_iter().collect()).unwrap();
}

#[test]
fn a_wrong_byte_is_an_error() {
    let wire = Wire::new();
    let options = "--as ibv_rc_pingpong --bytes 100 --count 1";
    let (server, at) = wire.serve("127.0.0.1:0", options);
    send_a_wrong_byte(&wire, at.parse().unwrap());
    let (report, message) = server.report(1);
    assert_eq!(
        (&report["end"], &report["checked"]),
        (&"failed".into(), &0.into())
    );
    assert!(
        message.contains("byte 70 of 100 is 0x7a instead of 0x7b"),
        "{message}"
    );
}

#[test]
fn a_signal_ends_a_wait_in_the_exchange() {
    let wire = Wire::new();
    // For a client.
    for (program, at) in [("ib_send_bw", "127.0.0.1:0"), ("rping", "10.0.0.1:7174")] {
        let (server, _) = wire.serve(at, &format!("--as {program}"));
        interrupt(&server.child);
        let (report, _) = server.report(0);
        assert_eq!(
            (&report["end"], &report["messages"]),
            (&"stopped".into(), &0.into())
        );
    }
    // For the answer of a server.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    for program in ["ibv_rc_pingpong", "ib_write_bw"] {
        let client = wire.start("ping", &at, &format!("--as {program}"));
        let silent = listener.accept().unwrap();
        interrupt(&client);
        let report = is_success(&client.wait_with_output().unwrap());
        assert_eq!(
            (&report["end"], &report["messages"]),
            (&"stopped".into(), &0.into())
        );
        drop(silent);
    }
    assert!(
        !exists(&wire.path("a")) && !exists(&wire.path("b")),
        "a socket was left"
    );
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn a_signal_ends_the_messages() {
    // One end of a pair: to the other one, the end that leaves is a failure.
    for is_client in [true, false] {
        let wire = Wire::new();
        let options = "--as ib_send_lat --bytes 8 --count 100000000";
        let (mut server, at) = wire.serve("127.0.0.1:0", options);
        let mut client = wire.start("ping", &at, options);
        std::thread::sleep(Duration::from_secs(1));
        let report = if is_client {
            interrupt(&client);
            let report = is_success(&client.wait_with_output().unwrap());
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            report
        } else {
            interrupt(&server.child);
            let (report, _) = server.report(0);
            client.kill().unwrap();
            client.wait().unwrap();
            report
        };
        assert_eq!(report["end"], "stopped");
        assert!(
            report["messages"].as_u64().is_some_and(|count| count > 0),
            "{report}"
        );
        assert_eq!(report["messages"], report["checked"]);
        assert_eq!(report["ledger"]["balanced"], true);
    }
}
