//! Ends before the end: a signal stops a conversation.

use anyhow::Result;
use pollux_pmd::lcore::StopFlag;
use pollux_rdma::exchange::ExchangeError;

/// Error: the program was stopped.
#[derive(Debug, thiserror::Error)]
#[error("stopped by a signal")]
struct Stopped;

/// Refuses to go on after a stop.
pub(super) fn expect_no_stop(stop: &StopFlag) -> Result<()> {
    if stop.is_set() {
        return Err(Stopped.into());
    }
    Ok(())
}

/// Whether an error is nothing but a stop.
pub(super) fn is_stop(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let exchange = cause.downcast_ref();
        cause.is::<Stopped>() || matches!(exchange, Some(ExchangeError::Stopped { .. }))
    })
}
