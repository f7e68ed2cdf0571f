//! Fragments that a node has asked for (policy `credits`).
//!
//! A node has a number of credits: fragments that it has asked for and not received. A request
//! holds a credit until its fragment arrives, until it is given up, or until the node does not
//! need the fragment any more, so that a feeder that does not answer blocks no other one.

use std::collections::VecDeque;

use super::buffer::Buffer;
use crate::rtt::Rtt;
use crate::time::Time;
use crate::topology::Feeders;

/// Fragments that a node may ask for ahead, if it is not told otherwise.
pub const CREDITS: usize = 16;

/// Doublings of the time after which a credit returns: a dead feeder does not hold it for long.
const DOUBLINGS: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Asked {
    buffer: usize,
    feeder: u8,
    at: Time,
    /// It is a repetition: its answer has no round trip.
    again: bool,
}

/// Requests without an answer, and the buffers with feeders to ask.
#[derive(Debug)]
pub(super) struct Requests {
    credits: usize,
    asked: Vec<Asked>,
    /// Buffers with feeders to ask, each once.
    waiting: VecDeque<usize>,
    waits: Box<[bool]>,
    /// The feeder that is asked next, if it is wanted: nodes in step ask different feeders.
    turn: u8,
    feeders: u8,
    rtt: Rtt,
}

impl Requests {
    /// No request of a node with so many buffers, and the number of feeders; none is repeated before
    /// `beat` is over.
    pub(super) fn new(
        credits: usize,
        buffers: usize,
        (node, feeders): (u16, usize),
        beat: Time,
    ) -> Self {
        Self {
            credits,
            asked: Vec::with_capacity(credits),
            waiting: VecDeque::with_capacity(buffers),
            waits: vec![false; buffers].into(),
            turn: (usize::from(node) % feeders.max(1)) as u8,
            feeders: feeders as u8,
            rtt: Rtt::new(beat).doubling(DOUBLINGS),
        }
    }

    /// Requests that hold a credit.
    pub(super) fn len(&self) -> usize {
        self.asked.len()
    }

    /// Whether a buffer may have feeders to ask.
    #[inline]
    pub(super) fn is_asking(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A buffer has feeders to ask.
    pub(super) fn want(&mut self, buffer: usize) {
        if !std::mem::replace(&mut self.waits[buffer], true) {
            self.waiting.push_back(buffer);
        }
    }

    /// The next buffer and feeder, if there is credit.
    pub(super) fn next<P>(&mut self, buffers: &mut [Buffer<P>], now: Time) -> Option<(usize, u8)> {
        while self.asked.len() < self.credits {
            let &buffer = self.waiting.front()?;
            let Some(feeder) = buffers[buffer].next_wanted(self.turn) else {
                self.waiting.pop_front();
                self.waits[buffer] = false;
                continue;
            };
            self.turn = (feeder + 1) % self.feeders;
            buffers[buffer].asked(Feeders::only(feeder));
            self.asked.push(Asked {
                buffer,
                feeder,
                at: now,
                again: buffers[buffer].was_unanswered(),
            });
            return Some((buffer, feeder));
        }
        None
    }

    /// Ends the request to a feeder for a buffer, if there is one.
    pub(super) fn answered(&mut self, buffer: usize, feeder: u8, now: Time) {
        let is_it = |asked: &Asked| asked.buffer == buffer && asked.feeder == feeder;
        if let Some(place) = self.asked.iter().position(is_it) {
            let asked = self.asked.remove(place);
            if !asked.again {
                self.rtt.sample(now - asked.at, now);
            }
        }
    }

    /// How long an answer is waited for.
    pub(super) fn timeout(&self) -> Time {
        self.rtt.timeout()
    }

    /// Ends the requests for a buffer to other feeders than these, and returns those that are left.
    pub(super) fn keep(&mut self, buffer: usize, feeders: Feeders) -> Feeders {
        let mut left = Feeders::NONE;
        self.asked.retain(|asked| {
            let is_kept = asked.buffer != buffer || feeders.has(asked.feeder);
            if asked.buffer == buffer && is_kept {
                left = left.with(Feeders::only(asked.feeder));
            }
            is_kept
        });
        left
    }

    /// Gives up the requests for a buffer that were not answered in time, and returns their feeders.
    pub(super) fn give_up(&mut self, buffer: usize, timeout: Time, now: Time) -> Feeders {
        let (mut late, rtt) = (Feeders::NONE, &mut self.rtt);
        self.asked.retain(|asked| {
            let is_late = asked.buffer == buffer && asked.at + timeout <= now;
            if is_late {
                rtt.expired(asked.at, now);
                late = late.with(Feeders::only(asked.feeder));
            }
            !is_late
        });
        late
    }
}
