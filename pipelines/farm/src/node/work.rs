//! The seam between a node and its trigger algorithm.

use crate::time::Time;
use crate::topology::Feeders;

/// An event, or several of a MEP, that is built.
#[derive(Debug)]
pub struct Built<'a, P> {
    /// The MEP.
    pub mep: u64,
    /// Its first event.
    pub event: u64,
    /// Its events.
    pub count: u16,
    /// Feeders of the farm whose fragments it lacks.
    pub missing: Feeders,
    /// Fragments of single events without data.
    pub absent: u16,
    /// Payloads of the first part by feeder.
    pub fragments: &'a [Option<P>],
    /// Payloads of the second part by feeder; none before it was asked for.
    pub second: &'a [Option<P>],
    /// Whether the second part is built.
    pub has_second: bool,
    /// Earlier calls of [`Work::work`] with this MEP.
    pub calls: u32,
}

/// What is to be done with a MEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is decided: bit n is set if event n is accepted.
    Decide(u64),
    /// A processor works on it until that time, and [`Work::work`] is called again.
    Wait(Time),
    /// The second part is needed. [`Work::work`] is called again when it is built.
    More,
}

/// The trigger algorithm of a node.
pub trait Work<P> {
    /// Works on a MEP.
    fn work(&mut self, now: Time, built: &Built<'_, P>) -> Step;
}

impl<P, F: FnMut(Time, &Built<'_, P>) -> Step> Work<P> for F {
    fn work(&mut self, now: Time, built: &Built<'_, P>) -> Step {
        self(now, built)
    }
}
