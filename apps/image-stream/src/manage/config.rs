//! Configuration of the manager: TOML.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pollux_app::lines::Address;
use pollux_images::control::SourceRun;
use pollux_images::transfer::{MAX_RECEIVERS, TransferConfig};
use serde::Deserialize;

/// Longest time in the configuration, in seconds: a day.
const LONGEST: f64 = 86_400.0;

/// A source, its receivers, and how long the manager waits for them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ManageConfig {
    /// Longest pause of the source.
    pub(super) resume_after_s: Option<f64>,
    /// For the reply to a request.
    #[serde(default = "reply_timeout")]
    reply_timeout_s: f64,
    /// For a node to open its ports and files.
    #[serde(default = "long_timeout")]
    arm_timeout_s: f64,
    /// For a node to complete its files.
    #[serde(default = "long_timeout")]
    finish_timeout_s: f64,
    pub(super) source: SourceConfig,
    pub(super) receiver: Vec<ReceiverConfig>,
}

const fn reply_timeout() -> f64 {
    5.0
}

const fn long_timeout() -> f64 {
    60.0
}

/// The source, and what it sends.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceConfig {
    name: Option<String>,
    pub(super) control: Address,
    frames: Option<u64>,
    rate_hz: Option<f64>,
}

/// A receiver and its transfers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceiverConfig {
    name: Option<String>,
    pub(super) control: Address,
    #[serde(default)]
    pub(super) transfer: Vec<TransferConfig>,
}

impl SourceConfig {
    /// Name for messages and the report.
    pub(super) fn name(&self) -> String {
        self.name
            .clone()
            .unwrap_or_else(|| self.control.to_string())
    }

    /// What it sends.
    pub(super) fn run(&self) -> SourceRun {
        SourceRun {
            frames: self.frames,
            rate_hz: self.rate_hz,
        }
    }
}

impl ReceiverConfig {
    /// Name for messages and the report.
    pub(super) fn name(&self) -> String {
        self.name
            .clone()
            .unwrap_or_else(|| self.control.to_string())
    }
}

impl ManageConfig {
    /// Reads and checks a file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let name = || format!("--config {}", path.display());
        let text = pollux_app::read_text(path).with_context(name)?;
        let config: Self = toml::from_str(&text).with_context(name)?;
        config.check().with_context(name)?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        let receivers = self.receiver.len();
        ensure!(
            (1..=MAX_RECEIVERS).contains(&receivers),
            "{receivers} receivers: give 1 to {MAX_RECEIVERS} [[receiver]] tables"
        );
        for (key, seconds) in [
            ("resume_after_s", self.resume_after_s.unwrap_or(1.0)),
            ("reply_timeout_s", self.reply_timeout_s),
            ("arm_timeout_s", self.arm_timeout_s),
            ("finish_timeout_s", self.finish_timeout_s),
        ] {
            ensure!(
                seconds > 0.0 && seconds <= LONGEST,
                "{key} = {seconds}: give seconds above 0, at most {LONGEST}"
            );
        }
        let rate = self.source.rate_hz.unwrap_or_default();
        ensure!(
            rate >= 0.0 && rate.is_finite(),
            "[source] rate_hz = {rate}: give frames a second, or 0 for as many as possible"
        );
        let mut nodes = vec![(self.source.name(), &self.source.control)];
        for receiver in &self.receiver {
            let (name, control) = (receiver.name(), &receiver.control);
            ensure!(
                nodes.iter().all(|(_, other)| *other != control),
                "control = \"{control}\" is there twice: a node has one table, with all of its transfers"
            );
            ensure!(
                nodes.iter().all(|(other, _)| *other != name),
                "two nodes are named `{name}`: give each its own name"
            );
            nodes.push((name, control));
        }
        Ok(())
    }

    /// Longest pause of the source.
    pub(super) fn resume_after(&self) -> Option<Duration> {
        self.resume_after_s.map(Duration::from_secs_f64)
    }

    /// For the reply to a request.
    pub(super) fn reply_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.reply_timeout_s)
    }

    /// For a node to open its ports and files.
    pub(super) fn arm_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.arm_timeout_s)
    }

    /// For a node to complete its files.
    pub(super) fn finish_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.finish_timeout_s)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NODES: &str = "[source]\ncontrol = \"/a\"\n[[receiver]]\ncontrol = \"/b\"\n";

    fn read(text: &str) -> Result<ManageConfig> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("manage.toml");
        fs::write(&path, text)?;
        ManageConfig::read(&path)
    }

    #[test]
    fn a_configuration_is_read() {
        let config = read(NODES).unwrap();
        assert_eq!(config.source.name(), "unix:/a");
        assert_eq!(config.source.run(), SourceRun::default());
        assert_eq!(config.reply_timeout(), Duration::from_secs(5));
        let example = super::super::AFTER_HELP;
        let (_, example) = example.split_once("Configuration:\n").unwrap();
        let (example, _) = example.split_once("\n\n").unwrap();
        let config = read(example).unwrap();
        assert_eq!(config.resume_after(), Some(Duration::from_secs(10)));
        assert_eq!(config.receiver[0].name(), "viewer");
        assert_eq!(config.receiver[0].transfer[0].every, 10);
    }

    #[test]
    fn wrong_configurations_are_named() {
        for (text, said) in [
            ("", "source"),
            ("[source]\ncontrol = \"/a\"\n", "receiver"),
            (
                "receiver = []\n[source]\ncontrol = \"/a\"\n",
                "0 receivers: give 1",
            ),
            (&format!("{NODES}x = 1\n"), "x"),
            (&NODES.replace("/a", "a"), "unix:PATH"),
            (&NODES.replace("/b", "/a"), "is there twice"),
            (
                &format!("{NODES}name = \"unix:/a\"\n"),
                "two nodes are named",
            ),
            (
                &format!("reply_timeout_s = 0\n{NODES}"),
                "reply_timeout_s = 0",
            ),
            (
                &format!("resume_after_s = nan\n{NODES}"),
                "resume_after_s = NaN",
            ),
            (
                &NODES.replace("\"/a\"", "\"/a\"\nrate_hz = -1"),
                "rate_hz = -1",
            ),
            (&NODES.replace("\"/a\"", "\"/a\"\nframes = -1"), "-1"),
            (
                &format!("{NODES}[[receiver.transfer]]\nname = \"x\"\nrows = 1\n"),
                "rows",
            ),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(
                error.contains(said) && error.contains("manage.toml"),
                "{error}"
            );
        }
    }
}
