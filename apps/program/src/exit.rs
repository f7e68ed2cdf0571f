//! How a program ends.

use std::process::ExitCode;

use pollux_pmd::PortError;

use crate::say;

/// Why a program did not do what was asked; the exit status depends on it.
#[derive(Debug)]
pub enum Failure {
    /// It was asked for something that cannot be done: status 2.
    Usage(anyhow::Error),
    /// It was tried, and failed: status 1.
    Run(anyhow::Error),
}

impl Failure {
    /// For `map_err` where what failed is the fault of whoever asked.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::Usage(error.into())
    }
}

impl From<anyhow::Error> for Failure {
    /// A port's error keeps its meaning, however much was said around it.
    fn from(error: anyhow::Error) -> Self {
        if error.downcast_ref().is_some_and(PortError::is_usage) {
            Self::Usage(error)
        } else {
            Self::Run(error)
        }
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        anyhow::Error::from(error).into()
    }
}

/// Tells the user what went wrong, and gives the status of the process.
pub fn exit(result: Result<(), Failure>) -> ExitCode {
    let (error, status) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => (error, 2),
        Err(Failure::Run(error)) => (error, 1),
    };
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Messages of the libraries end with their cause already.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    say(format_args!("error: {text}"));
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anyhow::Context as _;
    use pollux_pmd::Registry;

    #[test]
    fn a_wrong_spec_is_usage_in_any_context() {
        let wrong = Registry::builtin().check("nothing").context("--port");
        assert!(matches!(
            Failure::from(wrong.unwrap_err()),
            Failure::Usage(_)
        ));
        let missing = Registry::builtin().open("pcap:rx=/nowhere").map(drop);
        let missing = Failure::from(missing.unwrap_err());
        assert!(matches!(missing, Failure::Run(_)));
    }
}
