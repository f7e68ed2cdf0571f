//! How a sub-command ends.

use std::process::ExitCode;

use pollux_pmd::PortError;

/// Why a sub-command did not do what was asked; the exit status depends on it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was asked for something that cannot be done: status 2.
    Usage(anyhow::Error),
    /// It was tried, and failed: status 1.
    Run(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Run(error)
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        if error.is_usage() {
            Self::Usage(error.into())
        } else {
            Self::Run(error.into())
        }
    }
}

/// Tells the user, and gives the status of the process.
pub(crate) fn report(result: Result<(), Failure>) -> ExitCode {
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
    eprintln!("error: {text}");
    ExitCode::from(status)
}
