//! A row of the comparison: one operation on both sides.

use std::time::Instant;

use anyhow::Result;

/// What a row is.
pub(crate) struct Facts {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    /// The other side; `None` if it runs in another process.
    pub(crate) peer_name: Option<String>,
}

/// One operation. Each turn is a rate, a thousand millions of the unit a second.
pub(crate) trait Row {
    fn facts(&self) -> Facts;

    /// A turn of ours.
    fn ours(&mut self) -> Result<f64>;

    /// A turn of the peer, where that is in this process.
    fn peer(&mut self) -> Result<f64>;

    /// Fails if the two sides do not compute the same; writes the results of ours to a file if the
    /// peer is in another process.
    fn check(&mut self) -> Result<()>;
}

/// Thousand millions a second of a turn with so many elements.
pub(crate) fn timed(elements: usize, turn: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    turn()?;
    Ok(elements as f64 / start.elapsed().as_secs_f64() / 1e9)
}
