//! Control mailbox: what the control side wants of the loop. Rare, so a lock will do, which is held for a
//! moment; an atomic tells the loop that there is something.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::connection::Connection;
use super::qp::Qp;
use super::table::Table;
use crate::address::{Psn, QpNumber};
use crate::endpoint::{ConnectError, QpError};

/// What the loop is to do.
#[allow(clippy::large_enum_variant)] // a box would be freed by the loop
enum Command {
    Add(Box<Qp>),
    /// Connects a queue pair to a peer whose first packet has a number.
    Connect(QpNumber, Connection, Psn),
    Remove(QpNumber),
}

/// A queue pair as the control side knows it.
struct Known {
    number: QpNumber,
    is_connected: bool,
}

#[allow(clippy::vec_box)] // the loop moves and drops no queue pair, but its pointer
struct Inner {
    commands: Vec<Command>,
    /// Removed queue pairs, which the control side frees: the loop does not.
    retired: Vec<Box<Qp>>,
    known: Vec<Known>,
}

/// The mailbox of a loop.
pub(super) struct Mailbox {
    has_commands: AtomicBool,
    most: usize,
    inner: Mutex<Inner>,
}

impl Mailbox {
    /// For a loop of up to `most` queue pairs.
    pub(super) fn new(most: usize) -> Self {
        Self {
            has_commands: AtomicBool::new(false),
            most,
            inner: Mutex::new(Inner {
                commands: Vec::new(),
                // Between two calls of the control side all are removed at most, those before it too.
                retired: Vec::with_capacity(2 * most),
                known: Vec::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // What it guards is whole between two statements of its users.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(&self, inner: &mut Inner, command: Command) {
        inner.commands.push(command);
        inner.retired.clear();
        // Release pairs with the Acquire in `take`, which the lock then makes superfluous.
        self.has_commands.store(true, Ordering::Release);
    }

    /// Adds a queue pair, made for a number that `pick` proposes until it is free.
    pub(super) fn add(
        &self,
        mut pick: impl FnMut() -> Result<QpNumber, QpError>,
        make: impl FnOnce(QpNumber) -> Box<Qp>,
    ) -> Result<QpNumber, QpError> {
        let mut inner = self.lock();
        if inner.known.len() >= self.most {
            return Err(QpError::TooMany(self.most));
        }
        let number = loop {
            let number = pick()?;
            if inner.known.iter().all(|known| known.number != number) {
                break number;
            }
        };
        inner.known.push(Known {
            number,
            is_connected: false,
        });
        self.post(&mut inner, Command::Add(make(number)));
        Ok(number)
    }

    pub(super) fn connect(
        &self,
        number: QpNumber,
        connection: Connection,
        first: Psn,
    ) -> Result<(), ConnectError> {
        let mut inner = self.lock();
        let mut known = inner.known.iter_mut();
        let known = known.find(|known| known.number == number);
        let known = known.ok_or(ConnectError::Unknown(number))?;
        if std::mem::replace(&mut known.is_connected, true) {
            return Err(ConnectError::State(number));
        }
        self.post(&mut inner, Command::Connect(number, connection, first));
        Ok(())
    }

    pub(super) fn remove(&self, number: QpNumber) {
        let mut inner = self.lock();
        inner.known.retain(|known| known.number != number);
        // One that the loop has not seen it never sees: so no more wait than there can be queue pairs,
        // however long it does not poll.
        let is_of = |command: &Command| match command {
            Command::Add(qp) => qp.number == number,
            Command::Connect(of, ..) => *of == number,
            Command::Remove(_) => false,
        };
        let is_added = |command: &Command| matches!(command, Command::Add(_)) && is_of(command);
        let is_unseen = inner.commands.iter().any(is_added);
        inner.commands.retain(|command| !is_of(command));
        if !is_unseen {
            self.post(&mut inner, Command::Remove(number));
        }
    }

    /// Has the loop do what is wanted.
    #[inline]
    pub(super) fn take(&self, qps: &mut Table) {
        // Acquire pairs with the Release in `post`.
        if self.has_commands.load(Ordering::Acquire) {
            self.take_all(qps);
        }
    }

    #[cold]
    fn take_all(&self, qps: &mut Table) {
        let mut inner = self.lock();
        let Inner {
            commands, retired, ..
        } = &mut *inner;
        self.has_commands.store(false, Ordering::Relaxed);
        for command in commands.drain(..) {
            let old = match command {
                Command::Add(qp) => qps.insert(qp),
                Command::Connect(number, connection, first) => {
                    if let Some(qp) = qps.get_mut(number) {
                        qp.connect(connection, first);
                    }
                    None
                }
                Command::Remove(number) => qps.remove(number),
            };
            retired.extend(old);
        }
    }
}
