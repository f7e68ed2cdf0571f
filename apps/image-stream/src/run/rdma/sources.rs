//! Threads that connect sources, and see them leave.

use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pollux_images::stack::{TAKEN, stack_name};
use pollux_pmd::lcore::{self, StopFlag};
use pollux_rdma::exchange::{Channel, Description, ExchangeError, Listener, Offered, Patience};
use pollux_rdma::{
    Access, Buffer, Endpoint, Mtu, PathOptions, QpKind, QpOptions, QueuePair, RemoteBuffer,
};

use super::seat::RECEIVE;
use super::stacks::Stacks;
use super::state::{Peer, SourcesEnd};

/// How long a source may take for the exchange of addresses.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How long a source is waited for at a time.
const WAIT: Duration = Duration::from_hours(1);
/// How often the thread looks whether a source has left.
const REST: Duration = Duration::from_millis(10);
/// Bytes of the counter of stacks that were taken.
const COUNTER: u64 = size_of::<u32>() as u64;

/// Where the source of a module connects.
pub struct Place {
    module: usize,
    listener: Listener,
    endpoint: Endpoint,
    mtu: Mtu,
    stacks: Stacks,
    shared: SourcesEnd<Peer>,
}

/// A source whose queue pair the loop has.
pub struct Source {
    /// The source closes it when it ends.
    channel: Channel<TcpStream>,
    /// Their keys are this source's alone.
    _buffers: Vec<Buffer>,
}

impl Place {
    /// Listens for the source of a module, at the port of the first one plus its number.
    ///
    /// # Errors
    /// The address is in use, or is not the host's.
    pub fn new(
        first: SocketAddr,
        module: usize,
        (endpoint, mtu): (Endpoint, Mtu),
        stacks: Stacks,
        shared: SourcesEnd<Peer>,
    ) -> Result<Self> {
        let port = u16::try_from(usize::from(first.port()) + module);
        let port = port.with_context(|| format!("--rdma {first}: no port for module {module}"))?;
        let at = SocketAddr::new(first.ip(), port);
        let listener = Listener::bind(at).with_context(|| format!("--rdma {at}"))?;
        Ok(Self {
            module,
            listener,
            endpoint,
            mtu,
            stacks,
            shared,
        })
    }

    /// Serves one source after another.
    fn serve(mut self, stop: &StopFlag) {
        while !stop.is_set() {
            let Some(source) = self.admit(stop) else {
                continue;
            };
            while !stop.is_set() && !self.has_ended(&source) {
                std::thread::sleep(REST);
            }
        }
    }

    /// Waits for a source, and gives it to the loop. `None` if none could be connected, which is logged.
    pub fn admit(&mut self, stop: &StopFlag) -> Option<Source> {
        let accepted = self.listener.accept(Patience::until(stop, WAIT));
        let connected = match accepted {
            Ok(channel) => self.connect(channel),
            Err(ExchangeError::Deadline { .. }) => return None,
            Err(error) => Err(error.into()),
        };
        let (source, peer) = connected
            .inspect_err(|error| {
                if !stop.is_set() {
                    let module = self.module;
                    tracing::warn!("module {module}: no source is connected: {error:#}");
                    std::thread::sleep(REST);
                }
            })
            .ok()?;
        self.shared.give(peer);
        Some(source)
    }

    /// Whether a source has ended: the loop has taken all that it has written. Its queue pair is destroyed then.
    pub fn has_ended(&mut self, source: &Source) -> bool {
        if !source.channel.is_open() {
            self.shared.leave();
        }
        self.shared.returned().map(drop).is_some()
    }

    /// Exchanges addresses and keys with a source, and connects to it.
    fn connect(&mut self, mut channel: Channel<TcpStream>) -> Result<(Source, Peer)> {
        channel.within(PATIENCE);
        // The source before this one may have written into buffers that were taken already.
        self.stacks.clear_all();
        let buffers = self.stacks.register(&mut self.endpoint)?;
        let qp = self.queue_pair()?;
        let offered = buffers.iter().enumerate().map(|(n, buffer)| Offered {
            name: stack_name(n),
            buffer: buffer.remote(),
            bytes: buffer.len() as u64,
            access: buffer.access(),
        });
        let own = Description {
            qp: qp.address(),
            kind: qp.kind(),
            mtu: self.mtu,
            buffers: offered.collect(),
        };
        let theirs = own.exchange(&mut channel)?;
        let path = PathOptions {
            mtu: own.agree(&theirs)?,
            ..PathOptions::default()
        };
        let taken = counter(&theirs)?;
        self.endpoint.connect(&qp, &theirs.qp, &path)?;
        let source = Source {
            channel,
            _buffers: buffers,
        };
        Ok((source, Peer { qp, taken }))
    }

    /// A queue pair with receives for announcements.
    fn queue_pair(&mut self) -> Result<QueuePair> {
        let options = QpOptions {
            kind: QpKind::Unreliable,
            ..QpOptions::default()
        };
        let mut qp = self.endpoint.create_queue_pair(&options)?;
        for _ in 0..options.receives {
            qp.post_receive(RECEIVE)?;
        }
        qp.doorbell();
        Ok(qp)
    }
}

/// Where a source reads how many stacks were taken.
fn counter(theirs: &Description) -> Result<RemoteBuffer> {
    let offered = theirs.buffer(TAKEN);
    let fits =
        |offered: &&Offered| offered.bytes >= COUNTER && offered.access.permits(Access::WRITE);
    let offered = offered.filter(fits).with_context(|| {
        format!("the source has no buffer `{TAKEN}` of {COUNTER} B that may be written")
    })?;
    Ok(offered.buffer)
}

/// The threads, one for each module, so that a source that is silent keeps none of another module waiting. They
/// end when this is dropped.
#[derive(Default)]
pub struct Sources {
    stop: StopFlag,
    threads: Vec<JoinHandle<()>>,
}

impl Sources {
    /// Starts the threads, which keep off the CPUs of the loops.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(places: Vec<Place>, loops: &[usize]) -> Result<Self> {
        let mut sources = Self::default();
        for place in places {
            let (stop, loops) = (sources.stop.clone(), loops.to_vec());
            let thread = std::thread::Builder::new().name(format!("source {}", place.module));
            let body = move || {
                lcore::keep_off(&loops);
                place.serve(&stop);
            };
            let thread = thread.spawn(body).context("a thread for a source")?;
            sources.threads.push(thread);
        }
        Ok(sources)
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        self.stop.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
