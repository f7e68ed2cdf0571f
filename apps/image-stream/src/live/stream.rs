//! Handles of a live stream: its start and end, and its queue.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use pollux_pmd::lcore;

use super::counts::LiveCounts;
use super::error::LiveError;
use super::message::{Series, SeriesMessages};
use super::server::{Item, MAX_CLIENTS, Server};
use crate::detector::Detector;
use crate::image::{Dense, ImageRecord};

/// The port of DECTRIS stream v2.
pub const PORT: u16 = 31001;

/// How a live stream works.
#[derive(Clone, Debug)]
pub struct LiveConfig {
    /// Where clients connect.
    pub address: SocketAddr,
    /// Number of images that wait for the thread, and again for a client.
    pub queue: usize,
    /// A client that takes nothing for this time is disconnected, so that its image is free again.
    pub stall: Duration,
    /// Longest time that the end of the stream waits for clients.
    pub linger: Duration,
    /// CPUs of the loops, which the thread keeps off.
    pub loops: Vec<usize>,
}

impl Default for LiveConfig {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::UNSPECIFIED, PORT).into(),
            queue: 32,
            stall: Duration::from_secs(10),
            linger: Duration::from_secs(2),
            loops: Vec::new(),
        }
    }
}

impl LiveConfig {
    /// Largest number of images whose buffers are not in their pool.
    #[must_use]
    pub const fn held_images(&self) -> usize {
        2 * self.queue + MAX_CLIENTS + 1
    }
}

/// The end of the queue that the loops have: one for each.
pub struct LiveQueue<B> {
    sender: SyncSender<Item<B>>,
    counts: Arc<LiveCounts>,
}

impl<B> Clone for LiveQueue<B> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            counts: Arc::clone(&self.counts),
        }
    }
}

impl<B> LiveQueue<B> {
    /// Hands an image over, without a copy, an allocation or a system call; `false` if the queue is
    /// full, which is counted. The image is then dropped.
    #[inline]
    pub fn push(&self, image: ImageRecord<Dense<B>>) -> bool {
        let handed = self.sender.try_send(Item::Image(image)).is_ok();
        if !handed {
            self.counts.overrun.add_shared(1);
        }
        handed
    }
}

/// A server of images, on a thread of its own.
pub struct LiveStream<B> {
    queue: LiveQueue<B>,
    address: SocketAddr,
    detector: Detector,
    done: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl<B: AsRef<[u8]> + Send + 'static> LiveStream<B> {
    /// Listens for clients, and starts the thread. `B` is a handle of a buffer.
    ///
    /// # Errors
    /// An address that cannot be listened at, a detector that is refused, a queue without space, or
    /// no thread.
    pub fn start(detector: &Detector, config: &LiveConfig) -> Result<Self, LiveError> {
        detector.check()?;
        if config.queue == 0 {
            return Err(LiveError::Queue);
        }
        let refused = |error| LiveError::Listen {
            address: config.address,
            error,
        };
        let listener = TcpListener::bind(config.address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let (sender, receiver) = sync_channel(config.queue);
        let (done, counts) = (Arc::<AtomicBool>::default(), Arc::<LiveCounts>::default());
        let server = Server::new(
            listener,
            receiver,
            Arc::clone(&done),
            Arc::clone(&counts),
            config.queue,
            config.stall,
        );
        let (loops, linger) = (config.loops.clone(), config.linger);
        let thread = std::thread::Builder::new()
            .name("live-stream".into())
            .spawn(move || {
                lcore::keep_off(&loops);
                server.run(linger);
            })
            .map_err(LiveError::Thread)?;
        Ok(Self {
            queue: LiveQueue { sender, counts },
            address,
            detector: detector.clone(),
            done,
            thread,
        })
    }

    /// Where clients connect: with the port that the system has chosen, if 0 was given.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// An end of the queue for a loop.
    #[must_use]
    pub fn queue(&self) -> LiveQueue<B> {
        self.queue.clone()
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> &Arc<LiveCounts> {
        &self.queue.counts
    }

    /// Begins a series, and ends the one before: its start message goes to every client, and to each
    /// that connects before its end. Images that are pushed after this call belong to it.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn begin(&self, series: &Series) -> Result<(), LiveError> {
        let messages = SeriesMessages::new(series, &self.detector);
        self.send(Item::Begin(Box::new(messages)))
    }

    /// Ends the series: its end message goes to every client, after the images that were pushed
    /// before this call.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn end(&self) -> Result<(), LiveError> {
        self.send(Item::End)
    }

    /// The thread empties the queue all the time, so this waits a millisecond at most.
    fn send(&self, item: Item<B>) -> Result<(), LiveError> {
        self.queue.sender.send(item).map_err(|_| LiveError::Ended)
    }

    /// Sends what waits, for [`LiveConfig::linger`] at most, and disconnects the clients. The loops push
    /// no more.
    ///
    /// # Errors
    /// The thread has panicked.
    pub fn finish(self) -> Result<(), LiveError> {
        // Release pairs with the acquire of the thread, which then sees all images.
        self.done.store(true, Ordering::Release);
        self.thread.join().map_err(|_| LiveError::Ended)
    }
}
