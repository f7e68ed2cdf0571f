//! The thread that connects sources, and sees them leave.

use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pollux_images::stack::TAKEN;
use pollux_pmd::lcore::{self, StopFlag};
use pollux_rdma::exchange::{Channel, Description, ExchangeError, Listener, Offered};
use pollux_rdma::{Access, Endpoint, Mtu, PathOptions, QpKind, QpOptions, RemoteBuffer};

use super::seat::RECEIVE;
use super::state::{Occupancy, Peer, SourcesEnd};

/// How long a source may take for the exchange of addresses.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the thread looks for a new source, and how long it then rests.
const LOOK: Duration = Duration::from_millis(1);
const REST: Duration = Duration::from_millis(5);
/// Bytes of the counter of stacks that were taken.
const COUNTER: u64 = size_of::<u32>() as u64;

/// Where the source of a module comes to.
pub struct Place {
    module: usize,
    listener: Listener,
    offered: Vec<Offered>,
    shared: SourcesEnd,
    /// The connection to the source, which closes it when it ends.
    channel: Option<Channel<TcpStream>>,
}

impl Place {
    /// Listens for the source of a module, at the port of the first one plus its number.
    ///
    /// # Errors
    /// The address is in use, or is not the host's.
    pub fn new(
        first: SocketAddr,
        module: usize,
        offered: Vec<Offered>,
        shared: SourcesEnd,
    ) -> Result<Self> {
        let port = u16::try_from(usize::from(first.port()) + module);
        let port = port.with_context(|| format!("--rdma {first}: no port for module {module}"))?;
        let at = SocketAddr::new(first.ip(), port);
        let listener = Listener::bind(at).with_context(|| format!("--rdma {at}"))?;
        Ok(Self {
            module,
            listener,
            offered,
            shared,
            channel: None,
        })
    }

    /// One look.
    fn keep(&mut self, endpoint: &mut Endpoint, mtu: Mtu) {
        match self.shared.occupancy() {
            Occupancy::Left => {}
            Occupancy::Taken => {
                let is_there = self.channel.as_ref().is_some_and(Channel::is_open);
                if !is_there {
                    self.shared.leave();
                }
            }
            Occupancy::Free => {
                // Of a source whose queue pair has failed.
                self.channel = None;
                let channel = match self.listener.accept(LOOK) {
                    Ok(channel) => channel,
                    Err(ExchangeError::Deadline { .. }) => return,
                    Err(error) => return self.warn(&error.into()),
                };
                if let Err(error) = self.connect(channel, endpoint, mtu) {
                    self.warn(&error);
                }
            }
        }
    }

    fn warn(&self, error: &anyhow::Error) {
        tracing::warn!("module {}: no source is connected: {error:#}", self.module);
    }

    /// Connects a source.
    fn connect(
        &mut self,
        mut channel: Channel<TcpStream>,
        endpoint: &mut Endpoint,
        mtu: Mtu,
    ) -> Result<()> {
        channel.within(PATIENCE);
        let options = QpOptions {
            kind: QpKind::Unreliable,
            ..QpOptions::default()
        };
        let mut qp = endpoint.create_queue_pair(&options)?;
        for _ in 0..options.receives {
            qp.post_receive(RECEIVE)?;
        }
        qp.doorbell();
        let own = Description {
            qp: qp.address(),
            kind: qp.kind(),
            mtu,
            buffers: self.offered.clone(),
        };
        let theirs = own.exchange(&mut channel)?;
        let path = PathOptions {
            mtu: own.agree(&theirs)?,
            ..PathOptions::default()
        };
        let taken = counter(&theirs)?;
        endpoint.connect(&qp, &theirs.qp, &path)?;
        self.channel = Some(channel);
        self.shared.take(Peer { qp, taken });
        Ok(())
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

/// The thread; it ends when this is dropped.
pub struct Sources {
    stop: StopFlag,
    thread: Option<JoinHandle<()>>,
}

impl Sources {
    /// Starts the thread, which keeps off the CPUs of the loops.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(
        mtu: Mtu,
        mut endpoint: Endpoint,
        mut places: Vec<Place>,
        loops: &[usize],
    ) -> Result<Self> {
        let stop = StopFlag::new();
        let (flag, loops) = (stop.clone(), loops.to_vec());
        let body = move || {
            lcore::keep_off(&loops);
            while !flag.is_set() {
                for place in &mut places {
                    place.keep(&mut endpoint, mtu);
                }
                std::thread::sleep(REST);
            }
        };
        let thread = std::thread::Builder::new().name("sources".into());
        Ok(Self {
            stop,
            thread: Some(thread.spawn(body).context("thread of the sources")?),
        })
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
