//! Source of a configuration.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

/// Source of the configuration of a run.
#[derive(Clone, Debug, Default)]
pub enum Source {
    /// The configuration of the demonstration.
    #[default]
    BuiltIn,
    /// A file.
    File(PathBuf),
    /// Text of the embedding program.
    Text(String),
}

impl Source {
    /// The original text; empty for the built-in configuration.
    pub fn text(&self) -> Result<String> {
        match self {
            Self::BuiltIn => Ok(String::new()),
            Self::File(path) => pollux_app::read_text(path).context("--config"),
            Self::Text(text) => Ok(text.clone()),
        }
    }

    /// The path of the file, if it is one.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) => Some(path),
            Self::BuiltIn | Self::Text(_) => None,
        }
    }
}
