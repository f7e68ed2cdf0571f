//! Shared memory with a peer in a process of its own, which is killed or stopped at any moment.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pollux_rdma::{
    Access, Buffer, ConnectError, Endpoint, Event, Failed, Key, PathOptions, Payload, Psn,
    QpAddress, QpNumber, QpOptions, RemoteBuffer, Status, Wait, shm,
};

use crate::rig::{LONG, Side, memory};

/// The socket of [`peer`]; without it, that returns at once.
const SOCKET: &str = "POLLUX_TEST_SHM";
const BYTES: usize = 1 << 20;
const PART: u32 = 100_000;

/// An end of a connection between processes.
struct End {
    side: Side,
    endpoint: Endpoint,
    monitor: shm::Monitor,
    buffer: Buffer,
    remote: RemoteBuffer,
}

impl End {
    /// Links, registers and connects; the second socket carries what each end has to know.
    fn new(link: UnixStream, talk: &UnixStream) -> Self {
        let (mut endpoint, monitor) = shm::endpoint(link, 2).unwrap();
        let all = memory(BYTES);
        let buffer = endpoint
            .register_buffer(&all, 0..BYTES, Access::ALL)
            .unwrap();
        let qp = endpoint.create_queue_pair(&QpOptions::default()).unwrap();
        let (remote, number) = (buffer.remote(), qp.number().get());
        let own = format!("{number} {} {}\n", remote.address, remote.key.0);
        (&*talk).write_all(own.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(talk).read_line(&mut line).unwrap();
        let mut words = line
            .split_whitespace()
            .map(|word| word.parse::<u64>().unwrap());
        let mut word = || words.next().unwrap();
        let peer = QpAddress {
            number: QpNumber::new(word() as u32).unwrap(),
            psn: Psn::default(),
            ..qp.address()
        };
        let (address, key) = (word(), Key(word() as u32));
        let remote = RemoteBuffer { address, key };
        endpoint
            .connect(&qp, &peer, &PathOptions::default())
            .unwrap();
        let side = Side::new(qp);
        Self {
            side,
            endpoint,
            monitor,
            buffer,
            remote,
        }
    }

    /// A PUT, a GET and messages, as many as fit; whether all did.
    fn post(&mut self, posted: &mut u64) -> bool {
        use pollux_rdma::{Get, Message, Put};
        let (cookie, part) = (*posted, self.buffer.part(0, PART));
        let payload = Payload::Indirect(part);
        let (to, immediate) = (self.remote, Some(1));
        let qp = &mut self.side.qp;
        let is_posted = match cookie % 4 {
            0 => qp
                .put(Put {
                    cookie,
                    payload,
                    to,
                    immediate,
                })
                .is_ok(),
            1 => qp
                .get(Get {
                    cookie,
                    from: to,
                    to: part,
                })
                .is_ok(),
            _ => qp
                .send(Message {
                    cookie,
                    payload,
                    immediate,
                })
                .is_ok(),
        };
        *posted += u64::from(is_posted);
        is_posted
    }

    fn receive(&mut self) {
        self.side.receive(0, self.buffer.part(0, BYTES as u32));
    }
}

/// Not a test: the other process. Sends all it can, until it is killed.
#[test]
fn peer() {
    let Ok(path) = std::env::var(SOCKET) else {
        return;
    };
    let link = UnixStream::connect(&path).unwrap();
    let talk = UnixStream::connect(&path).unwrap();
    let mut end = End::new(link, &talk);
    (0..32).for_each(|_| end.receive());
    let (began, mut posted) = (Instant::now(), 0);
    while began.elapsed() < 2 * LONG {
        while end.post(&mut posted) {}
        end.side.qp.doorbell();
        match end
            .side
            .qp
            .wait_event(Wait::Sleep(Duration::from_millis(1)))
        {
            Some(Event::Received(_)) => end.receive(),
            Some(Event::Failed(_)) => return,
            _ => {}
        }
    }
}

/// A process that runs [`peer`], and this end of the connection to it.
struct Process {
    child: Child,
    end: End,
}

impl Process {
    fn start(name: &str) -> Self {
        let name = format!("pollux-rdma-{}-{name}", std::process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&path).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::peer"])
            .env(SOCKET, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (link, _) = listener.accept().unwrap();
        let (talk, _) = listener.accept().unwrap();
        std::fs::remove_file(&path).unwrap();
        let end = End::new(link, &talk);
        Self { child, end }
    }
}

fn signal(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let status = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(status.success());
}

/// Stops all threads of a process.
fn stop(child: &Child) {
    signal(child, "-STOP");
    let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.trim().starts_with('T')
    };
    let tasks = format!("/proc/{}/task", child.id());
    let start = Instant::now();
    while !std::fs::read_dir(&tasks).unwrap().all(is_stopped) {
        assert!(start.elapsed() < LONG);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_peer_that_is_killed_is_an_event() {
    for round in 0..6 {
        let mut process = Process::start(&format!("killed-{round}"));
        let end = &mut process.end;
        (0..32).for_each(|_| end.receive());
        let (mut posted, mut done, mut received, start) = (0, 0, 0, Instant::now());
        let mut is_killed = false;
        let failed = loop {
            assert!(start.elapsed() < LONG);
            while end.post(&mut posted) {}
            end.side.qp.doorbell();
            match end.side.qp.poll_event() {
                Some(Event::Done(event)) => {
                    assert_eq!((event.cookie, event.status), (done, Status::Ok));
                    done += 1;
                }
                Some(Event::Received(event)) => {
                    assert_eq!(event.status, Status::Ok);
                    received += 1;
                    end.receive();
                }
                Some(Event::Failed(failed)) => break failed,
                None => {}
            }
            // Within traffic both ways.
            if !is_killed && done > 20 * (1 + round) && received > 20 {
                process.child.kill().unwrap();
                is_killed = true;
            }
        };
        let (status, psn) = (Status::PeerGone, Psn::default());
        let qp = end.side.qp.number();
        assert_eq!(failed, Failed { qp, status, psn });
        end.side.take();
        for event in end.side.events.drain(..) {
            match event {
                Event::Done(event) => {
                    assert_eq!((event.cookie, event.status), (done, Status::Flushed));
                    done += 1;
                }
                Event::Received(event) => assert_eq!(event.status, Status::Flushed),
                Event::Failed(failed) => panic!("{failed:?}"),
            }
        }
        assert_eq!(done, posted);
        end.monitor.ledger().check().unwrap();
        assert!(end.monitor.violations().all(|(_, count)| count == 0));
        // It says so to all that comes later.
        let all = memory(4096);
        let refused = end.endpoint.register_buffer(&all, 0..4096, Access::READ);
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("the peer is gone")
        );
        assert!(
            end.endpoint
                .register_buffer(&all, 0..4096, Access::LOCAL)
                .is_ok()
        );
        let path = PathOptions::default();
        let address = end.side.qp.address();
        let refused = end.endpoint.connect(&end.side.qp, &address, &path);
        assert!(matches!(refused, Err(ConnectError::PeerGone)));
    }
}

#[test]
fn the_end_of_a_peer_ends_a_sleep() {
    let mut process = Process::start("asleep");
    let start = Instant::now();
    process.child.kill().unwrap();
    let event = process.end.side.qp.wait_event(Wait::Sleep(LONG));
    assert!(matches!(event, Some(Event::Failed(failed)) if failed.status == Status::PeerGone));
    assert!(start.elapsed() < LONG);
}

#[test]
fn a_peer_that_is_stopped_holds_nothing_up() {
    let mut process = Process::start("stopped");
    stop(&process.child);
    let end = &mut process.end;
    let start = Instant::now();
    let all = memory(BYTES);
    let refused = end.endpoint.register_buffer(&all, 0..BYTES, Access::READ);
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("did not answer"), "{why}");
    // That range could not be withdrawn, nor can one that it has.
    assert_eq!(end.monitor.unacknowledged(), 1);
    let other = end
        .endpoint
        .register_buffer(&all, 0..BYTES, Access::LOCAL)
        .unwrap();
    let shared = std::mem::replace(&mut end.buffer, other);
    end.endpoint.unregister_buffer(shared);
    assert_eq!(end.monitor.unacknowledged(), 2);
    assert!(start.elapsed() < LONG);
    signal(&process.child, "-CONT");
    // It goes on: what it had executed is announced, until it finds that its buffer is gone.
    end.side.receive(0, end.buffer.part(0, PART));
    let start = Instant::now();
    let failed = loop {
        assert!(start.elapsed() < LONG);
        match end
            .side
            .qp
            .wait_event(Wait::Sleep(Duration::from_millis(1)))
        {
            Some(Event::Failed(failed)) => break failed,
            Some(Event::Received(event)) => {
                assert_eq!(event.status, Status::Ok);
                end.side.receive(0, end.buffer.part(0, PART));
            }
            Some(Event::Done(event)) => panic!("{event:?}"),
            None => {}
        }
    };
    assert_eq!(failed.status, Status::RemoteOperation);
}
