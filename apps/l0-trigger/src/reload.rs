//! Reload of the rules during a run: SIGHUP reads the configuration again.

use anyhow::{Context, Result};
use pollux_app::Reload;
use pollux_na62::stages::{DecideOptions, RuleExchange};
use pollux_pipelines::registry::StageRegistry;

use crate::config::{Source, TriggerConfig};

/// Applies the rules of the configuration to a run.
pub struct Rules<'a> {
    pub asked: Reload,
    pub source: Source,
    /// Registry of the stages in the configuration.
    pub stages: &'a StageRegistry,
    /// The configuration at the start of the run.
    pub started: TriggerConfig,
    pub exchange: Option<RuleExchange>,
}

impl Rules<'_> {
    /// Call it now and then, outside of the poll loop.
    pub fn keep(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            exchange.reclaim();
        }
        if !self.asked.is_asked() {
            return;
        }
        if let Err(error) = self.reload() {
            tracing::error!("SIGHUP: {error:#}: the rules are unchanged");
        }
    }

    fn reload(&mut self) -> Result<()> {
        let file = self.source.file();
        let file = file.context("there is no --config to reload")?;
        let config = TriggerConfig::read(file, self.stages)?;
        let other = config.differences(&self.started);
        if !other.is_empty() {
            let tables = other.join(", ");
            tracing::warn!("SIGHUP: {tables}: changes there take effect at the next start");
        }
        let (Some(exchange), Some(rules)) = (&mut self.exchange, config.rules()?) else {
            return Ok(());
        };
        if rules == *exchange.options() {
            tracing::info!("SIGHUP: the rules are the same");
            return Ok(());
        }
        let changes = changes(exchange.options(), &rules);
        let set = exchange.offer(&rules)?;
        let names = rules.rules.iter().map(|rule| rule.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        tracing::info!("SIGHUP: rules of set {set} from now on: {names}; changed: {changes}");
        Ok(())
    }
}

/// Summary of the differences between two sets of rules, in a line.
fn changes(old: &DecideOptions, new: &DecideOptions) -> String {
    let find = |rules: &'_ DecideOptions, name: &str| {
        let found = rules.rules.iter().find(|rule| rule.name == name);
        found.map(ToString::to_string)
    };
    let mut changes = Vec::new();
    for rule in &new.rules {
        let asks = rule.to_string();
        match find(old, &rule.name) {
            None => changes.push(format!("{} is new ({asks})", rule.name)),
            Some(asked) if asked != asks => {
                changes.push(format!("{} ({asked}) is now ({asks})", rule.name));
            }
            Some(_) => {}
        }
    }
    let gone = old.rules.iter().map(|rule| &rule.name);
    let gone = gone.filter(|name| find(new, name).is_none());
    changes.extend(gone.map(|name| format!("{name} is gone")));
    if old.downscale != new.downscale {
        let (old, new) = (old.downscale, new.downscale);
        changes.push(format!("downscale = {old} is now {new}"));
    }
    if changes.is_empty() {
        // The remaining differences are the order, and equivalent criteria.
        changes.push("the order, or how they are written".into());
    }
    changes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pollux_na62::stages::RuleOptions;

    #[test]
    fn what_has_changed_is_told() {
        let rule = |name: &str, prescale| RuleOptions {
            name: name.into(),
            prescale,
            ..RuleOptions::default()
        };
        let set = |rules: &[RuleOptions], downscale| DecideOptions {
            rules: rules.to_vec(),
            downscale,
        };
        let old = set(&[rule("a", 1), rule("b", 1)], 0);
        let told = changes(&old, &set(&[rule("a", 10), rule("c", 1)], 7));
        let expected = "a (rings: 1 or more) is now (rings: 1 or more, one in 10 of them), c is new \
                        (rings: 1 or more), b is gone, downscale = 0 is now 7";
        assert_eq!(told, expected);
        let turned = set(&[rule("b", 1), rule("a", 1)], 0);
        assert!(changes(&old, &turned).contains("order"));
    }
}
