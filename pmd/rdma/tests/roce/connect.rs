//! Queue pairs that the connection manager connects, over datagrams of queue pair 1.

use std::thread;
use std::time::Duration;

use pollux_rdma::cm::{CmEvent, CmOptions, ConnectionId, ConnectionManager, Offer};
use pollux_rdma::exchange::perftest::{Keys, Over, Report, Role, Session, Test};
use pollux_rdma::exchange::{Channel, Messages};
use pollux_rdma::{
    Access, Event, Get, Key, Message, Mtu, PathOptions, Payload, Psn, QpKind, QpOptions, QueuePair,
    Receive, RemoteBuffer, Status,
};

use crate::raw::{Raw, Scene, Seen};
use crate::rig::{IPS, Pair, memory, path};

const PORT: u16 = 7174;

/// Two hosts with connection managers.
struct Managed {
    pair: Pair,
    managers: [ConnectionManager; 2],
    /// Whether the next datagrams are lost.
    losses: Vec<bool>,
}

impl Managed {
    fn new(losses: &[bool]) -> Self {
        let managers = [IPS[0], IPS[1]];
        let managers = managers.map(|ip| ConnectionManager::new(CmOptions::new(ip)).unwrap());
        let mut this = Self {
            pair: Pair::new(),
            managers,
            losses: losses.to_vec(),
        };
        this.managers[1].listen(PORT);
        this
    }

    /// Passes datagrams between managers and loops, a millisecond long.
    fn step(&mut self) {
        self.pair.now.0 += 1_000_000;
        let now = self.pair.now;
        for (manager, host) in self.managers.iter_mut().zip(&self.pair.hosts) {
            manager.poll(now);
            while let Some(mad) = manager.transmit() {
                if self.losses.pop() != Some(true) {
                    assert!(host.control.send_mad(&mad));
                }
            }
        }
        for _ in 0..20 {
            self.pair.step();
        }
        for (manager, host) in self.managers.iter_mut().zip(&self.pair.hosts) {
            while let Some(mad) = host.control.receive_mad() {
                manager.receive(&mad, now);
            }
        }
    }

    /// Waits for an event of a manager.
    fn event(&mut self, host: usize) -> CmEvent {
        for _ in 0..40_000 {
            if let Some(event) = self.managers[host].event() {
                return event;
            }
            self.step();
        }
        panic!("no event");
    }

    fn queue_pair(&mut self, host: usize) -> (QueuePair, Offer) {
        let endpoint = &mut self.pair.hosts[host].endpoint;
        let qp = endpoint.create_queue_pair(&QpOptions::default()).unwrap();
        let offer = Offer {
            qp: qp.number(),
            path: PathOptions {
                gets: 2,
                ..path(Mtu::B1024)
            },
            answers: 16,
        };
        (qp, offer)
    }

    /// A connection of two new queue pairs.
    fn connect(&mut self) -> ([QueuePair; 2], [ConnectionId; 2]) {
        let ((a, ours), (b, theirs)) = (self.queue_pair(0), self.queue_pair(1));
        let now = self.pair.now;
        let id = self.managers[0]
            .connect(IPS[1], PORT, &ours, &[], now)
            .unwrap();
        let CmEvent::Requested {
            id: asked, peer, ..
        } = self.event(1)
        else {
            panic!("no request");
        };
        assert_eq!(peer, IPS[0]);
        let agreed = self.managers[1].accept(asked, &theirs, &[]).unwrap();
        let endpoint = &mut self.pair.hosts[1].endpoint;
        endpoint.connect(&b, &agreed.peer, &agreed.path).unwrap();
        let now = self.pair.now;
        self.managers[1].confirm(asked, now).unwrap();
        let CmEvent::Accepted { agreed, .. } = self.event(0) else {
            panic!("no answer");
        };
        let endpoint = &mut self.pair.hosts[0].endpoint;
        endpoint.connect(&a, &agreed.peer, &agreed.path).unwrap();
        let now = self.pair.now;
        self.managers[0].confirm(id, now).unwrap();
        assert_eq!(self.event(1), CmEvent::Established { id: asked });
        ([a, b], [id, asked])
    }
}

/// Messages and GETs of either end, with the sequence numbers that the other end has chosen.
fn converse(pair: &mut Pair, qps: &mut [QueuePair; 2]) {
    let memories = [memory(65536), memory(65536)];
    let buffers = [0, 1].map(|n| pair.hosts[n].register(&memories[n], Access::ALL));
    buffers[1].write(0, &[7; 5000]).unwrap();
    for n in [0, 1] {
        let [from, to] = [n, 1 - n];
        let receive = Receive {
            cookie: 1,
            to: buffers[to].part(40000, 64),
        };
        qps[to].post_receive(receive).unwrap();
        qps[to].doorbell();
        let message = Message {
            cookie: 2,
            payload: Payload::Immediate(b"hello"),
            immediate: None,
        };
        qps[from].send(message).unwrap();
        qps[from].doorbell();
        let received = pair.event(&mut qps[to]);
        assert!(matches!(received, Event::Received(received) if received.bytes == 5));
        assert!(
            matches!(pair.event(&mut qps[from]), Event::Done(done) if done.status == Status::Ok)
        );
    }
    // More than may be in flight.
    for n in 0..6 {
        let get = Get {
            cookie: n,
            from: buffers[1].remote(),
            to: buffers[0].part(n * 5000, 5000),
        };
        qps[0].get(get).unwrap();
    }
    qps[0].doorbell();
    for n in 0..6 {
        let done = pair.event(&mut qps[0]);
        assert!(matches!(done, Event::Done(done) if done.cookie == n && done.status == Status::Ok));
    }
    let mut read = [0; 5000];
    buffers[0].read(25000, &mut read).unwrap();
    assert_eq!(read, [7; 5000]);
}

#[test]
fn the_connection_manager_connects_queue_pairs() {
    let mut managed = Managed::new(&[]);
    let (mut qps, ids) = managed.connect();
    converse(&mut managed.pair, &mut qps);
    let now = managed.pair.now;
    managed.managers[0].disconnect(ids[0], now).unwrap();
    for n in [0, 1] {
        assert_eq!(managed.event(n), CmEvent::Disconnected { id: ids[n] });
    }
    drop(qps);
    // A second connection, of new queue pairs.
    let (mut qps, _) = managed.connect();
    converse(&mut managed.pair, &mut qps);
    drop(qps);
    managed.pair.stop();
}

#[test]
fn the_connection_manager_connects_over_losses() {
    // From the back: the first REQ, and every other datagram after it.
    let mut managed = Managed::new(&[
        false, true, false, true, false, true, false, true, false, true,
    ]);
    let (mut qps, _) = managed.connect();
    converse(&mut managed.pair, &mut qps);
    drop(qps);
    managed.pair.stop();
}

/// perftest's exchange as with option -R, both ends of this crate.
#[test]
fn an_exchange_passes_over_a_queue_pair() {
    const PATIENCE: Duration = Duration::from_secs(30);
    let mut pair = Pair::new();
    let qps = [0, 1].map(|n| pair.hosts[n].queue_pair(QpKind::Reliable, 17 + n as u32, 5));
    let addresses = qps.each_ref().map(QueuePair::address);
    pair.join(&qps, &path(Mtu::B1024));
    let mut number = 0..2;
    let streams = qps.map(|qp| {
        let host = &mut pair.hosts[number.next().unwrap()];
        Messages::new(&mut host.endpoint, qp).unwrap()
    });
    let keys = addresses.map(|qp| Keys {
        qp,
        reads: 4,
        buffer: RemoteBuffer {
            address: 1 << 40,
            key: Key(qp.number.get()),
        },
    });
    let [client, server] = streams;
    thread::scope(|scope| {
        let ends = [(client, Role::Client), (server, Role::Server)].map(|(stream, role)| {
            scope.spawn(move || {
                let own = keys[role as usize];
                let channel = Channel::new(stream, PATIENCE);
                let (mut session, common) =
                    Session::open(channel, Test::WriteBw, role, Over::QueuePair, Mtu::B4096)
                        .unwrap();
                assert_eq!(common.mtu, Mtu::B4096);
                session.around(|| Ok(())).unwrap();
                let ready = session.connect(&own, |_| Ok(())).unwrap();
                assert_eq!(ready.peer().buffer, keys[1 - role as usize].buffer);
                let report = Report {
                    bytes: u64::from(own.buffer.key.0),
                    ..Report::default()
                };
                ready.finish(&report, PATIENCE).unwrap().unwrap().bytes
            })
        });
        while !ends.iter().all(thread::ScopedJoinHandle::is_finished) {
            pair.step();
        }
        assert_eq!(ends.map(|end| end.join().unwrap()), [18, 17]);
    });
    // A peer that says nothing is left at the deadline.
    let qp = pair.hosts[0].queue_pair(QpKind::Reliable, 19, 5);
    let stream = Messages::new(&mut pair.hosts[0].endpoint, qp).unwrap();
    let channel = Channel::new(stream, Duration::from_millis(30));
    let opened = Session::open(
        channel,
        Test::WriteBw,
        Role::Server,
        Over::QueuePair,
        Mtu::B4096,
    );
    assert!(opened.unwrap_err().to_string().contains("in time"));
    pair.stop();
}

/// The path's own numbers, on the wire.
#[test]
fn gets_in_flight_and_the_first_number_are_those_of_the_path() {
    let options = PathOptions {
        gets: 2,
        first_psn: Some(Psn::new(0xff_ffff)),
        ..path(Mtu::B256)
    };
    let mut scene = Scene::new(QpKind::Reliable, Access::LOCAL, &options);
    let from = RemoteBuffer {
        address: 1 << 40,
        key: Key(3),
    };
    for cookie in 0..4 {
        let to = scene.buffer.part(0, 100);
        scene.qp.get(Get { cookie, from, to }).unwrap();
    }
    scene.qp.doorbell();
    let psns = |seen: Vec<Seen>| seen.iter().map(|seen| seen.psn).collect::<Vec<_>>();
    assert_eq!(psns(scene.poll()), [0xff_ffff, 0]);
    assert!(scene.poll().is_empty());
    let response = Raw::new(0x10, 0xff_ffff).aeth(0x1f).data(&[1; 100]);
    assert_eq!(psns(scene.exchange(&[response])), [1]);
    scene.stop();
}
