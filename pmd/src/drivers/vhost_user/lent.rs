//! Loans: memory lent to back ends, until each is proven to have released it.
//!
//! A back end has the whole memory mapped, and knows the buffers that were posted in its rings: it
//! may write to them at any time. The end of a session proves nothing: a process that has closed
//! its socket, or hangs, or violates the protocol, still has the memory. The buffers that it knew
//! stay out of use until one of these proofs:
//!
//! - It has acknowledged the stop of all its rings (GET_VRING_BASE).
//! - Its process has ended, and its mappings with it.
//! - Its process has none of the memory open or mapped any more, though it did during the session:
//!   it has closed the device properly and continues with other work.
//!
//! The process is the one that has opened the other end of the socket. If it does not have the
//! memory once the rings have started, it is not the back end (it has passed its socket to another
//! process), and proves nothing. If this process may not inspect it, it is assumed to be the back
//! end, and its end is the only proof.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pollux_mempool::region::MemoryRegion;

use super::process::Process;
use crate::quarantine::Quarantine;

/// Interval at which the mappings of a process are checked. (The check for its end costs less.)
const LOOK: Duration = Duration::from_millis(500);

/// Time for a disconnected back end to release the memory before a warning. (A fuzzer's never
/// does.)
const MOMENT: Duration = Duration::from_millis(if cfg!(fuzzing) { 0 } else { 100 });

/// Maximum number of outstanding loans: each keeps memory of rings, and a descriptor of its
/// process.
const MOST: usize = 64;

/// Memory that one session lends.
pub(super) struct Loan {
    /// The back end's process, where it is known.
    process: Option<Process>,
    /// All regions that the back end may have mapped.
    regions: Vec<Arc<MemoryRegion>>,
    /// The back end may know buffers.
    knows_buffers: bool,
    /// It has replied since the memory was shared: no message with the memory is in flight.
    has_taken: bool,
    /// Rings with their buffers, and the memory of the rings.
    kept: Vec<Box<dyn Send>>,
    buffers: usize,
}

impl Loan {
    pub(super) fn new(process: Option<Process>) -> Self {
        Self {
            process,
            regions: Vec::new(),
            knows_buffers: false,
            has_taken: false,
            kept: Vec::new(),
            buffers: 0,
        }
    }

    /// Records the regions that are about to be shared.
    pub(super) fn set_regions(&mut self, regions: &[Arc<MemoryRegion>]) {
        self.regions = regions.to_vec();
    }

    pub(super) fn regions(&self) -> &[Arc<MemoryRegion>] {
        &self.regions
    }

    /// Records that a ring, and with it buffers, is about to be made known to the back end.
    pub(super) fn set_knows_buffers(&mut self) {
        self.knows_buffers = true;
    }

    pub(super) fn knows_buffers(&self) -> bool {
        self.knows_buffers
    }

    /// Records that the back end has replied to all messages.
    pub(super) fn set_taken(&mut self) {
        let has = |process: &Process| process.has(&self.regions);
        if self.process.as_ref().and_then(has) == Some(false) {
            self.process = None;
        }
        self.has_taken = true;
    }

    /// Keeps a ring that holds so many buffers, now that it is no longer polled.
    pub(super) fn keep(&mut self, buffers: usize, ring: impl Send + 'static) {
        self.kept.push(Box::new(ring));
        self.buffers += buffers;
    }

    /// Whether the back end is proven to have released the memory; `thorough`: its mappings count
    /// too.
    fn is_over(&self, thorough: bool) -> bool {
        let has_let_go = |process: &Process| {
            thorough && self.has_taken && process.has(&self.regions) == Some(false)
        };
        let process = self.process.as_ref();
        process.is_some_and(|process| process.is_gone() || has_let_go(process))
    }
}

/// A loan that was not returned.
struct Outstanding {
    /// Without the memory that it keeps.
    loan: Loan,
    quarantine: Quarantine,
}

#[derive(Default)]
struct Inner {
    port: String,
    outstanding: Vec<Outstanding>,
    looked: Option<Instant>,
}

impl Inner {
    /// Returns loans that are proven to be over.
    fn look(&mut self, thorough: bool) {
        let port = &self.port;
        self.outstanding.retain(|Outstanding { loan, quarantine }| {
            let is_over = loan.is_over(thorough);
            if is_over {
                let (buffers, process) = (quarantine.buffers(), name(loan.process.as_ref()));
                // The same level as the warning about the loan.
                tracing::warn!(
                    "{port}: {process} has released its memory: {buffers} buffers are \
                                back"
                );
                quarantine.release();
            }
            !is_over
        });
    }
}

/// For messages.
fn name(process: Option<&Process>) -> String {
    match process {
        Some(process) => format!("the back end (process {})", process.number()),
        None => "the back end (an unknown process)".into(),
    }
}

/// The outstanding loans of a port. Loans that are outstanding when this is dropped are leaked.
#[derive(Default)]
pub(super) struct Lent(Mutex<Inner>);

impl Lent {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the port's name for messages.
    pub(super) fn set_port(&self, port: &str) {
        port.clone_into(&mut self.lock().port);
    }

    /// Takes over the loan of a session that has ended without an acknowledgement.
    pub(super) fn hold(&self, mut loan: Loan) {
        // A process that was killed ends a moment after its socket is closed.
        let began = Instant::now();
        while loan.process.is_some() && began.elapsed() < MOMENT {
            if loan.is_over(true) {
                return;
            }
            std::thread::sleep(MOMENT / 20);
        }
        let mut inner = self.lock();
        let (port, process, buffers) = (&inner.port, name(loan.process.as_ref()), loan.buffers);
        let until = match loan.process {
            Some(_) => "until it is gone or has unmapped the memory",
            None => "for good",
        };
        tracing::warn!(
            "{port}: {process} has not acknowledged that its rings are stopped: {buffers} buffers \
             that it may still write to are not used {until}"
        );
        let quarantine = Quarantine::new(&*inner.port);
        // Kept with the regions: ring memory that a back end may write is never reused.
        let kept = std::mem::take(&mut loan.kept);
        quarantine.hold((kept, loan.regions.clone()), buffers);
        inner.outstanding.push(Outstanding { loan, quarantine });
    }

    /// Returns loans that are proven to be over, at intervals; with `now`, checks in any case.
    /// Returns whether loans remain.
    pub(super) fn look(&self, now: bool) -> bool {
        let mut inner = self.lock();
        if inner.outstanding.is_empty() {
            return false;
        }
        let thorough = now || inner.looked.is_none_or(|at| at.elapsed() >= LOOK);
        if thorough {
            inner.looked = Some(Instant::now());
        }
        inner.look(thorough);
        !inner.outstanding.is_empty()
    }

    /// Whether the number of outstanding loans is at its maximum, so that no more memory is lent.
    pub(super) fn is_exhausted(&self) -> bool {
        self.lock().outstanding.len() >= MOST
    }

    /// Number of buffers that are out of use.
    pub(super) fn buffers(&self) -> usize {
        let inner = self.lock();
        let buffers = |outstanding: &Outstanding| outstanding.quarantine.buffers();
        inner.outstanding.iter().map(buffers).sum()
    }

    /// Returns all loans: for callers that are the back end themselves, and write nothing any more.
    #[cfg(any(test, fuzzing))]
    pub(super) fn release(&self) {
        for Outstanding { quarantine, .. } in self.lock().outstanding.drain(..) {
            quarantine.release();
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.look(true);
    }
}
