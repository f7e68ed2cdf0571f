//! What a closed window has.

use pollux_mempool::time::Tsc;

use crate::l0::Span;
use crate::rich::Hit;

/// The hits of one window.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Where it begins, in units of 25/256 ns.
    pub start: u64,
    /// Of which time its hits are.
    pub span: Span,
    /// Bit s: source s had come to it, or further, when it was closed, and no frame of it that is
    /// known to be lost was of this time.
    pub sources: u64,
    /// Hits were left out, as a window has no room for more.
    pub truncated: bool,
    /// Sources disagreed on the time, and none had a majority.
    pub disputed: bool,
    /// Number of the burst that it is of, from 1 on.
    pub burst: u16,
    /// When the first of its hits came, on the clock.
    pub arrival: Tsc,
    /// Bit s: source s has more hits in it than rings explain.
    pub hot: u64,
    /// How many of its hits, the last ones, are of such sources.
    pub masked: u16,
    /// Its hits: in the order of the sources, those of each in the order of time. Those of hot sources
    /// are behind the others.
    pub hits: &'a [Hit],
}
