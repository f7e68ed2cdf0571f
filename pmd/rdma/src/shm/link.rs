//! Link to the peer's process: the socket, and the thread that answers it.
//!
//! Both sides ask: to map a range that was registered, to give one up, to take the inbox of a new queue
//! pair. The thread answers what the peer asks, whatever the program is doing, so that what a program has
//! registered can be used by the peer as soon as the call has returned. The end of the socket is the end of
//! the peer, however it died.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pollux_pmd::count::Count;
use rustix::thread::futex;

use super::inbox::{INBOX, Inbox};
use super::mapping::Mapping;
use super::message::{HELLO, Message, kind, receive, send};
use crate::access::{Access, Key, RemoteBuffer};
use crate::buffer::Withdraw;
use crate::registrations::Registrations;

/// Time for the peer to say who it is.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// Time for the peer to take a range or an inbox.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Time for the peer to give a range up.
const WITHDRAWAL: Duration = Duration::from_millis(100);

/// Rights in a message.
const WRITE: u32 = 1;
const READ: u32 = 2;

/// Why the peer did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("the peer is gone")]
    Gone,
    #[error("the peer did not answer within {0:?}")]
    Silent(Duration),
    #[error("the peer refused: it has no room for more, or cannot map the memory")]
    Refused,
    #[error("the memory file: {0}")]
    File(#[from] io::Error),
}

/// A queue pair of this endpoint, as the endpoint and the link know it. Aligned as [`Link`].
#[repr(align(128))]
pub(super) struct OwnPair {
    pub(super) number: u32,
    pub(super) inbox: Inbox,
    /// The queue pair of the peer that it is connected to.
    pub(super) peer: OnceLock<PeerPair>,
    /// It takes no connection: it has failed.
    pub(super) has_failed: AtomicBool,
}

impl OwnPair {
    /// Ends its sleep.
    pub(super) fn wake(&self) {
        wake(&self.inbox);
    }
}

/// Ends the sleep of the owner of an inbox.
pub(super) fn wake(inbox: &Inbox) {
    inbox.sleeping().store(0, SeqCst);
    // It cannot fail: the word is there.
    let _ = futex::wake(inbox.sleeping(), futex::Flags::empty(), 1);
}

/// A queue pair of the peer.
#[derive(Clone)]
pub(super) struct PeerPair {
    pub(super) number: u32,
    pub(super) inbox: Inbox,
}

/// Queue pairs of both sides.
#[derive(Default)]
struct Pairs {
    own: HashMap<u32, Weak<OwnPair>>,
    /// Those of the peer that are not connected yet.
    peers: HashMap<u32, PeerPair>,
}

/// What the threads of the program and that of the link share. Aligned: each poll reads it, so nothing that
/// is written all the time may be in its cache lines.
#[repr(align(128))]
pub(super) struct Link {
    socket: UnixStream,
    is_gone: AtomicBool,
    /// Number of the last question. Held while one is open.
    asking: Mutex<u32>,
    answer: Mutex<Option<Message>>,
    answered: Condvar,
    /// What the peer has registered.
    pub(super) remote: Arc<Registrations>,
    pairs: Mutex<Pairs>,
    limit: usize,
    /// Time for the peer to take a range or an inbox.
    patience: Duration,
    counters: Arc<LinkCounters>,
}

/// Counters of a link.
#[derive(Default)]
pub(super) struct LinkCounters {
    /// Ranges that the peer did not give up in time.
    pub(super) unacknowledged: Count,
    /// Messages over the socket that were refused.
    pub(super) refused: Count,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What they guard is whole between two statements of their users.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(super) fn is_gone(&self) -> bool {
        // Acquire pairs with the SeqCst store in `serve`.
        self.is_gone.load(Acquire)
    }

    /// Asks the peer, and waits for its answer.
    pub(super) fn ask(
        &self,
        message: Message,
        file: Option<BorrowedFd<'_>>,
        patience: Duration,
    ) -> Result<(), AskError> {
        let mut last = lock(&self.asking);
        *last = last.wrapping_add(1);
        let message = Message {
            id: *last,
            ..message
        };
        let mut answer = lock(&self.answer);
        *answer = None;
        if self.is_gone() {
            return Err(AskError::Gone);
        }
        send(&self.socket, &message, file).map_err(|_| AskError::Gone)?;
        let deadline = Instant::now() + patience;
        loop {
            if let Some(answer) = answer.take().filter(|answer| answer.id == *last) {
                let is_done = answer.number == 0;
                return is_done.then_some(()).ok_or(AskError::Refused);
            }
            if self.is_gone() {
                return Err(AskError::Gone);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(AskError::Silent(patience));
            }
            let waited = self.answered.wait_timeout(answer, left);
            answer = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has the peer map a range of a memory file.
    pub(super) fn register(
        &self,
        at: RemoteBuffer,
        len: u64,
        offset: u64,
        access: Access,
        file: &OwnedFd,
    ) -> Result<(), AskError> {
        let write = if access.remote_write { WRITE } else { 0 };
        let read = if access.remote_read { READ } else { 0 };
        let message = Message {
            number: at.key.0,
            rights: write | read,
            address: at.address,
            len,
            offset,
            ..Message::new(kind::REGISTER)
        };
        self.ask(message, Some(file.as_fd()), self.patience)
    }

    /// Has the peer take the inbox of a queue pair.
    pub(super) fn create(&self, pair: &Arc<OwnPair>, file: &OwnedFd) -> Result<(), AskError> {
        let message = Message {
            number: pair.number,
            ..Message::new(kind::CREATE)
        };
        let asked = self.ask(message, Some(file.as_fd()), self.patience);
        // One that is silent may take it later: a queue pair that is not there.
        asked.inspect_err(|_| self.destroy(pair))?;
        let mut pairs = lock(&self.pairs);
        pairs.own.insert(pair.number, Arc::downgrade(pair));
        Ok(())
    }

    /// Whether the number is that of a queue pair of this endpoint.
    pub(super) fn own(&self, number: u32) -> Option<Arc<OwnPair>> {
        lock(&self.pairs).own.get(&number)?.upgrade()
    }

    /// The queue pair of the peer with the number, for one connection.
    pub(super) fn take_peer(&self, number: u32) -> Option<PeerPair> {
        lock(&self.pairs).peers.remove(&number)
    }

    /// Tells the peer that a queue pair is destroyed.
    pub(super) fn destroy(&self, pair: &OwnPair) {
        lock(&self.pairs).own.remove(&pair.number);
        let message = Message {
            number: pair.number,
            ..Message::new(kind::DESTROY)
        };
        // Without it the peer keeps the inbox mapped; if it is gone, it does not.
        let _ = send(&self.socket, &message, None);
    }

    /// Answers the peer, until it is gone.
    fn serve(&self) {
        while let Ok((message, file)) = receive(&self.socket) {
            match message.kind {
                kind::ANSWER => {
                    *lock(&self.answer) = Some(message);
                    self.answered.notify_all();
                }
                kind::DESTROY => drop(self.take_peer(message.number)),
                _ => {
                    let is_done = self.execute(&message, file).is_some();
                    if !is_done {
                        self.counters.refused.add(1);
                    }
                    let answer = Message {
                        id: message.id,
                        number: u32::from(!is_done),
                        ..Message::new(kind::ANSWER)
                    };
                    if send(&self.socket, &answer, None).is_err() {
                        break;
                    }
                }
            }
        }
        // The end of a conversation that the peer does not keep to is that of the peer.
        let _ = self.socket.shutdown(Shutdown::Both);
        // Before the answer is locked: a thread that finds it false waits for the notification.
        self.is_gone.store(true, SeqCst);
        drop(lock(&self.answer));
        self.answered.notify_all();
        for pair in lock(&self.pairs).own.values().filter_map(Weak::upgrade) {
            pair.wake();
        }
    }

    /// Does what the peer asks for; `None` if that cannot be.
    fn execute(&self, message: &Message, file: Option<OwnedFd>) -> Option<()> {
        match message.kind {
            kind::REGISTER => {
                let access = Access {
                    remote_write: message.rights & WRITE != 0,
                    remote_read: message.rights & READ != 0,
                };
                let (write, file) = (access.remote_write, file?);
                let mapping = Mapping::new(file.as_fd(), message.offset, message.len, write);
                let mapping = Arc::new(mapping.ok()?);
                let at = RemoteBuffer {
                    address: message.address,
                    key: Key(message.number),
                };
                let (start, len) = (mapping.start(), message.len as usize);
                // SAFETY: so many bytes are mapped from `start` on, to be written if `access` says so, for
                // as long as the mapping lives; requests write no range of this table but by that right.
                let entered = unsafe { self.remote.insert(start, len, access, Some(at), mapping) };
                entered.ok().map(drop)
            }
            kind::WITHDRAW => self.remote.remove(Key(message.number)).then_some(()),
            kind::CREATE => {
                let mapping = Mapping::new(file?.as_fd(), 0, INBOX as u64, true).ok()?;
                let start = mapping.start();
                // SAFETY: so many bytes are mapped from `start` on, which begins a page; this process has
                // them mapped nowhere else, but for a peer in the same process, which is this code.
                let inbox = unsafe { Inbox::new(start, Arc::new(mapping)) };
                let mut pairs = lock(&self.pairs);
                let number = message.number;
                if pairs.peers.len() >= self.limit || pairs.peers.contains_key(&number) {
                    return None;
                }
                pairs.peers.insert(number, PeerPair { number, inbox });
                Some(())
            }
            _ => None,
        }
    }
}

/// A link and its thread, which ends with this.
pub(super) struct Connection {
    pub(super) link: Arc<Link>,
    thread: Option<JoinHandle<()>>,
}

impl Connection {
    /// Begins the conversation over a socket, with a peer that may have up to `limit` queue pairs that are
    /// not connected, and that answers within `patience`.
    pub(super) fn new(
        socket: UnixStream,
        remote: Arc<Registrations>,
        limit: usize,
        patience: Duration,
        counters: Arc<LinkCounters>,
    ) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(INTRODUCTION))?;
        let hello = Message {
            address: HELLO,
            ..Message::new(kind::HELLO)
        };
        send(&socket, &hello, None)?;
        let (theirs, _) = receive(&socket)?;
        if theirs.kind != kind::HELLO || theirs.address != HELLO {
            let why = "the peer is no endpoint of this version";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        socket.set_read_timeout(None)?;
        let link = Arc::new(Link {
            socket,
            is_gone: AtomicBool::new(false),
            asking: Mutex::new(0),
            answer: Mutex::new(None),
            answered: Condvar::new(),
            remote,
            pairs: Mutex::default(),
            limit,
            patience,
            counters,
        });
        let serving = Arc::clone(&link);
        let thread = std::thread::Builder::new().name("rdma-shm".into());
        let thread = Some(thread.spawn(move || serving.serve())?);
        Ok(Self { link, thread })
    }
}

impl Withdraw for Connection {
    fn withdraw(&self, key: Key) {
        let message = Message {
            number: key.0,
            ..Message::new(kind::WITHDRAW)
        };
        if let Err(AskError::Silent(_)) = self.link.ask(message, None, WITHDRAWAL) {
            self.link.counters.unacknowledged.add_shared(1);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Ends the wait of the thread. It fails only if the socket is shut down.
        let _ = self.link.socket.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // A panic of it has been reported.
            let _ = thread.join();
        }
    }
}
