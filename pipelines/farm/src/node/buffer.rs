//! A receive buffer: a slot for each feeder, and a bitmap of those that are filled.

use super::counters::Counters;
use super::work::Built;
use crate::message::{Assign, Decision, Fragment, NO_MEP, Request};
use crate::time::Time;
use crate::topology::{Descriptor, Feeders};

/// What happens in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Free.
    Idle,
    /// Fragments arrive.
    Building,
    /// Built; waits for a processor.
    Built,
    /// A processor works until that time.
    Working(Time),
    /// The second part was asked for.
    Asking,
    /// Decided; waits until the decision can be sent.
    Held,
}

/// What a fragment or an assignment did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Incomplete,
    Complete,
}

/// What a buffer is given.
struct Begin {
    generation: u32,
    mep: u64,
    event: u64,
    count: u16,
    attempt: u16,
    members: Feeders,
}

/// A receive buffer.
#[derive(Debug)]
pub(super) struct Buffer<P> {
    pub(super) state: State,
    /// The assignment: fragments of earlier ones are late.
    generation: u32,
    mep: u64,
    event: u64,
    count: u16,
    attempt: u16,
    part: u8,
    /// Feeders whose fragments are expected in this part.
    members: Feeders,
    /// Feeders whose fragments of this part are here.
    got: Feeders,
    /// Feeders whose fragments of the first part are here.
    first: Feeders,
    /// Feeders to ask for their fragments (policy `credits`).
    wanted: Feeders,
    /// Times in which feeders did not answer.
    unanswered: u8,
    /// Such times in which a feeder without the data need not answer.
    loops: u8,
    absent: u16,
    calls: u32,
    since: Time,
    held: Option<Decision>,
    /// Payloads by feeder, of the first part and then of the second.
    slots: Box<[Option<P>]>,
}

impl<P> Buffer<P> {
    pub(super) fn new(feeders: usize) -> Self {
        Self {
            state: State::Idle,
            generation: 0,
            mep: NO_MEP,
            event: 0,
            count: 0,
            attempt: 0,
            part: 0,
            members: Feeders::NONE,
            got: Feeders::NONE,
            first: Feeders::NONE,
            wanted: Feeders::NONE,
            unanswered: 0,
            loops: 0,
            absent: 0,
            calls: 0,
            since: Time::ZERO,
            held: None,
            slots: (0..2 * feeders).map(|_| None).collect(),
        }
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    pub(super) fn mep(&self) -> u64 {
        self.mep
    }

    pub(super) fn part(&self) -> u8 {
        self.part
    }

    pub(super) fn since(&self) -> Time {
        self.since
    }

    /// Feeders of the farm whose fragments of the first part are not here.
    pub(super) fn missing(&self, feeders: usize) -> Feeders {
        Feeders::first(feeders).without(self.first)
    }

    /// Takes a fragment. With `asked`, only assignments begin MEPs and set the members: nodes asked
    /// the feeder, and a node may ask for what is not its own.
    #[inline]
    pub(super) fn place(
        &mut self,
        fragment: &Fragment,
        payload: P,
        (slot, asked): (u32, bool),
        counters: &mut Counters,
    ) -> Place {
        if !self.continues(fragment) && !self.admits(fragment, asked, counters) {
            return Place::Incomplete;
        }
        let sent_later = fragment.attempt.wrapping_sub(self.attempt) as i16;
        if sent_later > 0 || self.members.is_empty() {
            // Feeders may have left the ring since.
            self.attempt = fragment.attempt;
            self.members = fragment.members;
        }
        if self.got.has(fragment.feeder) {
            counters.repeated += 1;
            return self.is_complete();
        }
        let agrees = fragment.event == self.event
            && fragment.count == self.count
            && (sent_later < 0 || fragment.members == self.members);
        let fits = fragment.bytes <= slot;
        if agrees && fits {
            counters.placed += 1;
            self.absent = self.absent.saturating_add(fragment.absent);
            let place = self.index(fragment.feeder);
            self.slots[place] = Some(payload);
        } else {
            counters.disagree += u64::from(!agrees);
            counters.oversize += u64::from(!fits);
            // The fragment is of no use, and no other will come.
            self.absent = self.absent.saturating_add(self.count);
        }
        self.got = self.got.with(Feeders::only(fragment.feeder));
        self.is_complete()
    }

    /// Whether fragments of feeders continue what is built, agree with it, and are not here.
    #[inline]
    pub(super) fn takes(&self, fragment: &Fragment, feeders: Feeders, slot: u32) -> bool {
        self.continues(fragment)
            && fragment.members == self.members
            && fragment.event == self.event
            && fragment.count == self.count
            && fragment.bytes <= slot
            && self.got.and(feeders).is_empty()
            && feeders.without(self.members).is_empty()
    }

    /// Places fragments that differ in their feeders alone, and that the buffer [takes](Self::takes): those
    /// that have a payload. The others are not here.
    #[inline]
    pub(super) fn place_all(
        &mut self,
        fragment: &Fragment,
        feeders: Feeders,
        payloads: &mut impl Iterator<Item = P>,
        counters: &mut Counters,
    ) -> Place {
        let first = self.index(0);
        let slots = self.slots.get_mut(first..).unwrap_or_default();
        for (feeder, payload) in feeders.iter().zip(payloads) {
            if let Some(slot) = slots.get_mut(usize::from(feeder)) {
                *slot = Some(payload);
            }
        }
        // Payloads come in the order of the feeders, and slots of those that are not here are empty: where the
        // last one has its payload, all have.
        let mut placed = feeders;
        if !feeders.last().is_some_and(|last| is_filled(slots, last)) {
            placed = filled(slots, feeders);
            counters.without_payload += feeders.without(placed).len() as u64;
        }
        let all = placed.len();
        counters.placed += all as u64;
        let absent = usize::from(fragment.absent) * all;
        let absent = u16::try_from(absent).unwrap_or(u16::MAX);
        self.absent = self.absent.saturating_add(absent);
        self.got = self.got.with(placed);
        self.is_complete()
    }

    /// Whether a fragment is of the attempt that is built.
    #[inline]
    fn continues(&self, fragment: &Fragment) -> bool {
        self.state == State::Building
            && self.generation == fragment.generation
            && self.mep == fragment.mep
            && self.part == fragment.part
            && self.attempt == fragment.attempt
    }

    /// Whether a fragment that begins something, or is of another attempt, has a place.
    #[inline(never)]
    fn admits(&mut self, fragment: &Fragment, asked: bool, counters: &mut Counters) -> bool {
        let newer = fragment.generation.wrapping_sub(self.generation) as i32;
        let later = fragment.attempt.wrapping_sub(self.attempt) as i16 > 0;
        if asked && (newer > 0 || (newer == 0 && later)) {
            counters.unasked += 1;
            return false;
        }
        let begin = Begin {
            generation: fragment.generation,
            mep: fragment.mep,
            event: fragment.event,
            count: fragment.count,
            attempt: fragment.attempt,
            members: fragment.members,
        };
        if newer > 0 && !self.begin(&begin, counters) {
            return false;
        }
        if newer < 0 || fragment.mep != self.mep || fragment.part < self.part {
            counters.late += 1;
            return false;
        }
        match self.state {
            State::Building if fragment.part == self.part => {}
            State::Asking if fragment.part == 1 => self.begin_second(),
            State::Idle | State::Built | State::Working(_) | State::Asking | State::Held => {
                counters.late += 1;
                return false;
            }
            State::Building => {
                counters.unasked += 1;
                return false;
            }
        }
        true
    }

    fn index(&self, feeder: u8) -> usize {
        usize::from(self.part) * (self.slots.len() / 2) + usize::from(feeder)
    }

    /// Takes an assignment: none where it changes nothing. Feeders are to be asked then.
    pub(super) fn assign(&mut self, assign: &Assign, counters: &mut Counters) -> Option<Place> {
        let newer = assign.generation.wrapping_sub(self.generation) as i32;
        let begin = Begin {
            generation: assign.generation,
            mep: assign.mep,
            event: assign.event,
            count: assign.count,
            attempt: assign.attempt,
            members: assign.members,
        };
        if newer > 0 {
            if !self.begin(&begin, counters) {
                return None;
            }
        } else {
            let later = assign.attempt.wrapping_sub(self.attempt) as i16;
            let same = newer == 0 && assign.mep == self.mep;
            match self.state {
                State::Building if same && assign.part == self.part && later > 0 => {}
                State::Asking if same && assign.part == 1 => self.begin_second(),
                _ => {
                    counters.assigned_again += 1;
                    return None;
                }
            }
        }
        self.attempt = assign.attempt;
        self.members = assign.members;
        self.loops = assign.loops;
        self.unanswered = 0;
        self.wanted = self.members;
        Some(self.is_complete())
    }

    /// Feeders that were asked, or have answered, need not be asked.
    pub(super) fn asked(&mut self, feeders: Feeders) {
        self.wanted = self.wanted.without(feeders);
    }

    /// Feeders have not answered.
    pub(super) fn ask_again(&mut self, feeders: Feeders) {
        self.wanted = self.wanted.with(feeders);
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// Whether feeders have not answered in time.
    pub(super) fn was_unanswered(&self) -> bool {
        self.unanswered > 0
    }

    /// The next feeder to ask, from a number on.
    pub(super) fn next_wanted(&self, from: u8) -> Option<u8> {
        let wanted = self.wanted.without(self.got);
        let next = wanted.next_from(from).or_else(|| wanted.next_from(0));
        next.filter(|_| self.state == State::Building)
    }

    /// What a feeder is asked for.
    pub(super) fn request(&self, run: u32, descriptor: Descriptor, feeder: u8) -> Request {
        Request {
            run,
            feeder,
            mep: self.mep,
            event: self.event,
            count: self.count,
            descriptor,
            generation: self.generation,
            attempt: self.attempt,
            part: self.part,
            hold: self.unanswered >= self.loops,
            members: self.members,
        }
    }

    /// Assignments up to this one were given to others: they begin nothing.
    pub(super) fn forget(&mut self, generation: u32) {
        let newer = generation.wrapping_sub(self.generation) as i32;
        if self.state == State::Idle && newer > 0 {
            self.generation = generation;
            self.mep = NO_MEP;
        }
    }

    /// Feeders whose fragments are expected.
    pub(super) fn members(&self) -> Feeders {
        self.members
    }

    /// Events of the MEP.
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// Whether a fragment belongs to what is built.
    pub(super) fn expects(&self, fragment: &Fragment) -> bool {
        self.state == State::Building
            && self.generation == fragment.generation
            && self.part == fragment.part
            && self.attempt.wrapping_sub(fragment.attempt) as i16 >= 0
    }

    /// Begins with a new MEP, unless the one before is still worked on.
    fn begin(&mut self, begin: &Begin, counters: &mut Counters) -> bool {
        match self.state {
            State::Idle => {}
            State::Building | State::Asking => {
                counters.abandoned += 1;
                self.clear();
            }
            State::Built | State::Working(_) | State::Held => {
                counters.busy += 1;
                return false;
            }
        }
        self.state = State::Building;
        self.generation = begin.generation;
        self.mep = begin.mep;
        self.event = begin.event;
        self.count = begin.count;
        self.attempt = begin.attempt;
        self.members = begin.members;
        self.part = 0;
        self.wanted = Feeders::NONE;
        self.got = Feeders::NONE;
        self.first = Feeders::NONE;
        self.absent = 0;
        self.calls = 0;
        true
    }

    fn begin_second(&mut self) {
        self.state = State::Building;
        self.part = 1;
        self.members = Feeders::NONE;
        self.got = Feeders::NONE;
    }

    /// Whether the last fragment that is expected is here.
    fn is_complete(&mut self) -> Place {
        if !self.members.without(self.got).is_empty() {
            return Place::Incomplete;
        }
        if self.part == 0 {
            self.first = self.got;
        }
        self.state = State::Built;
        Place::Complete
    }

    /// What is built.
    pub(super) fn built(&mut self, feeders: usize) -> Built<'_, P> {
        let calls = self.calls;
        self.calls = calls.saturating_add(1);
        let missing = self.missing(feeders);
        let (fragments, second) = self.slots.split_at(feeders);
        Built {
            mep: self.mep,
            event: self.event,
            count: self.count,
            missing,
            absent: self.absent,
            fragments,
            second,
            has_second: self.part == 1,
            calls,
        }
    }

    pub(super) fn wait(&mut self, until: Time) {
        self.state = State::Working(until);
    }

    pub(super) fn ask(&mut self, now: Time) {
        self.state = State::Asking;
        self.since = now;
    }

    /// Drops the payloads.
    pub(super) fn clear(&mut self) {
        let used = if self.part == 0 {
            self.slots.len() / 2
        } else {
            self.slots.len()
        };
        for slot in &mut self.slots[..used] {
            *slot = None;
        }
    }

    /// The decision waits until it can be sent.
    pub(super) fn hold(&mut self, decision: Decision) {
        self.state = State::Held;
        self.held = Some(decision);
    }

    pub(super) fn held(&self) -> Option<Decision> {
        self.held
    }

    pub(super) fn free(&mut self, now: Time) {
        self.state = State::Idle;
        self.held = None;
        self.since = now;
    }
}

/// Whether the slot of a feeder has a payload.
#[inline]
fn is_filled<P>(slots: &[Option<P>], feeder: u8) -> bool {
    slots.get(usize::from(feeder)).is_some_and(Option::is_some)
}

/// Those of some feeders whose slots have a payload.
#[cold]
fn filled<P>(slots: &[Option<P>], feeders: Feeders) -> Feeders {
    let filled = feeders.iter().filter(|&feeder| is_filled(slots, feeder));
    filled.map(Feeders::only).fold(Feeders::NONE, Feeders::with)
}
