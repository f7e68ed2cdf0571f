//! A peer in a process of its own, over a cable between interfaces of the kernel, which is killed.

use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use pollux_mempool::time::Ns;
use pollux_pmd_testkit::netns::{Namespace, PATIENCE};
use pollux_rdma::exchange::{Channel, Description, Offered};
use pollux_rdma::{
    Access, Buffer, Event, Get, Mtu, PathOptions, Payload, Put, QpAddress, QpOptions, QueuePair,
    RemoteBuffer, Status,
};

use crate::rig::{Host, memory, path, port_link};
use crate::wire::{Medium, Veth, Wire};

/// The socket of [`peer`]; without it, that returns at once.
const SOCKET: &str = "POLLUX_TEST_ROCE";
const BYTES: u32 = 20_000;

/// The other process gets no CPU for a while where the machine is busy: it is given up after a second.
fn options() -> PathOptions {
    PathOptions {
        timeout: Veth::TIMEOUT + 2,
        ..path(Mtu::B1024)
    }
}

/// A queue pair, and the other end's memory.
struct Traffic {
    qp: QueuePair,
    own: Buffer,
    remote: RemoteBuffer,
    posted: u64,
    done: u64,
}

impl Traffic {
    /// A PUT or a GET; up to eight at a time.
    fn post(&mut self) {
        while self.posted - self.done < 8 {
            let (cookie, part, remote) = (self.posted, self.own.part(0, BYTES), self.remote);
            if cookie.is_multiple_of(2) {
                let (payload, immediate) = (Payload::Indirect(part), None);
                let put = Put {
                    cookie,
                    payload,
                    to: remote,
                    immediate,
                };
                self.qp.put(put).unwrap();
            } else {
                let (from, to) = (remote, part);
                self.qp.get(Get { cookie, from, to }).unwrap();
            }
            self.posted += 1;
        }
        self.qp.doorbell();
    }

    /// Takes events of requests that are done with this status, in order.
    fn take(&mut self, status: Status) -> Option<Event> {
        loop {
            match self.qp.poll_event() {
                Some(Event::Done(event)) if event.status == status => {
                    assert_eq!(event.cookie, self.done);
                    self.done += 1;
                }
                other => return other,
            }
        }
    }
}

fn connected(
    host: &mut Host,
    own: Buffer,
    qp: QueuePair,
    (peer, remote): (QpAddress, RemoteBuffer),
) -> Traffic {
    host.endpoint.connect(&qp, &peer, &options()).unwrap();
    Traffic {
        qp,
        own,
        remote,
        posted: 0,
        done: 0,
    }
}

/// Registers memory, makes a queue pair, and sends its address to the other end of the stream.
fn exchange(host: &mut Host, stream: UnixStream) -> Traffic {
    let own = host.register(&memory(BYTES as usize), Access::ALL);
    let qp = host.endpoint.create_queue_pair(&QpOptions::default());
    let qp = qp.unwrap();
    let ours = Description {
        qp: qp.address(),
        kind: qp.kind(),
        mtu: options().mtu,
        buffers: vec![Offered {
            name: "all".into(),
            buffer: own.remote(),
            bytes: own.len() as u64,
            access: Access::ALL,
        }],
    };
    let mut channel = Channel::new(stream, PATIENCE);
    let theirs = ours.exchange(&mut channel).unwrap();
    let peer = (theirs.qp, theirs.buffer("all").unwrap().buffer);
    connected(host, own, qp, peer)
}

/// Not a test: the other process. Answers until it is killed.
#[test]
fn peer() {
    let Ok(path) = std::env::var(SOCKET) else {
        return;
    };
    let (link, queues) = port_link("af_packet:vb");
    let mut host = Host::new(2, &link, queues);
    let _traffic = exchange(&mut host, UnixStream::connect(path).unwrap());
    let began = Instant::now();
    while began.elapsed() < 2 * PATIENCE {
        host.poll.poll(Ns(began.elapsed().as_nanos() as u64));
        std::thread::yield_now();
    }
}

/// A process that runs [`peer`].
struct Process(Child);

impl Process {
    /// In a namespace; and the stream to it.
    fn start(namespace: &Namespace) -> (Self, UnixStream) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut command = Command::new("ip");
        let command = command.args(["netns", "exec", namespace.name()]);
        let child = command
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "killed::peer"])
            .env(SOCKET, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (stream, _) = listener.accept().unwrap();
        (Self(child), stream)
    }

    /// SIGKILL, and its end.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Its queue pair fails when the retries are used up, and no other does.
#[test]
fn a_process_that_is_killed_is_given_up_and_its_neighbours_go_on() {
    let Some(veth) = Veth::new() else {
        return;
    };
    // The second end is the neighbour, and the process a third one, on the interface of the second.
    let mut wire = Wire::new(veth);
    let [a, b] = wire.connect();
    let [here, there] = [0, 1].map(|n| {
        let all = memory(BYTES as usize);
        wire.ends[n].host.register(&all, Access::ALL)
    });
    let mut neighbour = Traffic {
        qp: a,
        own: here,
        remote: there.remote(),
        posted: 0,
        done: 0,
    };
    for round in 1..4 {
        let (mut process, stream) = Process::start(&wire.medium.cable.b);
        let mut traffic = exchange(&mut wire.ends[0].host, stream);
        let began = Instant::now();
        let mut turn = |traffic: &mut Traffic, posts: bool| {
            assert!(began.elapsed() < PATIENCE, "it hangs");
            neighbour.post();
            if posts {
                traffic.post();
            }
            wire.run(1, &[0, 1]);
            assert_eq!(neighbour.take(Status::Ok), None);
            neighbour.done
        };
        while traffic.done < 10 * round {
            turn(&mut traffic, true);
            assert_eq!(traffic.take(Status::Ok), None);
        }
        process.kill();
        let before = turn(&mut traffic, true);
        let mut other_than = |traffic: &mut Traffic, status| loop {
            if let Some(event) = traffic.take(status) {
                return event;
            }
            turn(traffic, false);
        };
        // The request that is given up, the failure, and the others.
        let given_up = other_than(&mut traffic, Status::Ok);
        assert!(
            matches!(given_up, Event::Done(done) if (done.status, done.cookie) == (Status::RetryExceeded, traffic.done)),
            "{given_up:?}"
        );
        traffic.done += 1;
        let failed = other_than(&mut traffic, Status::Flushed);
        assert!(
            matches!(failed, Event::Failed(failed) if failed.status == Status::RetryExceeded),
            "{failed:?}"
        );
        while traffic.done < traffic.posted {
            assert_eq!(traffic.take(Status::Flushed), None);
            turn(&mut traffic, false);
        }
        // Meanwhile and afterwards.
        let meanwhile = turn(&mut traffic, false);
        assert!(meanwhile > before, "the neighbour stood still");
        while turn(&mut traffic, false) < meanwhile + 20 {}
    }
    drop((neighbour, b, there));
    wire.stop();
}
