//! `EmbeddedPort`: a port with its pool, its classification, its streams and its ledger.

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, Mbuf, Mempool, PoolCache};
use pollux_pmd::endpoint::{Classifier, Receiver, StreamFrame};
use pollux_pmd::net::{ParseOptions, ReassemblyConfig};
use pollux_pmd::{
    Cause, Clock, Ledger, MemoryGrant, Port, PortConfig, Registry, RxQueue, RxState, Started,
    StartedPort, TscClock, TxQueue,
};

use crate::account::LedgerView;
use crate::datagram::Datagram;
use crate::error::EmbedError;
use crate::options::Options;

/// Frames that one call of a driver moves.
pub const BURST: usize = 64;

/// Frames to be sent.
pub type Frames = Burst<BURST>;

/// Descriptors or frames in the ring of a queue.
const RING: usize = 1024;

/// Bytes of an Ethernet header: the shortest frame.
const ETHERNET_HEADER: usize = 14;

/// Buffers of the loop's cache, at most.
const CACHE: usize = 512;

/// Time after which incomplete datagrams are looked through again.
const EXPIRY: Ns = Ns(10_000_000);

/// The grant of packet memory to the devices and peers that the caller names.
fn grant() -> MemoryGrant {
    // SAFETY: a port is opened by the spec that the user of the binding gives, who thereby vouches for
    // the device or peer, as an operator does on a command line (docs/operations.md).
    unsafe { MemoryGrant::new() }
}

/// Converts times of arrival to nanoseconds since a port was opened.
#[derive(Clone, Copy, Debug)]
pub struct PortClock {
    clock: TscClock,
    opened: Tsc,
}

impl PortClock {
    /// Nanoseconds from the opening of the port to a time; 0 for an earlier one.
    #[must_use]
    #[inline]
    pub fn ns(&self, time: Tsc) -> u64 {
        self.clock.to_ns(time.since(self.opened)).0
    }

    /// Nanoseconds since the port was opened.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.ns(self.clock.now())
    }
}

/// What a port has while it is open.
struct Running {
    port: Port<Started>,
    rx: Vec<RxQueue>,
    /// Absent on a port that cannot send.
    tx: Option<TxQueue>,
    cache: PoolCache,
    receiver: Receiver,
    /// Queue that the next poll begins with.
    next: usize,
    /// When incomplete datagrams were looked through.
    expired: Ns,
}

/// An open port. Received frames are classified, and datagrams of its streams delivered; other frames
/// are counted under their cause and freed.
pub struct EmbeddedPort {
    spec: String,
    running: Option<Running>,
    pool: Mempool,
    ledger: LedgerView,
    clock: PortClock,
    most: usize,
    is_recorded: bool,
    reassembles: bool,
    /// State of the receive side when the port was closed.
    was_gone: bool,
}

impl EmbeddedPort {
    /// Opens and starts a port. It has as many receive queues as its device distributes frames to, and
    /// one transmit queue if it can send.
    ///
    /// # Errors
    /// A wrong spec or option ([`EmbedError::is_usage`]), with nothing opened; else the failure of the
    /// port, or no memory.
    pub fn open(spec: &str, options: &Options) -> Result<Self, EmbedError> {
        let registry = Registry::builtin().granting(grant());
        registry.check(spec)?;
        let demux = options.demux()?;
        options.check()?;
        // A wrong size is found before the port is opened, unless the size is the port's.
        let sized = options.data_room.map(|_| Mempool::new(options.pool(0, 0)));
        let sized = sized.transpose()?;
        let port = registry.open(spec)?;
        let offered = port.capabilities();
        let rx_queues = port.spread().min(offered.max_rx_queues);
        // A recording has no receive rings.
        let rings = usize::from(rx_queues) * if offered.recorded { 0 } else { RING };
        let config = options.pool(offered.max_frame, rings);
        // Memory that is too small is returned before more is taken.
        let sized = sized.filter(|pool| pool.buffers() == config.buffers);
        let pool = sized.map_or_else(|| Mempool::new(config), Ok)?;
        let classifier = Classifier::new(ParseOptions::default());
        let classifier = if options.reassemble {
            classifier.with_reassembly(bounds(pool.buffers()), 1)?
        } else {
            classifier
        };
        let reassembles = classifier.reassembles();
        let cache = pool.cache(CACHE.min(pool.buffers()))?;
        let config = PortConfig::new(pool.clone())
            .rx_queues(rx_queues)
            .ring(RING)
            .tx_queues(offered.max_tx_queues.min(1));
        let StartedPort { port, rx, mut tx } = port.configure(config)?.start()?;
        let receiver = Receiver::new(classifier, demux, None);
        let mut received = Ledger::new();
        for queue in &rx {
            received.add("port", queue.tally());
        }
        received.add("receiver", receiver.view());
        let tx = tx.pop();
        let clock = TscClock::get();
        Ok(Self {
            spec: spec.into(),
            ledger: LedgerView {
                received,
                sent: tx.as_ref().map(TxQueue::sent),
            },
            running: Some(Running {
                port,
                rx,
                tx,
                cache,
                receiver,
                next: 0,
                expired: Ns(0),
            }),
            most: offered.max_frame.min(pool.data_room()),
            pool,
            clock: PortClock {
                clock,
                opened: clock.now(),
            },
            is_recorded: offered.recorded,
            reassembles,
            was_gone: false,
        })
    }

    /// The spec that the port was opened by.
    #[must_use]
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// Polls each receive queue, for `n` frames altogether at most, and hands the datagrams of the
    /// streams to `each`; returns their number. Never waits. 0 on a closed port.
    #[inline]
    pub fn rx(&mut self, n: usize, mut each: impl FnMut(Datagram)) -> usize {
        let time = self.clock.clock.now();
        let now = Ns(self.clock.ns(time));
        let (is_recorded, reassembles) = (self.is_recorded, self.reassembles);
        let Some(running) = &mut self.running else {
            return 0;
        };
        let Running {
            rx,
            cache,
            receiver,
            next,
            expired,
            ..
        } = running;
        let (mut frames, mut datagrams) = (0, 0);
        for _ in 0..rx.len() {
            let Some(queue) = rx.get_mut(*next) else {
                break;
            };
            loop {
                let mut burst = Frames::new();
                let asked = (n - frames).min(BURST);
                let taken = queue.rx_at(time, cache, &mut burst, asked);
                frames += taken;
                burst.iter().for_each(Mbuf::prefetch_read);
                burst.take_all(|mbuf| {
                    let at = if is_recorded {
                        Ns(mbuf.wire_time().unwrap_or_default().0)
                    } else {
                        now
                    };
                    let frame = receiver.receive(mbuf, at, 0, &mut [], cache);
                    if let Some(datagram) = frame.and_then(|frame| whole(frame, cache, receiver)) {
                        datagrams += 1;
                        each(datagram);
                    }
                });
                if taken < asked || frames == n {
                    break;
                }
            }
            // Before the end: a queue that fills every poll would otherwise be the first of the next.
            *next += 1;
            if *next >= rx.len() {
                *next = 0;
            }
            if frames == n {
                break;
            }
        }
        if reassembles && !is_recorded && now.0.wrapping_sub(expired.0) > EXPIRY.0 {
            *expired = now;
            receiver.expire(now, cache);
        }
        if datagrams != 0 {
            receiver.tally().count_delivered(datagrams as u64);
        }
        datagrams
    }

    /// Takes a buffer with a frame of `len` bytes, whose content is undefined. `None` if the pool has
    /// none, `len` is longer than [`most`](Self::most), or the port is closed.
    #[must_use]
    #[inline]
    pub fn alloc(&mut self, len: usize) -> Option<Mbuf> {
        if len > self.most {
            return None;
        }
        let mut mbuf = self.running.as_mut()?.cache.alloc()?;
        mbuf.append(len)?;
        Some(mbuf)
    }

    /// Returns buffers to the pool.
    #[inline]
    pub fn free_all(&mut self, frames: &mut Frames) {
        match &mut self.running {
            Some(running) => running.cache.free_burst(frames),
            None => frames.clear(),
        }
    }

    /// Returns a buffer to the pool.
    #[inline]
    pub fn free(&mut self, mbuf: Mbuf) {
        match &mut self.running {
            Some(running) => running.cache.free(mbuf),
            None => drop(mbuf),
        }
    }

    /// Sends frames from the front, as many as the queue has room for; the rest remains. Returns the
    /// number of frames taken: 0 on a port that is closed or cannot send. Never waits.
    #[inline]
    pub fn tx(&mut self, frames: &mut Frames) -> usize {
        let Some(running) = &mut self.running else {
            return 0;
        };
        let queue = running.tx.as_mut();
        queue.map_or(0, |queue| queue.tx(&mut running.cache, frames))
    }

    /// Checks the length of a frame that is to be sent, the `index`-th of several.
    ///
    /// # Errors
    /// It is shorter than an Ethernet header or longer than [`most`](Self::most).
    pub fn check_len(&self, index: usize, len: usize) -> Result<(), EmbedError> {
        if (ETHERNET_HEADER..=self.most).contains(&len) {
            return Ok(());
        }
        let most = self.most;
        Err(EmbedError::FrameLength { index, len, most })
    }

    /// Copies frames into buffers and sends them, in order. Returns the number of those that left,
    /// which are the first: the others found no buffer or no room in the queue.
    pub fn send<'a>(&mut self, frames: impl IntoIterator<Item = &'a [u8]>) -> usize {
        let mut frames = frames.into_iter().peekable();
        let mut sent = 0;
        while frames.peek().is_some() {
            let mut burst = Frames::new();
            for frame in frames.by_ref().take(BURST) {
                let Some(mut mbuf) = self.alloc(frame.len()) else {
                    break;
                };
                mbuf.data_mut().copy_from_slice(frame);
                // It fits: `take` bounds the number.
                drop(burst.push(mbuf));
            }
            let filled = burst.len();
            let left = self.tx(&mut burst);
            sent += left;
            burst.take_all(|mbuf| self.free(mbuf));
            if left < filled || filled < BURST {
                break;
            }
        }
        sent
    }

    /// Longest frame that can be sent, in bytes.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// Whether no datagram can arrive any more: the recording has ended, the device is gone, the port
    /// cannot receive, or it is closed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let running = self.running.as_ref();
        running.is_none_or(|running| running.rx.iter().all(|queue| queue.state().is_final()))
    }

    /// Whether the device has disappeared while the port was open.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match &self.running {
            Some(running) => running.is_gone(),
            None => self.was_gone,
        }
    }

    /// Buffers that are free: neither with the program nor with the device.
    #[must_use]
    pub fn free_buffers(&self) -> usize {
        let cached = self.running.as_ref().map_or(0, |open| open.cache.len());
        self.pool.available() + cached
    }

    /// The ledger, for any thread.
    #[must_use]
    pub fn ledger(&self) -> LedgerView {
        self.ledger.clone()
    }

    /// Reads counters from outside the process (the kernel's drops) into the ledger. May enter the
    /// kernel.
    pub fn sync_counters(&mut self) {
        if let Some(running) = &mut self.running {
            running.rx.iter_mut().for_each(RxQueue::sync_counters);
        }
    }

    /// Buffers of the pool.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.pool.buffers()
    }

    /// Nanoseconds since the port was opened.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The clock by which arrival times become nanoseconds since the opening.
    #[must_use]
    #[inline]
    pub fn clock(&self) -> PortClock {
        self.clock
    }

    /// Stops and releases the port; nothing if it is closed. Frames that the program holds stay valid.
    ///
    /// # Errors
    /// A failure while the device stopped: an unreadable recording, a file that could not be
    /// completed.
    pub fn close(&mut self) -> Result<(), EmbedError> {
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        self.was_gone = running.is_gone();
        let Running {
            port,
            rx,
            tx,
            mut cache,
            mut receiver,
            ..
        } = running;
        receiver.finish(&mut cache);
        port.stop(rx, tx.into_iter().collect())?;
        Ok(())
    }
}

impl Running {
    fn is_gone(&self) -> bool {
        self.rx.iter().any(|queue| queue.state() == RxState::Gone) || self.port.link().gone
    }
}

impl Drop for EmbeddedPort {
    fn drop(&mut self) {
        // The caller who wants to know calls `close`.
        drop(self.close());
    }
}

/// Bounds of reassembly that leave three quarters of the pool to other uses.
fn bounds(buffers: usize) -> ReassemblyConfig {
    let bounds = ReassemblyConfig::default();
    ReassemblyConfig {
        buffers: bounds.buffers.min(buffers / 4).max(2),
        ..bounds
    }
}

/// The datagram in one buffer: as it is, or copied if it is a chain that fits; else dropped.
#[inline]
fn whole(frame: StreamFrame, cache: &mut PoolCache, receiver: &mut Receiver) -> Option<Datagram> {
    if frame.mbuf.segment_count() == 1 {
        return Some(Datagram::new(frame.mbuf, frame.offset, frame.len));
    }
    let (offset, len) = (frame.offset, frame.len);
    match join(frame.mbuf, cache) {
        Ok(mbuf) => Some(Datagram::new(mbuf, offset, len)),
        Err(cause) => {
            receiver.tally().count_dropped(cause, 1);
            None
        }
    }
}

/// Copies a chain into one buffer.
#[cold]
fn join(chain: Mbuf, cache: &mut PoolCache) -> Result<Mbuf, Cause> {
    let joined = if chain.total_len() > cache.pool().data_room() {
        Err(Cause::Oversize)
    } else {
        copied(&chain, cache).ok_or(Cause::NoMbuf)
    };
    cache.free(chain);
    joined
}

fn copied(chain: &Mbuf, cache: &mut PoolCache) -> Option<Mbuf> {
    let mut mbuf = cache.alloc()?;
    chain.copy_to(0, mbuf.append(chain.total_len())?);
    mbuf.set_origin(
        chain.port(),
        chain.queue(),
        chain.ordinal(),
        chain.arrival(),
    );
    if let Some(time) = chain.wire_time() {
        mbuf.set_wire_time(time);
    }
    Some(mbuf)
}
