//! Other rules while the run goes on: SIGHUP has the configuration read again.

use std::path::PathBuf;

use anyhow::{Context, Result};
use pollux_pipelines::stages::RuleExchange;
use pollux_program::Reload;

use crate::config::TriggerConfig;

/// Keeps the rules of a run as its configuration has them.
pub struct Rules {
    pub asked: Reload,
    /// What `--config` names.
    pub file: Option<PathBuf>,
    /// What the run was started with.
    pub started: TriggerConfig,
    pub exchange: Option<RuleExchange>,
}

impl Rules {
    /// To be called now and then, outside of the poll loop.
    pub fn keep(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            exchange.reclaim();
        }
        if !self.asked.is_asked() {
            return;
        }
        if let Err(error) = self.reload() {
            tracing::error!("SIGHUP: {error:#}: the rules stay as they are");
        }
    }

    fn reload(&mut self) -> Result<()> {
        let file = self.file.as_ref();
        let file = file.context("there is no --config to be read again")?;
        let config = TriggerConfig::read(file)?;
        let other = config.differences(&self.started);
        if !other.is_empty() {
            let tables = other.join(", ");
            tracing::warn!("SIGHUP: {tables}: what changed there waits for the next start");
        }
        let (Some(exchange), Some(rules)) = (&mut self.exchange, config.rules()?) else {
            return Ok(());
        };
        if rules == *exchange.options() {
            tracing::info!("SIGHUP: the rules are the same");
            return Ok(());
        }
        let set = exchange.offer(&rules)?;
        let names = rules.rules.iter().map(|rule| rule.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        tracing::info!("SIGHUP: rules of set {set} from now on: {names}");
        Ok(())
    }
}
