//! The loss ledger: every frame from the wire is delivered, or dropped for a named cause.
//!
//! Each place that takes frames from the wire, delivers them, or loses them owns one [`Tally`] and
//! is its only writer. A [`Ledger`] is a list of views on the tallies of one run. [`Ledger::check`]
//! verifies the invariant `from wire = delivered + sum of drops by cause`, which holds whenever no
//! frame is between two places, hence at every stop.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

pub use crate::cause::{CAUSES, Cause, CauseError};
use crate::count::Count;

struct Cells {
    from_wire: Count,
    bytes: Count,
    delivered: Count,
    /// Indexed by [`Cause::index`].
    dropped: [Count; CAUSES],
}

impl Default for Cells {
    fn default() -> Self {
        Self {
            from_wire: Count::default(),
            bytes: Count::default(),
            delivered: Count::default(),
            dropped: std::array::from_fn(|_| Count::default()),
        }
    }
}

/// Counters of one place, and the exclusive right to write them.
#[derive(Default)]
pub struct Tally(Arc<CachePadded<Cells>>);

impl Tally {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts frames that reached the port; `bytes` is their total length.
    #[inline]
    pub fn count_from_wire(&mut self, frames: u64, bytes: u64) {
        self.0.from_wire.add(frames);
        self.0.bytes.add(bytes);
    }

    /// Counts frames that reached their consumer.
    #[inline]
    pub fn count_delivered(&mut self, frames: u64) {
        self.0.delivered.add(frames);
    }

    /// Counts lost frames.
    #[inline]
    pub fn count_dropped(&mut self, cause: Cause, frames: u64) {
        self.0.dropped[cause.index()].add(frames);
    }

    /// A reader of these counters.
    #[must_use]
    pub fn view(&self) -> TallyView {
        TallyView(Arc::clone(&self.0))
    }
}

/// A reader of the counters of one place.
#[derive(Clone)]
pub struct TallyView(Arc<CachePadded<Cells>>);

impl TallyView {
    /// A snapshot of the counters. While the writer runs, values may belong to slightly different
    /// moments.
    #[must_use]
    pub fn balance(&self) -> Balance {
        Balance {
            from_wire: self.0.from_wire.get(),
            bytes: self.0.bytes.get(),
            delivered: self.0.delivered.get(),
            dropped: std::array::from_fn(|i| self.0.dropped[i].get()),
        }
    }
}

/// A sum of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// Frames that reached the ports.
    pub from_wire: u64,
    /// Their bytes, without preamble and frame check sequence.
    pub bytes: u64,
    /// Frames that reached their consumers.
    pub delivered: u64,
    /// Lost frames, indexed by [`Cause::index`].
    pub dropped: [u64; CAUSES],
}

impl Default for Balance {
    fn default() -> Self {
        Self {
            from_wire: 0,
            bytes: 0,
            delivered: 0,
            dropped: [0; CAUSES],
        }
    }
}

impl Balance {
    /// Frames lost for one cause.
    #[must_use]
    pub fn dropped_for(&self, cause: Cause) -> u64 {
        self.dropped[cause.index()]
    }

    /// Frames lost for all causes.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Causes with a non-zero count.
    pub fn drops(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::all()
            .map(|cause| (cause, self.dropped_for(cause)))
            .filter(|&(_, n)| n > 0)
    }

    /// Whether every frame is accounted for.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.from_wire == self.delivered + self.dropped_total()
    }

    /// Adds the counters of another place.
    pub fn add(&mut self, other: &Balance) {
        self.from_wire += other.from_wire;
        self.bytes += other.bytes;
        self.delivered += other.delivered;
        for (sum, n) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += n;
        }
    }
}

/// One line: `10 frames from the wire = 8 delivered + 2 dropped (1 no-mbuf, 1 late)`.
impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_balanced() { "=" } else { "!=" };
        let (from_wire, delivered) = (self.from_wire, self.delivered);
        write!(
            f,
            "{from_wire} frames from the wire {sign} {delivered} delivered + "
        )?;
        self.write_drops(f)
    }
}

impl Balance {
    fn write_drops(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dropped = self.dropped_total();
        write!(f, "{dropped} dropped")?;
        for (i, (cause, n)) in self.drops().enumerate() {
            write!(
                f,
                "{}{n} {}",
                if i == 0 { " (" } else { ", " },
                cause.name()
            )?;
        }
        f.write_str(if dropped > 0 { ")" } else { "" })
    }
}

/// Counters of one place of a ledger. Frames arrive from the wire at one place and are delivered at
/// another, so one share alone need not balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share(pub Balance);

impl Deref for Share {
    type Target = Balance;

    fn deref(&self) -> &Balance {
        &self.0
    }
}

/// One line: `10 frames from the wire, 0 delivered, 1 dropped (1 no-mbuf)`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from_wire, delivered) = (self.from_wire, self.delivered);
        write!(
            f,
            "{from_wire} frames from the wire, {delivered} delivered, "
        )?;
        self.write_drops(f)
    }
}

/// The ledger does not balance: frames were lost without a cause, or counted twice.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the loss ledger does not balance: {} from wire, {} delivered, {} dropped, difference {}",
    .0.from_wire, .0.delivered, .0.dropped_total(),
    i128::from(.0.from_wire) - i128::from(.0.delivered) - i128::from(.0.dropped_total())
)]
pub struct Imbalance(pub Box<Balance>);

/// The tallies of one run.
#[derive(Clone, Default)]
pub struct Ledger {
    places: Vec<(String, TallyView)>,
}

impl Ledger {
    /// A ledger without places.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a place. Each tally belongs to exactly one ledger, once.
    pub fn add(&mut self, place: impl Into<String>, tally: TallyView) {
        self.places.push((place.into(), tally));
    }

    /// The places with a snapshot of their counters; only the sum balances.
    pub fn places(&self) -> impl Iterator<Item = (&str, Share)> {
        self.places
            .iter()
            .map(|(name, view)| (name.as_str(), Share(view.balance())))
    }

    /// The sum over all places.
    #[must_use]
    pub fn balance(&self) -> Balance {
        let mut sum = Balance::default();
        self.places().for_each(|(_, share)| sum.add(&share));
        sum
    }

    /// The sum over all places, if it balances. Meaningful only while no frame is between two
    /// places: after the poll loops have stopped.
    ///
    /// # Errors
    /// The sum, if frames are missing from it or counted twice.
    pub fn check(&self) -> Result<Balance, Imbalance> {
        let sum = self.balance();
        if sum.is_balanced() {
            Ok(sum)
        } else {
            Err(Imbalance(Box::new(sum)))
        }
    }
}

#[derive(Default)]
struct SentCells {
    packets: Count,
    bytes: Count,
    errors: Count,
    unresolved: Count,
}

/// Counters of a transmit queue, and the exclusive right to write them. Frames that a queue does
/// not accept stay with the caller and are not a loss of the queue.
#[derive(Default)]
pub struct Sent(Arc<CachePadded<SentCells>>);

impl Sent {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts frames that were sent on the wire.
    #[inline]
    pub fn count(&mut self, packets: u64, bytes: u64) {
        self.0.packets.add(packets);
        self.0.bytes.add(bytes);
    }

    /// Counts frames that the queue accepted and the device refused.
    #[inline]
    pub fn count_errors(&mut self, packets: u64) {
        self.0.errors.add(packets);
    }

    /// Those so far.
    #[inline]
    pub(crate) fn errors(&self) -> u64 {
        self.0.errors.get()
    }

    /// Counts frames that were counted as sent, and then lost, since no neighbour has their address.
    #[inline]
    pub fn count_unresolved(&mut self, packets: u64) {
        self.0.unresolved.add(packets);
    }

    /// A reader of these counters.
    #[must_use]
    pub fn view(&self) -> SentView {
        SentView(Arc::clone(&self.0))
    }
}

/// A reader of the counters of a transmit queue.
#[derive(Clone)]
pub struct SentView(Arc<CachePadded<SentCells>>);

impl SentView {
    /// Frames sent on the wire.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.0.packets.get()
    }

    /// Their bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes.get()
    }

    /// Frames that the device refused.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.0.errors.get()
    }

    /// Frames among the sent ones that a device which resolves addresses itself has lost, since no
    /// neighbour has theirs.
    #[must_use]
    pub fn unresolved(&self) -> u64 {
        self.0.unresolved.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_frame_without_a_cause_is_found() {
        let (mut rx, mut sink) = (Tally::new(), Tally::new());
        let mut ledger = Ledger::new();
        ledger.add("rx", rx.view());
        ledger.add("sink", sink.view());
        rx.count_from_wire(10, 640);
        rx.count_dropped(Cause::NoMbuf, 1);
        sink.count_delivered(8);
        assert_eq!(
            ledger.check().map_err(|e| e.to_string()).err().as_deref(),
            Some(
                "the loss ledger does not balance: 10 from wire, 8 delivered, 1 dropped, difference 1"
            )
        );
        let sum = ledger.balance().to_string();
        assert!(
            sum.contains("10 frames from the wire != 8 delivered + 1 dropped"),
            "{sum}"
        );
        sink.count_dropped(Cause::Late, 1);
        let places: Vec<_> = ledger
            .places()
            .map(|(_, share)| share.to_string())
            .collect();
        assert_eq!(
            places,
            [
                "10 frames from the wire, 0 delivered, 1 dropped (1 no-mbuf)",
                "0 frames from the wire, 8 delivered, 1 dropped (1 late)"
            ]
        );
        assert_eq!(
            ledger.balance().to_string(),
            "10 frames from the wire = 8 delivered + 2 dropped (1 no-mbuf, 1 late)"
        );
        let sum = ledger.check().ok();
        assert_eq!(
            sum.map(|s| s.drops().collect::<Vec<_>>()),
            Some(vec![(Cause::NoMbuf, 1), (Cause::Late, 1)])
        );
    }
}
