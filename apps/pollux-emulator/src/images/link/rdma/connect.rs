//! Connections of the modules to their receiver.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pollux_images::formats::Layout;
use pollux_images::stack::{StackLayout, TAKEN, stack_name};
use pollux_mempool::region::MemoryRegion;
use pollux_pmd::lcore::StopFlag;
use pollux_rdma::exchange::{Channel, Description, ExchangeError, Offered, Patience};
use pollux_rdma::roce::RoceEndpoint;
use pollux_rdma::{
    Access, ConnectError, Endpoint, Memory, PathOptions, QpKind, QpOptions, QueuePair, RemoteBuffer,
};

use super::error::RdmaError;
use super::lane::{self, Lane};

/// Bytes of the counter of stacks that the receiver has taken.
const COUNTER: usize = size_of::<u32>();

/// Maximum number of images of a stack, which the receiver chooses: `image-stream` has no more open.
const MAX_IMAGES: usize = 1 << 12;

/// How a detector is connected.
#[derive(Clone, Debug)]
pub struct RdmaOptions {
    /// Where the receiver listens for the first module; the others follow.
    pub to: SocketAddr,
    /// Whether a stack waits until a buffer is free for it. Otherwise it is lost.
    pub waits: bool,
    /// How long each answer of the receiver may take.
    pub patience: Duration,
    /// Ends the wait for an answer.
    pub stop: StopFlag,
}

/// The connections to the receiver over which addresses were exchanged. The receiver closes them when it
/// ends.
pub struct Connections {
    pub(super) channels: Vec<Channel<TcpStream>>,
    /// For the link, which then waits no longer.
    pub(super) are_over: Arc<AtomicBool>,
}

impl Connections {
    /// Whether the receiver is there for all modules. From the first time on that it is not, the link waits for no
    /// answer.
    #[must_use]
    pub fn are_open(&self) -> bool {
        let are_open = self.channels.iter().all(Channel::is_open);
        if !are_open {
            // Relaxed: it publishes nothing else.
            self.are_over.store(true, Ordering::Relaxed);
        }
        are_open
    }
}

/// Connects a module.
pub(super) fn connect(
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
    let exchanged = exchange(&own, endpoint, &qp, to, options);
    let (theirs, channel) = exchanged.map_err(|error| match error {
        Failed::Exchange(ExchangeError::Stopped { .. }) => RdmaError::Stopped,
        Failed::Exchange(source) => RdmaError::Exchange { module, to, source },
        Failed::Connect(source) => RdmaError::Connect { module, to, source },
    })?;
    let (stack, buffers) = buffers(layout, &theirs).ok_or_else(|| RdmaError::Buffers {
        module,
        to,
        found: found(&theirs),
        image: StackLayout::new(layout, 1).bytes(),
        most: MAX_IMAGES,
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
    options: &RdmaOptions,
) -> Result<(Description, Channel<TcpStream>), Failed> {
    let patience = Patience::until(&options.stop, options.patience);
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
    let stack =
        StackLayout::of_bytes(layout, bytes).filter(|stack| stack.images() <= MAX_IMAGES)?;
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
