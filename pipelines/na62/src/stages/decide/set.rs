//! Active rule sets, and their replacement while events are being decided.

use std::sync::{Arc, Mutex, PoisonError};

use pollux_mempool::{BoxConsumer, BoxProducer, box_ring};
use pollux_pmd::Count;

use super::rules::{DecideOptions, RuleError, RuleOptions};
use crate::l0::{Reconstructed, Verdict};

/// Maximum number of rule sets that wait for the stage: several only if they are replaced in quick
/// succession.
const WAITING: usize = 4;

/// Counts of one rule.
#[derive(Debug)]
#[non_exhaustive]
pub struct RuleCounts {
    /// The rule.
    pub rule: RuleOptions,
    /// Events that it holds for.
    pub held: Count,
    /// Events that it accepted.
    pub accepted: Count,
}

/// Counts of one rule set.
#[derive(Debug)]
#[non_exhaustive]
pub struct RuleSetCounts {
    /// Its number in the run, from 0.
    pub number: u16,
    /// Events that it decided.
    pub events: Count,
    /// Events that it accepted.
    pub accepted: Count,
    /// Rejected events that are kept for monitoring.
    pub monitored: Count,
    /// Its rules, in order: the first has bit 0 of a decision.
    pub rules: Vec<RuleCounts>,
}

/// Prescaler: passes one in so many events, beginning with the first. It depends on the order of
/// the events only, so that the same input gives the same output.
#[derive(Debug)]
struct OneIn {
    n: u32,
    /// Number of events to hold back before the next one passes.
    left: u32,
}

impl OneIn {
    fn new(n: u32) -> Self {
        Self { n, left: 0 }
    }

    #[inline]
    fn passes(&mut self) -> bool {
        let passes = self.left == 0;
        self.left = if passes { self.n } else { self.left } - 1;
        passes
    }
}

/// An active rule set.
pub(super) struct RuleSet {
    rules: Vec<(RuleOptions, OneIn)>,
    monitor: Option<OneIn>,
    counts: Arc<RuleSetCounts>,
}

impl RuleSet {
    /// Creates a set from options that were checked.
    fn new(options: &DecideOptions, number: u16) -> Self {
        let counts = options.rules.iter().map(|rule| RuleCounts {
            rule: rule.clone(),
            held: Count::default(),
            accepted: Count::default(),
        });
        let rules = options.rules.iter();
        Self {
            rules: rules
                .map(|rule| (rule.clone(), OneIn::new(rule.prescale)))
                .collect(),
            monitor: (options.downscale > 0).then(|| OneIn::new(options.downscale)),
            counts: Arc::new(RuleSetCounts {
                number,
                events: Count::default(),
                accepted: Count::default(),
                monitored: Count::default(),
                rules: counts.collect(),
            }),
        }
    }

    /// The verdict of the set on an event.
    #[inline]
    pub(super) fn judge(&mut self, event: &Reconstructed) -> Verdict {
        let counts = &*self.counts;
        let mut verdict = Verdict {
            rule_set: counts.number,
            ..Verdict::default()
        };
        let rules = self.rules.iter_mut().zip(&counts.rules);
        for (bit, ((rule, prescale), counts)) in rules.enumerate() {
            if !rule.holds(event) {
                continue;
            }
            counts.held.add(1);
            if prescale.passes() {
                counts.accepted.add(1);
                verdict.rules |= 1 << bit;
            }
        }
        counts.events.add(1);
        if verdict.accepted() {
            counts.accepted.add(1);
        } else if self.monitor.as_mut().is_some_and(OneIn::passes) {
            counts.monitored.add(1);
            verdict.monitored = true;
        }
        verdict
    }
}

/// The stage's end of an exchange.
pub(super) struct Inbox {
    next: BoxConsumer<RuleSet>,
    replaced: BoxProducer<RuleSet>,
}

impl Inbox {
    /// Activates the latest set that waits, if any; those before it were withdrawn.
    #[inline]
    pub(super) fn take_over(&mut self, rules: &mut Box<RuleSet>) {
        while let Some(next) = self.next.pop() {
            self.replace(rules, next);
        }
    }

    #[cold]
    fn replace(&mut self, rules: &mut Box<RuleSet>, next: Box<RuleSet>) {
        let old = std::mem::replace(rules, next);
        // It fits: no more sets are in flight than this ring holds.
        drop(self.replaced.push(old));
    }
}

/// Counts of all rule sets of a run, in order. Clones share them.
#[derive(Clone, Default)]
pub struct RuleBook(Arc<Mutex<Vec<Arc<RuleSetCounts>>>>);

impl RuleBook {
    /// The counts of all sets so far.
    #[must_use]
    pub fn sets(&self) -> Vec<Arc<RuleSetCounts>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn add(&self, set: &RuleSet) {
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sets.push(Arc::clone(&set.counts));
    }
}

/// Replaces the rules of a running [`Decide`](super::Decide).
///
/// Rule sets go to the stage and back through two rings. The poll loop activates the latest set
/// between two batches or at its next tick, so that none waits for events, without a lock; replaced
/// ones are freed here. Every event is decided by one set, and a [`Verdict`] names it.
pub struct RuleExchange {
    /// The most recent rules.
    options: DecideOptions,
    next: BoxProducer<RuleSet>,
    replaced: BoxConsumer<RuleSet>,
    /// Number of sets that the stage or the rings hold, besides the active one.
    under_way: usize,
    book: RuleBook,
}

impl RuleExchange {
    /// The first set, and both ends.
    pub(super) fn new(options: &DecideOptions) -> Result<(Box<RuleSet>, Inbox, Self), String> {
        options.check().map_err(|error| error.to_string())?;
        let ring = || box_ring(WAITING).map_err(|error| error.to_string());
        let ((next, inbox), (outbox, replaced)) = (ring()?, ring()?);
        let (first, book) = (Box::new(RuleSet::new(options, 0)), RuleBook::default());
        book.add(&first);
        let inbox = Inbox {
            next: inbox,
            replaced: outbox,
        };
        let exchange = Self {
            options: options.clone(),
            next,
            replaced,
            under_way: 0,
            book,
        };
        Ok((first, inbox, exchange))
    }

    /// The most recent rules.
    #[must_use]
    pub fn options(&self) -> &DecideOptions {
        &self.options
    }

    /// Counts of the rule sets.
    #[must_use]
    pub fn book(&self) -> RuleBook {
        self.book.clone()
    }

    /// Makes the stage activate other rules before its next batch; returns the number of the set.
    ///
    /// # Errors
    /// Invalid rules; [`RuleError::Busy`] if the stage has not run for a while.
    pub fn offer(&mut self, options: &DecideOptions) -> Result<u16, RuleError> {
        options.check()?;
        self.reclaim();
        if self.under_way == WAITING {
            return Err(RuleError::Busy);
        }
        let number = self.book.sets().len() as u16;
        let set = Box::new(RuleSet::new(options, number));
        self.book.add(&set);
        // It fits: no more sets are in flight than the ring holds.
        drop(self.next.push(set));
        self.under_way += 1;
        self.options = options.clone();
        Ok(number)
    }

    /// Frees the sets that were replaced. Call it now and then, outside of the poll loop.
    pub fn reclaim(&mut self) {
        while let Some(old) = self.replaced.pop() {
            drop(old);
            self.under_way -= 1;
        }
    }
}
