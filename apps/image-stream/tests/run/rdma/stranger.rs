//! A source that does what it wants: an endpoint of its own.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pollux_images::stack::{TAKEN, stack_name};
use pollux_mempool::region::MemoryRegion;
use pollux_mempool::time::Ns;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::{Port, PortConfig, Registry, Started, StartedPort};
use pollux_rdma::exchange::{Channel, Description, Offered};
use pollux_rdma::roce::{RoceEndpoint, RoceLoop, RoceOptions};
use pollux_rdma::{
    Access, Buffer, Endpoint, Memory, Message, PathOptions, Payload, Put, QpKind, QpOptions,
    QueuePair, RemoteBuffer,
};

use crate::capture::Capture;

/// Long enough for any machine.
const LONG: Duration = Duration::from_mins(1);

/// Before its end, until all is on its way.
const REST: Duration = Duration::from_millis(200);

/// It is at the socket `s`. Dropping it ends its connection.
pub(super) struct Stranger {
    qp: Option<QueuePair>,
    roce: Option<RoceLoop>,
    port: Option<Port<Started>>,
    taken: Buffer,
    theirs: Description,
    begin: Instant,
    posted: u64,
    done: u64,
    _endpoint: Endpoint,
    _channel: Channel<TcpStream>,
}

impl Stranger {
    pub(super) fn connect(capture: &Capture, to: SocketAddr) -> Self {
        let path = |name| capture.path(name).display().to_string();
        let spec = format!("unix:{},peer={}", path("s"), path("r"));
        let pool = Mempool::new(PoolConfig {
            buffers: 1024,
            data_room: 5120,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let port = Registry::builtin().open(&spec).unwrap();
        let offered = port.capabilities();
        let port = port.configure(PortConfig::new(pool.clone())).unwrap();
        let StartedPort {
            port,
            mut rx,
            mut tx,
        } = port.start().unwrap();
        let queues = (rx.pop().unwrap(), tx.pop().unwrap());
        let options = RoceOptions::new(Ipv4Addr::new(198, 18, 0, 9));
        let cache = pool.cache(64).unwrap();
        let (control, roce) = RoceEndpoint::new(&options, &offered, queues, cache).unwrap();
        let mut endpoint = control.endpoint();
        let memory = Memory::new(MemoryRegion::builder(64).build().unwrap());
        let taken = endpoint
            .register_buffer(&memory, 0..4, Access::WRITE)
            .unwrap();
        taken.write(0, &u32::MAX.to_le_bytes()).unwrap();
        let unreliable = QpOptions {
            kind: QpKind::Unreliable,
            ..QpOptions::default()
        };
        let qp = endpoint.create_queue_pair(&unreliable).unwrap();
        let ours = Description {
            qp: qp.address(),
            kind: qp.kind(),
            mtu: control.mtu(),
            buffers: vec![Offered {
                name: TAKEN.into(),
                buffer: taken.remote(),
                bytes: 4,
                access: Access::WRITE,
            }],
        };
        let mut channel = Channel::connect(to, LONG).unwrap();
        let theirs = ours.exchange(&mut channel).unwrap();
        let path = PathOptions {
            mtu: ours.agree(&theirs).unwrap(),
            ..PathOptions::default()
        };
        endpoint.connect(&qp, &theirs.qp, &path).unwrap();
        let mut stranger = Self {
            qp: Some(qp),
            roce: Some(roce),
            port: Some(port),
            taken,
            theirs,
            begin: Instant::now(),
            posted: 0,
            done: 0,
            _endpoint: endpoint,
            _channel: channel,
        };
        stranger.wait_until_taken(0);
        stranger
    }

    /// Stack buffers of the receiver.
    pub(super) fn buffers(&self) -> usize {
        self.theirs.buffers.len()
    }

    fn poll(&mut self) {
        let now = Ns(self.begin.elapsed().as_nanos() as u64);
        self.roce.as_mut().unwrap().poll(now);
        while self.qp.as_mut().unwrap().poll_event().is_some() {
            self.done += 1;
        }
        assert!(
            self.begin.elapsed() < LONG,
            "{} of {} done",
            self.done,
            self.posted
        );
    }

    /// Sends what was posted.
    fn finish(&mut self) {
        self.posted += 1;
        self.qp.as_mut().unwrap().doorbell();
        while self.done < self.posted {
            self.poll();
        }
    }

    /// Keys of the stack buffers that it was given.
    pub(super) fn keys(&self) -> Vec<RemoteBuffer> {
        let buffers = self.theirs.buffers.iter();
        buffers.map(|offered| offered.buffer).collect()
    }

    /// Writes with a key that another one was given.
    pub(super) fn put_as(&mut self, to: RemoteBuffer, bytes: &[u8]) {
        self.write(to, bytes, None);
    }

    /// Writes into a stack buffer.
    pub(super) fn put(&mut self, stack: usize, offset: usize, bytes: &[u8]) {
        self.write(self.at(stack, offset), bytes, None);
    }

    /// A PUT of nothing, with the number of a stack.
    pub(super) fn announce(&mut self, stack: u32) {
        self.write(self.at(0, 0), &[], Some(stack));
    }

    fn at(&self, stack: usize, offset: usize) -> RemoteBuffer {
        let buffer = self.theirs.buffer(&stack_name(stack)).unwrap().buffer;
        buffer.at(offset as u64)
    }

    fn write(&mut self, to: RemoteBuffer, bytes: &[u8], immediate: Option<u32>) {
        let put = Put {
            cookie: 0,
            payload: Payload::Immediate(bytes),
            to,
            immediate,
        };
        self.qp.as_mut().unwrap().put(put).unwrap();
        self.finish();
    }

    /// A message, which is no announcement.
    pub(super) fn send(&mut self, immediate: u32) {
        let message = Message {
            cookie: 0,
            payload: Payload::Immediate(&[]),
            immediate: Some(immediate),
        };
        self.qp.as_mut().unwrap().send(message).unwrap();
        self.finish();
    }

    /// Waits until the receiver says that it has taken so many stacks.
    pub(super) fn wait_until_taken(&mut self, stacks: u32) {
        let taken = |buffer: &Buffer| {
            let mut taken = [0; 4];
            buffer.read(0, &mut taken).unwrap();
            u32::from_le_bytes(taken)
        };
        while taken(&self.taken) != stacks {
            self.poll();
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // A request is done when it is with the port, whose queue may be full.
        let from = Instant::now();
        while !std::thread::panicking() && from.elapsed() < REST {
            self.poll();
        }
        self.qp = None;
        let queues = self.roce.take().map(RoceLoop::into_queues);
        if let (Some((rx, tx)), Some(port)) = (queues, self.port.take()) {
            let _ = port.stop(vec![rx], tx.into_iter().collect());
        }
    }
}
