//! Announcements that are lost, by a clock of the test's own.

use std::net::Ipv4Addr;

use pollux_images::formats::Layout;
use pollux_mempool::region::MemoryRegion;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::net::MacAddr;
use pollux_pmd::{Port, PortConfig, Registry, Started, StartedPort};
use pollux_rdma::roce::{RoceEndpoint, RoceLoop, RoceOptions};
use pollux_rdma::{Access, Endpoint, Key, Memory, PathOptions, QpKind, QpOptions, Receive};

use super::*;

/// A step of the clock.
const STEP: Ns = Ns(100_000);

/// A lane, and its receiver.
struct Rig {
    lane: Lane,
    line: Buffer,
    receiver: QueuePair,
    counter: RemoteBuffer,
    loops: [RoceLoop; 2],
    now: Ns,
    _endpoints: [Endpoint; 2],
    _buffer: Buffer,
    _port: Port<Started>,
}

fn buffer(endpoint: &mut Endpoint, bytes: usize) -> Buffer {
    let memory = Memory::new(MemoryRegion::builder(bytes).build().unwrap());
    endpoint
        .register_buffer(&memory, 0..bytes, Access::WRITE)
        .unwrap()
}

impl Rig {
    /// Stacks of one image, for two buffers. The receiver is ready.
    fn new() -> Self {
        let pool = Mempool::new(PoolConfig {
            buffers: 2048,
            data_room: 4352,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let port = Registry::builtin().open("loopback").unwrap();
        let offered = port.capabilities();
        let queues = PortConfig::new(pool.clone()).rx_queues(2).tx_queues(2);
        let StartedPort {
            port,
            mut rx,
            mut tx,
        } = port.configure(queues).unwrap().start().unwrap();
        let ends = [
            (rx.pop().unwrap(), tx.remove(0)),
            (rx.pop().unwrap(), tx.remove(0)),
        ];
        let mut last = 0;
        let [mut source, mut sink] = ends.map(|queues| {
            last += 1;
            let options = RoceOptions {
                mac: Some(MacAddr([2, 0, 0, 0, 0, last])),
                ..RoceOptions::new(Ipv4Addr::new(10, 0, 0, last))
            };
            let cache = pool.cache(64).unwrap();
            let (control, roce) = RoceEndpoint::new(&options, &offered, queues, cache).unwrap();
            (control.endpoint(), roce)
        });
        let unreliable = QpOptions {
            kind: QpKind::Unreliable,
            ..QpOptions::default()
        };
        let qp = source.0.create_queue_pair(&unreliable).unwrap();
        let receiver = sink.0.create_queue_pair(&unreliable).unwrap();
        let path = PathOptions::default();
        source.0.connect(&qp, &receiver.address(), &path).unwrap();
        sink.0.connect(&receiver, &qp.address(), &path).unwrap();
        let layout = StackLayout::new(&Layout::jungfrau(1, 1).unwrap(), 1);
        let memory = buffer(&mut sink.0, 2 * layout.bytes());
        let buffers = [0, layout.bytes() as u64].map(|at| memory.remote().at(at));
        let taken = buffer(&mut source.0, size_of::<u32>());
        prepare(&taken);
        let counter = taken.remote();
        let line = buffer(&mut source.0, layout.line_bytes());
        let lane = Lane::new(qp, taken, layout, buffers.to_vec(), true);
        let mut rig = Self {
            lane,
            line,
            receiver,
            counter,
            loops: [source.1, sink.1],
            now: Ns(0),
            _endpoints: [source.0, sink.0],
            _buffer: memory,
            _port: port,
        };
        rig.answer(0);
        rig
    }

    /// The receiver says how many stacks it has taken.
    fn answer(&mut self, taken: u32) {
        let put = Put {
            cookie: 0,
            payload: Payload::Immediate(&taken.to_le_bytes()),
            to: self.counter,
            immediate: None,
        };
        self.receiver.put(put).unwrap();
        for _ in 0..8 {
            let to = Local {
                key: Key(0),
                offset: 0,
                len: 0,
            };
            let _ = self.receiver.post_receive(Receive { cookie: 0, to });
        }
        self.receiver.doorbell();
        self.step();
        assert!(self.lane.is_ready());
    }

    /// Both ends do all that they have to do, at a time; announcements that have come.
    fn step(&mut self) -> Vec<u32> {
        self.now = self.now + STEP;
        for _ in 0..200 {
            self.loops.iter_mut().for_each(|roce| {
                roce.poll(self.now);
            });
            self.lane.poll(self.now);
        }
        let events = std::iter::from_fn(|| self.receiver.poll_event());
        let announced = events.filter_map(|event| match event {
            Event::Received(received) => received.immediate,
            _ => None,
        });
        announced.collect()
    }

    /// Writes a line of a frame.
    fn write(&mut self, frame: u64, line: usize) {
        let Place::Image(image) = self.lane.place(frame) else {
            panic!("no buffer")
        };
        let bytes = self.line.len() as u32;
        assert!(self.lane.has_room() && self.lane.put(image, line, self.line.part(0, bytes)));
        self.lane.doorbell();
    }
}

/// After 5 ms without an answer, whatever else is written meanwhile; and after each 5 ms more.
#[test]
fn an_announcement_is_repeated_among_the_lines_of_the_next_stack() {
    let mut rig = Rig::new();
    let lines = rig.lane.layout.lines();
    let mut announced = Vec::new();
    for line in 0..lines {
        rig.write(0, line);
        announced.extend(rig.step());
    }
    assert_eq!(announced, [0]);
    let from = rig.now;
    let mut times = Vec::new();
    for line in 0..lines {
        rig.write(1, line);
        let seen = rig.step();
        if line + 1 < lines {
            times.extend(seen.iter().map(|&stack| (stack, rig.now - from)));
        } else {
            assert_eq!(seen, [1]);
        }
    }
    // The steps are those in which all that is due is done.
    let due = |n: u64| (0, Ns(n * (REPEAT.0 + STEP.0)));
    assert_eq!(times, [due(1), due(2)]);
    assert_eq!(rig.lane.counts().repeated, 2);
    // An answer to one leaves the other without one.
    let from = rig.now;
    rig.answer(1);
    let mut times = Vec::new();
    while rig.now - from < Ns(3 * REPEAT.0) {
        let seen = rig.step();
        times.extend(seen.iter().map(|&stack| (stack, rig.now - from)));
    }
    let after = |n: u64| (1, Ns(STEP.0 + n * (REPEAT.0 + STEP.0)));
    assert_eq!(times, [after(1), after(2)]);
    rig.answer(2);
    for _ in 0..3 * REPEAT.0 / STEP.0 {
        assert!(rig.step().is_empty());
    }
}
