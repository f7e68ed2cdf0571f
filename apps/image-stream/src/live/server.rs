//! The thread of a live stream: clients, and the images for them.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::client::{Client, Gone};
use super::counts::LiveCounts;
use super::message::SeriesMessages;
use crate::image::{Dense, ImageRecord};

/// Longest wait for a socket. The queue of images wakes no one: it costs its producers no system call.
const NAP: Duration = Duration::from_millis(1);

/// Largest number of clients.
pub(super) const MAX_CLIENTS: usize = 64;

/// What the loops hand over. A box would be an allocation for each image.
#[allow(clippy::large_enum_variant)]
pub(super) enum Item<B> {
    Begin(Box<SeriesMessages>),
    Image(ImageRecord<Dense<B>>),
    End,
}

/// Series that is under way.
struct Current {
    messages: Box<SeriesMessages>,
    start: Vec<u8>,
}

/// State of the thread.
pub(super) struct Server<B> {
    listener: TcpListener,
    receiver: Receiver<Item<B>>,
    done: Arc<AtomicBool>,
    counts: Arc<LiveCounts>,
    /// Images that wait for a client, and the limit of their number.
    waiting: VecDeque<Item<B>>,
    limit: usize,
    /// Time after which a client that takes nothing is disconnected.
    stall: Duration,
    series: Option<Current>,
    clients: Vec<Client<B>>,
    /// Which client is the next to get an image.
    turn: usize,
}

impl<B: AsRef<[u8]>> Server<B> {
    pub(super) fn new(
        listener: TcpListener,
        receiver: Receiver<Item<B>>,
        done: Arc<AtomicBool>,
        counts: Arc<LiveCounts>,
        limit: usize,
        stall: Duration,
    ) -> Self {
        Self {
            listener,
            receiver,
            done,
            counts,
            // Starts and ends are short, and leave the queue at once.
            waiting: VecDeque::with_capacity(limit + 2),
            limit,
            stall,
            series: None,
            clients: Vec::with_capacity(MAX_CLIENTS),
            turn: 0,
        }
    }

    /// Serves until the end of the stream, and after it until everything is sent, or `linger` has
    /// passed.
    pub(super) fn run(mut self, linger: Duration) {
        let mut ending: Option<Instant> = None;
        loop {
            let done = self.done.load(Ordering::Acquire);
            self.take_items();
            self.accept();
            self.read();
            self.distribute();
            let complete = self.write();
            if done {
                let since = *ending.get_or_insert_with(Instant::now);
                let busy = self.clients.iter().any(Client::wants_to_send);
                if !busy && self.waiting.is_empty() || since.elapsed() >= linger {
                    break;
                }
            }
            // A client that has its image takes the next one at once.
            if !complete || self.waiting.is_empty() {
                self.wait();
            }
        }
        let images = self.waiting.iter();
        let images = images.filter(|item| matches!(item, Item::Image(_))).count();
        let sending = self.clients.iter().filter(|client| client.has_image());
        self.counts.lost.add((images + sending.count()) as u64);
        self.counts.clients.set(0);
    }

    /// Takes what is in the queue, so that it never holds up a loop. The oldest images make room for
    /// new ones.
    fn take_items(&mut self) {
        for _ in 0..self.limit {
            let Ok(item) = self.receiver.try_recv() else {
                return;
            };
            self.waiting.push_back(item);
            self.distribute();
            if self.waiting.len() > self.limit {
                // In front of what waits there is an image: all else is sent at once.
                self.waiting.pop_front();
                self.counts.overrun.add_shared(1);
            }
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, address)) => {
                    if self.clients.len() == MAX_CLIENTS {
                        tracing::warn!(
                            "live stream: {address} is refused: {MAX_CLIENTS} clients are connected"
                        );
                        self.counts.refused_clients.add(1);
                        continue;
                    }
                    match Client::new(stream) {
                        Ok(client) => self.clients.push(client),
                        Err(error) => tracing::warn!("live stream: {address}: {error}"),
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // A connection that is gone again, or no free descriptor: the next turn tries again.
                Err(_) => break,
            }
        }
    }

    fn read(&mut self) {
        let (start, counts) = (self.series.as_ref().map(|it| &it.start), &self.counts);
        let stall = self.stall;
        keep(&mut self.clients, counts, |client| {
            if client.read()? {
                counts.connected.add(1);
                // The client has missed the start of the series.
                if let Some(start) = start {
                    client.add_message(start)?;
                }
            }
            if client.is_silent(stall) {
                return Err(Gone::Stalled(stall));
            }
            Ok(())
        });
        let open = self.clients.iter().filter(|client| client.is_open());
        counts.clients.set(open.count() as u64);
    }

    /// Passes on what waits, as far as clients can take it.
    fn distribute(&mut self) {
        while let Some(item) = self.waiting.pop_front() {
            match item {
                Item::Begin(messages) => {
                    self.end_series();
                    let start = messages.start();
                    self.tell_all(&start);
                    self.series = Some(Current { messages, start });
                }
                Item::End => self.end_series(),
                Item::Image(image) => {
                    if let Some(image) = self.send(image) {
                        self.waiting.push_front(Item::Image(image));
                        return;
                    }
                }
            }
        }
    }

    fn end_series(&mut self) {
        if let Some(current) = self.series.take() {
            self.tell_all(&current.messages.end());
        }
    }

    /// A start or an end goes to every client.
    fn tell_all(&mut self, message: &[u8]) {
        keep(&mut self.clients, &self.counts, |client| {
            if client.is_open() {
                client.add_message(message)?;
            }
            Ok(())
        });
    }

    /// Begins to send an image to the next client that is ready. Returns it if clients are busy.
    fn send(&mut self, image: ImageRecord<Dense<B>>) -> Option<ImageRecord<Dense<B>>> {
        let Some(Current { messages, .. }) = &self.series else {
            self.counts.refused.add(1);
            return None;
        };
        let detector = messages.detector();
        if let Err(error) = image.pixels.check(detector.shape, detector.pixel) {
            if self.counts.refused.get() == 0 {
                tracing::error!("live stream: {error}");
            }
            self.counts.refused.add(1);
            return None;
        }
        let n = self.clients.len();
        let order = (0..n).map(|k| (self.turn + k) % n);
        let ready = order.into_iter().find(|&k| self.clients[k].is_ready());
        let Some(client) = ready else {
            if self.clients.iter().any(Client::is_open) {
                return Some(image);
            }
            self.counts.no_client.add(1);
            return None;
        };
        self.turn = client + 1;
        let ImageRecord {
            facts,
            pixels,
            found,
        } = image;
        self.clients[client].begin_image(pixels, |pixels, head| {
            messages.image(&facts, pixels, found.as_deref(), head);
        });
        None
    }

    /// Whether a client has its image now.
    fn write(&mut self) -> bool {
        let mut complete = false;
        let (stall, counts) = (self.stall, &self.counts);
        keep(&mut self.clients, counts, |client| {
            if client.write(stall)? {
                counts.sent.add(1);
                complete = true;
            }
            Ok(())
        });
        complete
    }

    fn wait(&self) {
        let clients = self.clients.iter().map(|client| {
            let wants = if client.wants_to_send() {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            PollFd::new(client.stream(), wants)
        });
        let listener = PollFd::new(&self.listener, PollFlags::IN);
        let mut sockets: Vec<_> = clients.chain([listener]).collect();
        let nap = Timespec {
            tv_sec: 0,
            tv_nsec: NAP.as_nanos() as i64,
        };
        // A signal ends the wait early, which is as good.
        let _ = poll(&mut sockets, Some(&nap));
    }
}

/// Does something with each client, and disconnects those for which it fails.
fn keep<B: AsRef<[u8]>>(
    clients: &mut Vec<Client<B>>,
    counts: &LiveCounts,
    mut work: impl FnMut(&mut Client<B>) -> Result<(), Gone>,
) {
    clients.retain_mut(|client| {
        let Err(gone) = work(client) else { return true };
        let address = client.stream().peer_addr();
        let address = address.map_or_else(|_| "a client".into(), |address| address.to_string());
        tracing::info!("live stream: {address} is disconnected: {gone}");
        match gone {
            Gone::Zmtp(_) => counts.refused_clients.add(1),
            Gone::Stalled(_) => counts.stalled_clients.add(1),
            Gone::Closed | Gone::Io(_) => {}
        }
        counts.lost.add(client.has_image().into());
        false
    });
}
