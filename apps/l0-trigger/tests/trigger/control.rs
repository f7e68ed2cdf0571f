//! Runs that are started and stopped at a socket.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use crate::common::wire::Wire;
use crate::common::{AT_REST, Folder, Running, alone, number, run, start};
use serde_json::{Value, json};

struct Client(BufReader<UnixStream>);

impl Client {
    fn new(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        Self(BufReader::new(stream))
    }

    fn send(&mut self, line: &str) -> Value {
        self.0.get_mut().write_all(line.as_bytes()).unwrap();
        self.read()
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("answer `{line}`"))
    }

    fn ask(&mut self, command: &str) -> Value {
        self.send(&format!("{{\"version\":1,\"command\":\"{command}\"}}\n"))
    }

    fn start(&mut self, run: u32) -> Value {
        let request = json!({"version": 1, "command": "start", "run": run});
        self.send(&format!("{request}\n"))
    }

    /// Asks for the state until it is as wanted.
    fn wait(&mut self, running: &mut Running, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut status = Value::Null;
        running.wait_until(what, |_| {
            status = self.ask("status");
            is(&status)
        });
        status
    }
}

/// The program, which waits for runs of the demonstration.
fn idle(folder: &Folder, arguments: &[&str]) -> (Running, Client) {
    let socket = folder.arg("control");
    let all = [&["--control", &socket, "--events", "50000000"], arguments].concat();
    let mut running = start(&all);
    running.wait_for_message("runs are controlled at");
    (running, Client::new(&folder.path("control")))
}

#[test]
fn runs_are_started_and_stopped_one_after_the_other() {
    let _alone = alone();
    let folder = Folder::new();
    let (report, events) = (folder.arg("r{run}.json"), folder.arg("r{run}.events"));
    let files = ["--report", &report, "--events-out", &events];
    let (mut running, mut client) = idle(&folder, &files);
    let found = fs::metadata(folder.path("control")).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let status = client.ask("status");
    assert_eq!(
        (&status["ok"], &status["state"]),
        (&true.into(), &"idle".into())
    );
    assert!(status["run"].is_null() && status["last"].is_null());
    assert!(
        client.ask("stop")["error"]
            .as_str()
            .unwrap()
            .contains("no run")
    );
    for n in [7, 8] {
        let begun = client.start(n);
        assert_eq!(
            (&begun["ok"], &begun["run"]),
            (&true.into(), &n.into()),
            "{begun}"
        );
        let status = client.wait(&mut running, "events are built", |status| {
            status["events"]["built"].as_u64() > Some(1000)
        });
        assert_eq!(status["state"], "running");
        let again = client.start(9);
        assert!(
            again["error"]
                .as_str()
                .unwrap()
                .contains(&format!("run {n} has not ended"))
        );
        assert_eq!(client.ask("reload")["ok"], true);
        let stopped = Client::new(&folder.path("control")).ask("stop");
        assert_eq!(stopped["ok"], true);
        let status = client.wait(&mut running, "the end", |status| status["state"] == "idle");
        assert_eq!(status["last"]["run"], n);
        assert_eq!(
            (&status["last"]["ok"], &status["last"]["end"]),
            (&true.into(), &"stopped".into())
        );
        let path = status["last"]["report"].as_str().unwrap();
        let report: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(report["run"], n);
        assert!(number(&report["events"], "built") > 1000);
        let events = fs::read(folder.path(&format!("r{n:04}.events"))).unwrap();
        assert_eq!(events[8..20], [2, 0, 0, 0, 64, 0, 0, 0, n as u8, 0, 0, 0]);
    }
    // What a run has left stays, and the refusal comes before anything is opened.
    let refused = client.start(7);
    assert_eq!(
        (&refused["ok"], &refused["state"]),
        (&false.into(), &"idle".into())
    );
    assert!(
        refused["error"].as_str().unwrap().contains("--force"),
        "{refused}"
    );
    assert_eq!(client.ask("quit")["ok"], true);
    running.wait().expect(0);
    assert!(!folder.path("control").exists());
}

#[test]
fn a_signal_ends_the_run_and_the_program() {
    let _alone = alone();
    let folder = Folder::new();
    let (mut running, mut client) = idle(&folder, &["--report", &folder.arg("r{run}.json")]);
    client.start(1);
    client.wait(&mut running, "a run", |status| status["state"] == "running");
    running.signal("INT");
    running.wait().expect(0);
    let report = fs::read(folder.path("r0001.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["end"], "stopped");
    assert!(!folder.path("control").exists());
}

#[test]
fn a_run_that_cannot_begin_is_told_and_the_next_can() {
    let folder = Folder::new();
    let config = folder.write("l0.toml", "");
    let (mut running, mut client) = idle(&folder, &["--config", &config, "--report", "/dev/null"]);
    folder.write("l0.toml", "[memory]\nbuffers = 0\n");
    client.start(1);
    let status = client.wait(&mut running, "the end", |status| status["state"] == "idle");
    assert_eq!(status["last"]["ok"], false);
    let error = status["last"]["error"].as_str().unwrap();
    assert!(error.contains("buffers"), "{error}");
    folder.write("l0.toml", "");
    client.start(2);
    client.wait(&mut running, "a run", |status| status["state"] == "running");
    client.ask("quit");
    running.wait().expect(0);
}

#[test]
fn what_is_no_request_is_answered() {
    let folder = Folder::new();
    let (running, mut client) = idle(&folder, &[]);
    for (line, said) in [
        ("\n", "no request"),
        ("start\n", "no request"),
        ("\u{0}\u{1}\n", "no request"),
        ("{\"version\":2,\"command\":\"status\"}\n", "version 2"),
        ("{\"command\":\"status\"}\n", "version"),
        ("{\"version\":1,\"command\":\"fly\"}\n", "fly"),
        ("{\"version\":1,\"command\":\"start\"}\n", "needs a `run`"),
        ("{\"version\":1,\"command\":\"start\",\"run\":-1}\n", "-1"),
        (
            "{\"version\":1,\"command\":\"stop\",\"run\":1}\n",
            "`start` alone",
        ),
        ("{\"version\":1,\"command\":\"status\",\"x\":1}\n", "`x`"),
        ("{\"version\":1,\"command\":\"reload\"}\n", "no run"),
    ] {
        let answer = client.send(line);
        assert_eq!(
            (&answer["ok"], &answer["version"]),
            (&false.into(), &1.into())
        );
        assert!(
            answer["error"].as_str().unwrap().contains(said),
            "{line}: {answer}"
        );
    }
    // Several at once, and the last without its end.
    let two = "{\"version\":1,\"command\":\"status\"}\n{\"version\":1,\"command\":\"status\"}";
    assert_eq!(client.send(two)["ok"], true);
    client
        .0
        .get_ref()
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    assert_eq!(client.read()["ok"], true);
    // A line without an end is refused when it is too long, and its client sent away.
    let mut long = Client::new(&folder.path("control"));
    let answer = long.send(&"x".repeat(4097));
    assert!(
        answer["error"].as_str().unwrap().contains("4096"),
        "{answer}"
    );
    assert_eq!(long.0.read(&mut [0]).unwrap(), 0);
    running.signal("TERM");
    running.wait().expect(0);
}

/// Clients that ask and never read, and more of them than there are places.
#[test]
fn clients_that_do_not_read_hold_nothing_up() {
    let _alone = alone();
    let folder = Folder::new();
    let wire = Wire::new(&folder);
    let port = wire.port();
    let arguments = [&["--port", &port][..], &AT_REST].concat();
    let (mut running, mut client) = idle(&folder, &arguments);
    client.start(1);
    let path = folder.path("control");
    let mut deaf: Vec<_> = (0..15)
        .map(|_| UnixStream::connect(&path).unwrap())
        .collect();
    for stream in &mut deaf {
        stream.set_nonblocking(true).unwrap();
        let line = b"{\"version\":1,\"command\":\"status\"}\n".repeat(1000);
        // Until the other end has no more room for it.
        while stream.write(&line).is_ok() {}
    }
    let mut late = Client::new(&path);
    let told = late.read();
    assert!(
        told["error"].as_str().unwrap().contains("16 clients"),
        "{told}"
    );
    wire.send(2000);
    client.wait(&mut running, "events go on", |status| {
        status["events"]["built"].as_u64() > Some(1000)
    });
    // Those are sent away after a while, and there is room again.
    running.wait_until("there is room again", |_| {
        let mut stream = UnixStream::connect(&path).unwrap();
        let _ = stream.write_all(b"{\"version\":1,\"command\":\"status\"}\n");
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line);
        line.contains("\"ok\":true")
    });
    client.ask("quit");
    running.wait().expect(0);
}

#[test]
fn a_socket_that_is_in_use_is_refused_and_a_stale_one_replaced() {
    let folder = Folder::new();
    let (path, shown) = (folder.path("control"), folder.arg("control"));
    let other = UnixListener::bind(&path).unwrap();
    let refused = || run(&["--control", &shown]).expect(1);
    refused().expect_message(&["--control", &shown, "another program listens"]);
    assert!(path.exists());
    drop(other);
    // It is stale now.
    let (running, mut client) = idle(&folder, &[]);
    assert_eq!(client.ask("status")["state"], "idle");
    refused().expect_message(&["another program listens"]);
    assert_eq!(client.ask("status")["state"], "idle");
    // Another's, at the end, is left alone.
    fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    running.signal("INT");
    running.wait().expect(0);
    assert!(path.exists());
    fs::remove_file(&path).unwrap();
    folder.write("control", "not a socket");
    refused().expect_message(&["is not a socket"]);
    run(&["--control", &shown, "--run", "1"]).expect(2);
}

/// Its file would be that of the run before.
#[test]
fn a_run_that_fails_at_its_start_has_no_report() {
    let _alone = alone();
    let folder = Folder::new();
    let (report, config) = (folder.arg("last.json"), folder.write("trigger.toml", ""));
    let files = ["--report", &report, "--force", "--config", &config];
    let (mut running, mut client) = idle(&folder, &files);
    client.start(7);
    client.wait(&mut running, "events are built", |status| {
        status["events"]["built"].as_u64() > Some(0)
    });
    client.ask("stop");
    let status = client.wait(&mut running, "the end", |status| status["state"] == "idle");
    assert_eq!(status["last"]["report"], report.as_str());
    fs::write(&config, "[nonsense]").unwrap();
    client.start(8);
    let status = client.wait(&mut running, "the failure", |status| {
        status["last"]["run"] == 8
    });
    assert_eq!(status["last"]["ok"], false, "{status}");
    assert!(status["last"]["report"].is_null(), "{status}");
    let left: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    assert_eq!(left["run"], 7);
    client.ask("quit");
    running.wait().expect(0);
}
