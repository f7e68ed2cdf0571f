//! Exit status and error output of a program.

use std::process::ExitCode;

use pollux_mempool::PoolError;
use pollux_pmd::PortError;

use crate::user_message;

/// Failure of a program; it determines the exit status.
#[derive(Debug)]
pub enum Failure {
    /// The request is invalid: status 2.
    Usage(anyhow::Error),
    /// The operation failed: status 1.
    Run(anyhow::Error),
}

impl Failure {
    /// For `map_err` where the error lies in the request.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::Usage(error.into())
    }
}

impl From<anyhow::Error> for Failure {
    /// An error of a port or of a pool keeps its class whatever context was added to it.
    fn from(error: anyhow::Error) -> Self {
        let of_port = error.downcast_ref().is_some_and(PortError::is_usage);
        if of_port || error.downcast_ref().is_some_and(PoolError::is_usage) {
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

/// Prints the error and returns the exit status of the process.
#[must_use]
pub fn exit(result: Result<(), Failure>) -> ExitCode {
    let (error, status) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => (error, 2),
        Err(Failure::Run(error)) => (error, 1),
    };
    user_message(format_args!("error: {}", text(&error)));
    ExitCode::from(status)
}

/// An error with its causes.
fn text(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Messages of some libraries already end with their cause.
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anyhow::Context as _;
    use pollux_pmd::Registry;

    #[test]
    fn each_cause_is_there_once() {
        let error = |cause: &'static str| anyhow::anyhow!(cause).context("[detector] modules: 70");
        assert_eq!(text(&error("modules")), "[detector] modules: 70: modules");
        assert_eq!(text(&error("70")), "[detector] modules: 70");
        let deep = error("0 modules").context("--config x.toml");
        assert_eq!(
            text(&deep),
            "--config x.toml: [detector] modules: 70: 0 modules"
        );
    }

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
