//! Decide: which events the experiment keeps.

mod rules;
mod set;

use std::sync::Arc;

use pollux_pipelines::StageEnv;
use pollux_pipelines::stage::{Batch, Sink, Stage};

pub use rules::{DecideOptions, MAX_RULES, RuleError, RuleOptions};
pub use set::{RuleBook, RuleCounts, RuleExchange, RuleSetCounts};

use self::set::{Inbox, RuleSet};
use crate::l0::{Decision, L0Stats, Reconstructed, stats};
use crate::rich::find::FinderConfig;

/// Decides about each event.
pub struct Decide {
    rules: Box<RuleSet>,
    inbox: Inbox,
    stats: Arc<L0Stats>,
}

impl Decide {
    /// Makes the stage; `env` has the other end of the exchange of its rules then, a
    /// [`RuleExchange`], and what is doubtful about them.
    ///
    /// # Errors
    /// The first rule that is wrong.
    pub fn new(options: &DecideOptions, env: &mut StageEnv) -> Result<Self, String> {
        let (rules, inbox, exchange) = RuleExchange::new(options)?;
        let doubts = options.doubts(env.get::<FinderConfig>().ok());
        env.warnings.extend(doubts);
        env.insert(exchange);
        Ok(Self {
            rules,
            inbox,
            stats: stats(env)?,
        })
    }
}

impl Stage for Decide {
    type In = Reconstructed;
    type Out = Decision;

    fn process(&mut self, batch: &mut Batch<Reconstructed>, out: &mut impl Sink<Decision>) {
        self.inbox.take_over(&mut self.rules);
        for event in batch.drain() {
            let verdict = self.rules.judge(&event);
            let counts = &self.stats.events;
            // Here, and not where they are found: that may be in several loops.
            counts.rings.add(event.rings().len() as u64);
            if verdict.accepted() {
                counts.accepted.add(1);
            } else {
                counts.rejected.add(1);
            }
            out.push(event.decided(verdict));
        }
    }
}
