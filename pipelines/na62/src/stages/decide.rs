//! Stage `decide`: selects the events that the experiment keeps.

mod rules;
mod set;

use std::sync::Arc;

use pollux_pipelines::StageEnv;
use pollux_pipelines::sink::Output;
use pollux_pipelines::stage::{Batch, Moment, Stage};

pub use rules::{DecideOptions, MAX_RULES, RuleError, RuleOptions};
pub use set::{RuleBook, RuleCounts, RuleExchange, RuleSetCounts};

use self::set::{Inbox, RuleSet};
use super::read_mtp::WithoutHits;
use crate::l0::{Decision, L0Stats, Reconstructed, stats};
use crate::rich::find::FinderConfig;

/// Makes the decision on each event.
pub struct Decide {
    rules: Box<RuleSet>,
    inbox: Inbox,
    stats: Arc<L0Stats>,
}

impl Decide {
    /// Creates the stage. `env` then holds the other end of its rule exchange, a [`RuleExchange`],
    /// and warnings about the rules.
    ///
    /// # Errors
    /// The first invalid rule.
    pub fn new(options: &DecideOptions, env: &mut StageEnv) -> Result<Self, String> {
        let (rules, inbox, exchange) = RuleExchange::new(options)?;
        let doubts = match env.get::<WithoutHits>() {
            Ok(WithoutHits) => options.need_hits(),
            Err(_) => options.doubts(env.get::<FinderConfig>().ok()),
        };
        let stats = stats(env)?;
        env.warnings.extend(doubts);
        env.warnings
            .extend(options.need_sources(stats.sources.len()));
        env.insert(exchange);
        Ok(Self {
            rules,
            inbox,
            stats,
        })
    }
}

impl Stage for Decide {
    type In = Reconstructed;
    type Out = Decision;

    fn process(&mut self, batch: &mut Batch<Reconstructed>, out: &mut impl Output<Decision>) {
        self.inbox.take_over(&mut self.rules);
        for event in batch.drain() {
            let verdict = self.rules.judge(&event);
            let counts = &self.stats.events;
            // Counted here and not in the ring finder, which may run in several loops.
            counts.rings.add(event.rings().len() as u64);
            if verdict.accepted() {
                counts.accepted.add(1);
            } else {
                counts.rejected.add(1);
            }
            out.push(event.decided(verdict));
        }
    }

    /// Without events there are no batches, and rules change nevertheless.
    fn tick(&mut self, _now: Moment, _out: &mut impl Output<Decision>) {
        self.inbox.take_over(&mut self.rules);
    }
}
