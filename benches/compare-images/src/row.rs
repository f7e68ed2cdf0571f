//! A row of the comparison: one operation on both sides.

use std::time::{Duration, Instant};

use anyhow::Result;

/// What a row is.
pub(crate) struct Facts {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    /// The other side; `None` if it runs in another process.
    pub(crate) peer_name: Option<String>,
}

/// What a turn has measured, in thousand millions of the unit a second.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) rate: f64,
    /// The rate over the time alone in which the core had something to do, where it waits for another.
    pub(crate) busy: Option<f64>,
}

/// One operation.
pub(crate) trait Row {
    fn facts(&self) -> Facts;

    /// A turn of ours.
    fn ours(&mut self) -> Result<Turn>;

    /// A turn of the peer, where that is in this process.
    fn peer(&mut self) -> Result<Turn>;

    /// Fails if the two sides do not compute the same; writes the results of ours to a file if the
    /// peer is in another process.
    fn check(&mut self) -> Result<()>;
}

/// Times a turn with so many elements.
pub(crate) fn timed(elements: usize, turn: impl FnOnce() -> Result<()>) -> Result<Turn> {
    let start = Instant::now();
    turn()?;
    Ok(Turn {
        rate: giga(elements, start.elapsed()),
        busy: None,
    })
}

/// Thousand millions a second.
pub(crate) fn giga(elements: usize, time: Duration) -> f64 {
    elements as f64 / time.as_secs_f64() / 1e9
}
