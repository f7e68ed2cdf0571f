//! What a front end has lent to back ends, until each is proven to have let go of it.
//!
//! A back end has the whole memory mapped, and knows the buffers that were posted in its rings: it
//! may write to them at any time. That a session has ended proves nothing: a process that has closed
//! its socket, or hangs, or does not keep to the protocol, has the memory still. What it knew is
//! given back on one of these proofs, and is kept out of use before:
//!
//! - It has acknowledged the stop of all its rings (GET_VRING_BASE).
//! - Its process is gone, and its mappings with it.
//! - Its process has neither open nor mapped any of the memory, though it did while the session
//!   lasted: it has closed the device properly and goes on with something else.
//!
//! The process is the one that has opened the other end of the socket. One that does not have the
//! memory once the rings have started is not the back end (it has left its socket to another
//! process), and proves nothing. Where this process may not look into it, it is taken for the back
//! end, and its end is the one proof.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pollux_mempool::region::MemoryRegion;

use super::process::Process;
use crate::quarantine::Quarantine;

/// How often it is looked at what a process has mapped. (Whether it is gone costs less.)
const LOOK: Duration = Duration::from_millis(500);

/// How long a back end that has gone may take to let go before it is warned of.
/// (A fuzzer's never does.)
const MOMENT: Duration = Duration::from_millis(if cfg!(fuzzing) { 0 } else { 100 });

/// Loans that may be outstanding: each keeps memory of rings, and a file of its process.
const MOST: usize = 64;

/// What one session lends.
pub(super) struct Loan {
    /// The back end's process, where it is known.
    process: Option<Process>,
    /// All that the back end may have mapped.
    regions: Vec<Arc<MemoryRegion>>,
    /// The back end may know buffers.
    is_told: bool,
    /// It has answered since it was given the memory: no message is on its way that has it.
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
            is_told: false,
            has_taken: false,
            kept: Vec::new(),
            buffers: 0,
        }
    }

    /// These regions are about to be shared.
    pub(super) fn set_regions(&mut self, regions: &[Arc<MemoryRegion>]) {
        self.regions = regions.to_vec();
    }

    pub(super) fn regions(&self) -> &[Arc<MemoryRegion>] {
        &self.regions
    }

    /// The back end is about to be told of a ring, and so of buffers.
    pub(super) fn set_told(&mut self) {
        self.is_told = true;
    }

    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// The back end has answered behind all that it was told.
    pub(super) fn set_taken(&mut self) {
        let has = |process: &Process| process.has(&self.regions);
        if self.process.as_ref().and_then(has) == Some(false) {
            self.process = None;
        }
        self.has_taken = true;
    }

    /// Keeps a ring that holds so many buffers, now that it is not polled any more.
    pub(super) fn keep(&mut self, buffers: usize, ring: impl Send + 'static) {
        self.kept.push(Box::new(ring));
        self.buffers += buffers;
    }

    /// Whether the back end is proven to have let go; `thorough`: what it has mapped counts too.
    fn is_over(&self, thorough: bool) -> bool {
        let has_let_go = |process: &Process| {
            thorough && self.has_taken && process.has(&self.regions) == Some(false)
        };
        let process = self.process.as_ref();
        process.is_some_and(|process| process.is_gone() || has_let_go(process))
    }
}

/// A loan that was not given back.
struct Outstanding {
    /// Without what it keeps.
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
    /// Gives back what is proven to be over.
    fn look(&mut self, thorough: bool) {
        let port = &self.port;
        self.outstanding.retain(|Outstanding { loan, quarantine }| {
            let is_over = loan.is_over(thorough);
            if is_over {
                let (buffers, process) = (quarantine.buffers(), name(loan.process.as_ref()));
                // As loud as the warning that it had not.
                tracing::warn!("{port}: {process} has let go: {buffers} buffers are back");
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

/// The loans of a port that were not given back. What is not given back when this is dropped is
/// leaked.
#[derive(Default)]
pub(super) struct Lent(Mutex<Inner>);

impl Lent {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names the port in messages.
    pub(super) fn set_port(&self, port: &str) {
        port.clone_into(&mut self.lock().port);
    }

    /// Takes over the loan of a session that has ended without an acknowledgement.
    pub(super) fn hold(&self, mut loan: Loan) {
        // A process that was killed is gone a moment after its socket is.
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
        // With the regions: memory of rings that a back end may write is never used again.
        let kept = std::mem::take(&mut loan.kept);
        quarantine.hold((kept, loan.regions.clone()), buffers);
        inner.outstanding.push(Outstanding { loan, quarantine });
    }

    /// Gives back what is proven to be over, if it is time to look; `now`: looks in any case.
    /// Whether there is something left.
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

    /// Whether so many loans are outstanding that nothing more is lent.
    pub(super) fn is_exhausted(&self) -> bool {
        self.lock().outstanding.len() >= MOST
    }

    /// Buffers that are kept out of use.
    pub(super) fn buffers(&self) -> usize {
        let inner = self.lock();
        let buffers = |outstanding: &Outstanding| outstanding.quarantine.buffers();
        inner.outstanding.iter().map(buffers).sum()
    }

    /// Gives everything back: for those who are the back end themselves, and write no more.
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
