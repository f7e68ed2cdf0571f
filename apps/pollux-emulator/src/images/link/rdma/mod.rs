//! Into the receiver's memory, by remote memory access: stacks of image lines, as RASHPA places them
//! (`docs/formats/rdma-images.md`).
//!
//! A packet of the detector is a line. It is written by a PUT on an unreliable connection to its place in a
//! stack buffer of the receiver; the last line of a stack has the stack's number as immediate value. Each
//! module has a connection of its own.
//!
//! | file | contents |
//! | --- | --- |
//! | `lane` | a module's connection: its stacks, and the buffers that are free for them |
//! | `lines` | lines in registered memory, from which they are sent without a copy |

mod lane;
mod lines;

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pollux_images::formats::Layout;
use pollux_images::stack::{StackLayout, TAKEN, stack_name};
use pollux_mempool::PoolCache;
use pollux_mempool::region::{MemoryRegion, RegionError};
use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::{Capabilities, Clock, Ledger, RxQueue, TscClock, TxQueue};
use pollux_rdma::exchange::{Channel, Description, ExchangeError, Offered};
use pollux_rdma::roce::{RoceEndpoint, RoceError, RoceLoop, RoceOptions};
use pollux_rdma::{
    Access, ConnectError, Endpoint, Memory, PathOptions, QpError, QpKind, QpOptions, QueuePair,
    RegisterError, RemoteBuffer,
};

use self::lane::{Lane, Place};
use self::lines::Lines;
use super::api::{PacketLink, SentCounts, StackCounts};
use crate::images::config::ImagesConfig;
use crate::images::stack::{Headers, Stack};
use crate::images::stream::Packet;

/// Bytes of the counter of stacks that the receiver has taken.
const COUNTER: usize = size_of::<u32>();

/// How long the receiver may take for a stack: its stages may be slow.
const PATIENCE: Ns = Ns(30_000_000_000);

/// Why a detector cannot write into the memory of its receiver.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RdmaError {
    /// The endpoint could not be made.
    #[error(transparent)]
    Endpoint(#[from] RoceError),
    /// There is no memory.
    #[error("memory for lines")]
    Memory(#[from] RegionError),
    /// Memory could not be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// There is no queue pair for a module.
    #[error(transparent)]
    QueuePair(#[from] QpError),
    /// The receiver did not answer, or not as it has to.
    #[error("module {module}, {to}: {source}")]
    Exchange {
        /// The module.
        module: usize,
        /// Where its receiver listens.
        to: SocketAddr,
        /// What happened.
        source: ExchangeError,
    },
    /// The connection could not be made.
    #[error("module {module}, {to}: {source}")]
    Connect {
        /// The module.
        module: usize,
        /// Where its receiver listens.
        to: SocketAddr,
        /// What happened.
        source: ConnectError,
    },
    /// The receiver has no buffers for stacks of these images.
    #[error(
        "module {module}, {to}: the receiver has {found}; it needs buffers `stack 0`, `stack 1` and so on \
         of one length, for whole images of {image} B a module: compare its [detector] with this one"
    )]
    Buffers {
        /// The module.
        module: usize,
        /// Where its receiver listens.
        to: SocketAddr,
        /// What it has.
        found: String,
        /// Bytes of an image of a module, with the headers of its lines.
        image: usize,
    },
    /// The receiver has not said that it is ready.
    #[error(
        "module {module}, receiver at {to}: no packet of it has come: compare IP addresses, ports and MTU of \
         both ends"
    )]
    NotReady {
        /// The module.
        module: usize,
        /// Where the receiver of the first module listens.
        to: SocketAddr,
    },
    /// A port number beyond the last one.
    #[error("module {module}: port {base} + {module} is beyond 65535; give a lower one")]
    Port {
        /// The module.
        module: usize,
        /// Port of the first module.
        base: u16,
    },
}

/// How a detector is connected.
#[derive(Clone, Copy, Debug)]
pub struct RdmaOptions {
    /// Where the receiver listens for the first module; the others follow.
    pub to: SocketAddr,
    /// Whether a stack waits until a buffer is free for it. Otherwise it is lost.
    pub waits: bool,
    /// How long each answer of the receiver may take.
    pub patience: Duration,
}

/// A link into the memory of a receiver.
pub struct RdmaLink {
    roce: RoceLoop,
    ledger: Ledger,
    clock: TscClock,
    begin: Tsc,
    lanes: Vec<Lane>,
    lines: Lines,
    headers: Headers,
    layout: Layout,
    first_frame: u64,
    sent: SentCounts,
    // Behind the queue pairs: it outlives them.
    _endpoint: Endpoint,
}

/// The connections to the receiver over which addresses were exchanged. The receiver closes them when it
/// ends.
pub struct Connections(Vec<Channel<TcpStream>>);

impl Connections {
    /// Whether the receiver is there for all modules.
    #[must_use]
    pub fn are_open(&self) -> bool {
        self.0.iter().all(Channel::is_open)
    }
}

impl RdmaLink {
    /// Connects all modules of a configuration, which is that of the stack, by a receive and a transmit
    /// queue of a port with these capabilities. Blocks until the receiver has answered.
    ///
    /// # Errors
    /// No memory, or no receiver with buffers for these images.
    pub fn connect(
        config: &ImagesConfig,
        stack: &Stack,
        port: &Capabilities,
        queues: (RxQueue, TxQueue),
        cache: PoolCache,
        options: &RdmaOptions,
    ) -> Result<(Self, Connections), RdmaError> {
        let layout = *stack.layout();
        let roce = RoceOptions {
            mac: config.addresses.src_mac,
            queue_pairs: layout.modules(),
            ..RoceOptions::new(*config.addresses.detector().socket.ip())
        };
        let mut ledger = Ledger::new();
        ledger.add("rx", queues.0.tally());
        let (control, roce) = RoceEndpoint::new(&roce, port, queues, cache)?;
        ledger.add("rdma", roce.tally());
        let mut endpoint = control.endpoint();
        let lines = Lines::new(&mut endpoint, stack)?;
        let (mut lanes, mut channels) = (Vec::new(), Vec::new());
        for module in 0..layout.modules() {
            let (lane, channel) = connect(&control, &mut endpoint, &layout, module, options)?;
            lanes.push(lane);
            channels.push(channel);
        }
        let clock = TscClock::get();
        let mut link = Self {
            roce,
            ledger,
            begin: clock.now(),
            clock,
            lanes,
            lines,
            headers: Headers::new(config, &layout),
            layout,
            first_frame: config.first_frame,
            sent: SentCounts::default(),
            _endpoint: endpoint,
        };
        link.wait_until_ready(options)?;
        Ok((link, Connections(channels)))
    }

    /// Waits until the receiver has connected all modules: until then it drops what comes.
    fn wait_until_ready(&mut self, options: &RdmaOptions) -> Result<(), RdmaError> {
        let begin = Instant::now();
        while let Some(module) = self.lanes.iter().position(|lane| !lane.is_ready()) {
            if begin.elapsed() > options.patience {
                let to = options.to;
                return Err(RdmaError::NotReady { module, to });
            }
            self.poll();
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Frames that the endpoint has sent.
    #[must_use]
    pub fn frames_sent(&self) -> u64 {
        self.roce.counts().get().sent
    }

    /// Gives the queues back, for [`Port::stop`](pollux_pmd::Port::stop).
    #[must_use]
    pub fn into_queues(self) -> (Vec<TxQueue>, Vec<RxQueue>) {
        let Self { roce, lanes, .. } = self;
        drop(lanes);
        let (rx, tx) = roce.into_queues();
        (tx.into_iter().collect(), vec![rx])
    }
}

/// Connects a module.
fn connect(
    control: &RoceEndpoint,
    endpoint: &mut Endpoint,
    layout: &Layout,
    module: usize,
    options: &RdmaOptions,
) -> Result<(Lane, Channel<TcpStream>), RdmaError> {
    let base = options.to.port();
    let port = usize::from(base) + module;
    let port = u16::try_from(port).map_err(|_| RdmaError::Port { module, base })?;
    let to = SocketAddr::new(options.to.ip(), port);
    let memory = Memory::new(MemoryRegion::builder(COUNTER).build()?);
    let taken = endpoint.register_buffer(&memory, 0..COUNTER, Access::WRITE)?;
    lane::prepare(&taken);
    let qp = endpoint.create_queue_pair(&QpOptions {
        kind: QpKind::Unreliable,
        ..QpOptions::default()
    })?;
    let own = Description {
        qp: qp.address(),
        kind: qp.kind(),
        mtu: control.mtu(),
        buffers: vec![Offered {
            name: TAKEN.into(),
            buffer: taken.remote(),
            bytes: COUNTER as u64,
            access: Access::WRITE,
        }],
    };
    let exchanged = exchange(&own, endpoint, &qp, to, options.patience);
    let (theirs, channel) = exchanged.map_err(|error| match error {
        Failed::Exchange(source) => RdmaError::Exchange { module, to, source },
        Failed::Connect(source) => RdmaError::Connect { module, to, source },
    })?;
    let (stack, buffers) = buffers(layout, &theirs).ok_or_else(|| RdmaError::Buffers {
        module,
        to,
        found: found(&theirs),
        image: StackLayout::new(layout, 1).bytes(),
    })?;
    Ok((Lane::new(qp, taken, stack, buffers, options.waits), channel))
}

/// What failed between the ends.
enum Failed {
    Exchange(ExchangeError),
    Connect(ConnectError),
}

impl From<ExchangeError> for Failed {
    fn from(error: ExchangeError) -> Self {
        Self::Exchange(error)
    }
}

/// Exchanges descriptions, and connects.
fn exchange(
    own: &Description,
    endpoint: &mut Endpoint,
    qp: &QueuePair,
    to: SocketAddr,
    patience: Duration,
) -> Result<(Description, Channel<TcpStream>), Failed> {
    let mut channel = Channel::connect(to, patience)?;
    let theirs = own.exchange(&mut channel)?;
    let path = PathOptions {
        mtu: own.agree(&theirs)?,
        ..PathOptions::default()
    };
    let connected = endpoint.connect(qp, &theirs.qp, &path);
    connected.map_err(Failed::Connect)?;
    Ok((theirs, channel))
}

/// The stack buffers of a receiver, in their order, and what they hold.
fn buffers(layout: &Layout, theirs: &Description) -> Option<(StackLayout, Vec<RemoteBuffer>)> {
    let bytes = theirs.buffer(&stack_name(0))?.bytes;
    let stack = StackLayout::of_bytes(layout, bytes)?;
    let writable = |n| {
        let offered = theirs.buffer(&stack_name(n))?;
        let fits = offered.bytes == bytes && offered.access.permits(Access::WRITE);
        fits.then_some(offered.buffer)
    };
    let all = (0..theirs.buffers.len()).map_while(writable);
    let buffers: Vec<_> = all.collect();
    (!buffers.is_empty()).then_some((stack, buffers))
}

/// The buffers of a receiver, for a message.
fn found(theirs: &Description) -> String {
    match &theirs.buffers[..] {
        [] => "no buffers".into(),
        [first, ..] => {
            let count = theirs.buffers.len();
            format!(
                "{count} buffers, the first `{}` of {} B",
                first.name, first.bytes
            )
        }
    }
}

impl PacketLink for RdmaLink {
    fn offer(&mut self, packet: &Packet, stack: &Stack) -> bool {
        let (sender, number) = (usize::from(packet.sender), usize::from(packet.packet));
        let interfaces = self.layout.interfaces();
        let Some(lane) = self.lanes.get_mut(sender / interfaces) else {
            self.sent.errors += 1;
            return true;
        };
        let index = stack.place(packet.frame, sender, number).index();
        if !lane.has_room() || !self.lines.is_free(index, lane.done()) {
            return false;
        }
        let image = match lane.place(packet.frame.wrapping_sub(self.first_frame)) {
            Place::Wait => return false,
            Place::Lost => {
                self.sent.errors += 1;
                return true;
            }
            Place::Image(image) => image,
        };
        let mut header = self.headers.of(packet.frame, sender, number);
        if let Some((_, bits)) = packet.corrupt {
            // The endpoint makes the checksum, so the byte is one that every receiver checks.
            header.detector ^= bits;
        }
        let line = sender % interfaces * self.layout.packets() + number;
        self.lines.set_header(index, &header, lane.next_request());
        if lane.put(image, line, self.lines.payload(index)) {
            self.sent.packets += 1;
        } else {
            self.sent.errors += 1;
        }
        true
    }

    fn flush(&mut self) -> usize {
        for lane in &mut self.lanes {
            lane.doorbell();
        }
        0
    }

    fn poll(&mut self) {
        let cycles = self.clock.now().since(self.begin);
        let now: Ns = self.clock.to_ns(cycles);
        self.roce.poll(now);
        for lane in &mut self.lanes {
            lane.poll(now);
        }
    }

    fn patience(&self) -> Ns {
        PATIENCE
    }

    fn finish(&mut self) -> usize {
        self.lanes.iter_mut().map(Lane::finish).sum()
    }

    fn sent(&self) -> SentCounts {
        self.sent
    }

    fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }

    fn stacks(&self) -> Option<StackCounts> {
        let mut all = StackCounts::default();
        for counts in self.lanes.iter().map(Lane::counts) {
            all.announced += counts.announced;
            all.taken += counts.taken;
            all.overrun += counts.overrun;
            all.repeated += counts.repeated;
        }
        Some(all)
    }
}
