//! The farm around a ring: triggers, nodes, data and faults; runs of configurations, one after the other.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use pollux_card_model::evb_registers::evb;
use pollux_farm::message::{Decided, Feedback, Flow};
use pollux_farm::scheduler::Register;
use pollux_farm::topology::{Descriptor, Feeders};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::command::Command;
use super::model::FEEDERS;
use super::ring::Ring;
use super::setting::Setting;

/// Bytes that a transfer takes a cycle, and cycles beside.
const TRANSFER: (u32, u64) = (32, 3);
/// Quiet cycles at the end, and the longest wait for them.
const STILL: u32 = 50;
const PATIENCE: u64 = 500_000;
/// Runs of a ring between two resets, and the longest that a transfer of the one before goes on.
const RUNS: u64 = 2;
const FORMER: u64 = 2000;

/// What a node or a feeder does at a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A node has finished an event.
    Finish {
        number: u64,
        descriptor: u16,
        generation: u32,
    },
    /// A transfer ends.
    Done(u8),
}

/// The farm.
struct Farm<'a> {
    setting: &'a Setting,
    random: Xoshiro256PlusPlus,
    due: BinaryHeap<Reverse<(u64, Due)>>,
    feedback: VecDeque<Feedback>,
    decisions: VecDeque<Decided>,
    decided: BTreeSet<u64>,
    before: u64,
    generations: Vec<u32>,
    excluded: Vec<bool>,
    /// A node that registers when its readmission is done.
    returns: Option<usize>,
    away: Feeders,
    finished: Vec<bool>,
    next_trigger: u64,
}

/// Runs of a ring: events, and the first difference.
pub(crate) struct Report {
    pub(crate) events: u64,
    pub(crate) cycles: u64,
    pub(crate) mismatch: Option<String>,
}

/// Runs random configurations for so many events in all. The first run comes to its end, or the second one begins in
/// its midst, sometimes with the same number.
pub(crate) fn run(seed: u64, events: u64) -> anyhow::Result<Report> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut setting = Setting::random(&mut random);
    let mut ring = Ring::new(&setting, seed)?;
    let mut report = Report {
        events: 0,
        cycles: 0,
        mismatch: None,
    };
    for run in 1..=RUNS {
        let mut farm = Farm::new(&setting, random);
        farm.run(&mut ring, events.div_ceil(RUNS));
        if run == RUNS || farm.random.random_bool(0.5) {
            farm.settle(&mut ring);
            if ring.mismatch.is_none() {
                compare_registers(&mut ring, &setting)?;
            }
        }
        random = farm.random;
        report.events += ring.events;
        report.cycles += ring.cycles;
        report.mismatch = (ring.mismatch.take())
            .map(|what| format!("seed {seed}, run {run}, {what}; {setting:?}"));
        if report.mismatch.is_some() || run == RUNS {
            break;
        }
        let number = setting.run;
        setting = Setting::random(&mut random);
        if random.random_bool(0.3) {
            setting.run = number;
        }
        ring = ring.again(&setting)?;
    }
    Ok(report)
}

impl<'a> Farm<'a> {
    /// So many events, after those transfers of the run before that are left.
    fn run(&mut self, ring: &mut Ring, events: u64) {
        for feeder in (0..FEEDERS).filter(|&feeder| ring.is_former(feeder)) {
            let at = ring.cycles + self.random.random_range(1..=FORMER);
            self.due.push(Reverse((at, Due::Done(feeder as u8))));
        }
        self.register_all();
        while ring.events < events
            && ring.mismatch.is_none()
            && ring.cycles < events * 2000 + PATIENCE
        {
            self.commands(ring);
            self.trigger(ring);
            self.cycle(ring);
        }
    }

    fn new(setting: &'a Setting, random: Xoshiro256PlusPlus) -> Self {
        let descriptors = setting.descriptors();
        Self {
            setting,
            random,
            due: BinaryHeap::new(),
            feedback: VecDeque::new(),
            decisions: VecDeque::new(),
            decided: BTreeSet::new(),
            before: 0,
            generations: vec![0; descriptors],
            excluded: vec![false; setting.column_of.len()],
            returns: None,
            away: Feeders::NONE,
            finished: vec![true; descriptors],
            next_trigger: 0,
        }
    }

    fn message(&self, descriptor: usize, number: u64) -> Feedback {
        Feedback {
            run: self.setting.run,
            column: self.setting.column_of[self.setting.node(descriptor)],
            descriptor: Descriptor(descriptor as u16),
            generation: self.generations[descriptor],
            mep: number,
        }
    }

    /// All nodes register, in a random order.
    fn register_all(&mut self) {
        let mut left: Vec<usize> = (0..self.setting.descriptors()).collect();
        while !left.is_empty() {
            let which = self.random.random_range(0..left.len());
            let descriptor = left.swap_remove(which);
            self.feedback
                .push_back(self.message(descriptor, u32::MAX.into()));
        }
    }

    fn register(&mut self, node: usize) {
        for descriptor in (node..self.setting.descriptors()).step_by(self.setting.column_of.len()) {
            self.finished[descriptor] = true;
            self.feedback
                .push_back(self.message(descriptor, u32::MAX.into()));
        }
    }

    fn trigger(&mut self, ring: &mut Ring) {
        if ring.cycles < self.next_trigger {
            return;
        }
        // Often regular, sometimes a burst.
        let gap = match self.random.random_range(0..20) {
            0 => 1,
            1 => self.setting.period * 10,
            _ => self.setting.period,
        };
        self.next_trigger = ring.cycles + gap;
        match self.setting.source {
            3 => ring.hand(),
            2 => ring.inputs.trigger = 1,
            _ => {}
        }
    }

    fn commands(&mut self, ring: &mut Ring) {
        let mean = self.setting.commands;
        if mean == 0 || self.random.random_range(0..mean) != 0 {
            return;
        }
        match self.random.random_range(0..6) {
            0 | 1 => {
                let node = self.random.random_range(0..self.excluded.len());
                if ring.command(Command::ExcludeNode(node as u16)) {
                    self.excluded[node] = true;
                }
            }
            2 => self.readmit(ring),
            3 => {
                let feeder = self.random.random_range(0..self.setting.feeders) as u8;
                if self.away.is_empty() && ring.command(Command::ExcludeFeeder(feeder)) {
                    self.away = Feeders::only(feeder);
                }
            }
            4 => self.readmit_feeder(ring),
            _ => {
                if self.random.random_bool(0.5) {
                    ring.change(ring.enabled, !ring.waits);
                } else {
                    ring.change(!ring.enabled, ring.waits);
                }
            }
        }
    }

    fn readmit(&mut self, ring: &mut Ring) {
        if self.returns.is_none()
            && let Some(node) = self.excluded.iter().position(|&excluded| excluded)
            && ring.command(Command::ReadmitNode(node as u16))
        {
            self.excluded[node] = false;
            self.returns = Some(node);
        }
    }

    fn readmit_feeder(&mut self, ring: &mut Ring) {
        if let Some(feeder) = self.away.next_from(0)
            && ring.command(Command::ReadmitFeeder(feeder))
        {
            self.away = Feeders::NONE;
        }
    }

    /// One cycle of all.
    fn cycle(&mut self, ring: &mut Ring) -> bool {
        self.data(ring);
        self.faults(ring);
        while let Some(&Reverse((cycle, due))) = self.due.peek() {
            if cycle > ring.cycles {
                break;
            }
            self.due.pop();
            self.happens(due, ring);
        }
        if self.setting.lies > 0 && self.random.random_range(0..self.setting.lies) == 0 {
            self.lie();
        }
        if ring.takes_feedback()
            && self.random.random_bool(0.7)
            && let Some(feedback) = self.feedback.pop_front()
        {
            ring.send(feedback);
        }
        if let Some(&decided) = self.decisions.front()
            && ring.offer(decided)
        {
            self.decisions.pop_front();
        }
        if ring.is_obeyed()
            && let Some(node) = self.returns.take()
        {
            self.register(node);
        }
        let seen = ring.step();
        if let Some(flow) = seen.sent
            && flow.count == 1
            && flow.loops == 0
        {
            self.assigned(&flow, ring.cycles);
        }
        for &(feeder, bytes) in &seen.begun {
            let cycles = u64::from(bytes / TRANSFER.0) + TRANSFER.1;
            let at = ring.cycles + self.random.random_range(1..=cycles);
            self.due.push(Reverse((at, Due::Done(feeder as u8))));
        }
        seen.busy
    }

    fn assigned(&mut self, flow: &Flow, cycle: u64) {
        let descriptor = flow.descriptor.0;
        let latency = self.setting.latency;
        let slow = if self.random.random_range(0..50) == 0 {
            20
        } else {
            1
        };
        self.generations[descriptor as usize] = flow.generation;
        self.finished[descriptor as usize] = false;
        let at = cycle + self.random.random_range(latency / 2..latency * 3 / 2) * slow;
        let (number, generation) = (flow.mep, flow.generation);
        let finish = Due::Finish {
            number,
            descriptor,
            generation,
        };
        self.due.push(Reverse((at, finish)));
    }

    fn happens(&mut self, due: Due, ring: &mut Ring) {
        match due {
            Due::Done(feeder) => {
                debug_assert!(ring.runs(feeder.into()), "a transfer that does not run");
                ring.inputs.done |= 1 << feeder;
            }
            Due::Finish {
                number,
                descriptor,
                generation,
            } => {
                let d = usize::from(descriptor);
                if self.finished[d]
                    || self.generations[d] != generation
                    || self.excluded[self.setting.node(d)]
                {
                    return;
                }
                self.finished[d] = true;
                self.feedback.push_back(self.message(d, number));
                self.decide(number);
            }
        }
    }

    fn decide(&mut self, number: u64) {
        if number >= self.before {
            self.decided.insert(number);
        }
        while self.decided.remove(&self.before) {
            self.before += 1;
        }
        self.decisions.push_back(Decided {
            run: self.setting.run,
            mep: number,
            bits: 1,
            before: self.before,
        });
    }

    /// Feedback that is wrong in one way.
    fn lie(&mut self) {
        let descriptor = self.random.random_range(0..self.setting.descriptors());
        let mut message = self.message(descriptor, u32::MAX.into());
        match self.random.random_range(0..5) {
            0 => message.descriptor = Descriptor(self.setting.descriptors() as u16),
            1 => message.column += 1,
            2 => message.generation = message.generation.wrapping_add(1),
            3 => message.generation = message.generation.wrapping_sub(1),
            _ => message.run = message.run.wrapping_add(1),
        }
        // A buffer that registers by a lie would have two generations.
        if self.excluded[self.setting.node(descriptor)] || self.generations[descriptor] > 0 {
            self.feedback.push_back(message);
        }
    }

    /// Data for the feeders' stores: ahead of the triggers, some late.
    fn data(&mut self, ring: &mut Ring) {
        let most = ring.roles.scheduler.triggered() + 8;
        for n in 0..FEEDERS {
            let stored = ring.roles.feeders[n].0.store().all.len() as u64;
            if ring.inputs.store_valid >> n & 1 == 1 || stored >= most {
                continue;
            }
            if self.random.random_range(0..1000) < self.setting.late {
                continue;
            }
            let large = self.random.random_range(0..1000) < self.setting.large;
            let bytes = self.random.random_range(64..=128) * if large { 5 } else { 1 };
            ring.inputs.store_bytes[n] = bytes;
            ring.inputs.store_valid |= 1 << n;
        }
    }

    fn faults(&mut self, ring: &mut Ring) {
        (ring.inputs.fault_lose, ring.inputs.fault_flip) = (0, 0);
        if self.setting.lost + self.setting.damaged == 0 {
            return;
        }
        for link in 0..=FEEDERS {
            if self.random.random_range(0..1000) < self.setting.lost {
                ring.inputs.fault_lose |= 1 << link;
            }
            if self.random.random_range(0..1000) < self.setting.damaged {
                ring.inputs.fault_flip |= 1 << link;
            }
        }
        ring.inputs.fault_bit = self.random.random_range(0..266);
    }

    /// Runs without triggers until nothing is left to do.
    fn settle(&mut self, ring: &mut Ring) {
        ring.stop_triggers();
        let (mut still, end) = (0, ring.cycles + PATIENCE);
        while still < STILL && ring.mismatch.is_none() {
            if !ring.enabled {
                ring.change(true, ring.waits);
            }
            self.readmit(ring);
            self.readmit_feeder(ring);
            let busy = self.cycle(ring)
                || !ring.is_still()
                || !ring.is_even()
                || !self.due.is_empty()
                || !self.feedback.is_empty()
                || !self.decisions.is_empty()
                || !ring.roles.scheduler.is_idle();
            still = if busy { 0 } else { still + 1 };
            if ring.cycles > end {
                ring.differs(format!(
                    "it does not come to its end: in flight {}, pending {}, {:?}",
                    ring.roles.scheduler.in_flight(),
                    ring.roles.scheduler.pending(),
                    ring.roles.scheduler.stall()
                ));
            }
        }
        (ring.inputs.fault_lose, ring.inputs.fault_flip) = (0, 0);
    }
}

/// Registers and counters of the scheduler against those of the software.
fn compare_registers(ring: &mut Ring, setting: &Setting) -> anyhow::Result<()> {
    let mut pairs = vec![
        (evb::ENABLE, Register::Enable),
        (evb::STATE, Register::State),
        (evb::MODE, Register::Mode),
        (evb::RING_ERRORS, Register::RingErrors),
        (evb::EVENT, Register::Event),
        (evb::PASSED, Register::Passed),
        (evb::PENDING_PEAK, Register::PendingPeak),
        (evb::INPUT_USED, Register::InputUsed),
        (evb::OUTPUT_USED, Register::OutputUsed),
        (evb::COPIES_USED, Register::CopiesUsed),
        (evb::RETURNED_USED, Register::ReturnedUsed),
        (evb::PENDING_USED, Register::PendingUsed),
    ];
    if setting.source > 1 {
        pairs.push((evb::TRIGGER_SELECT, Register::TriggerSource));
    }
    for (register, software) in pairs {
        let expected = ring.roles.scheduler.read(software)?;
        let found = ring.read(register.at)?;
        if found != expected {
            ring.differs(format!(
                "{} is {found}, {software:?} {expected}",
                register.name
            ));
        }
    }
    for column in 0..setting.columns {
        let found = ring.read(evb::COLUMN_USED.of(column))?;
        let expected = ring.roles.scheduler.free(column as u8) as u32;
        if found != expected {
            ring.differs(format!(
                "column {column} has {found}, the software {expected}"
            ));
        }
    }
    let counters = *ring.roles.scheduler.counters();
    let (flow, feedback, triggers) = (counters.flow, counters.feedback, counters.triggers);
    let damaged = ring.damaged();
    for (register, expected) in [
        (evb::SENT, flow.sent),
        (evb::RETURNED, flow.returned),
        (evb::LOOPED, flow.loops),
        (evb::RESENT, flow.resent),
        (evb::UNRETURNED, flow.unreturned),
        (evb::STALE, flow.stale),
        (evb::PENDING_FULL, triggers.pending_full),
        (evb::IN_FLIGHT_FULL, triggers.in_flight_full),
        (evb::REGISTERED, feedback.registered),
        (evb::RELEASED, feedback.released),
        (evb::REPEATED, feedback.repeated),
        (evb::FEEDBACK_STALE, feedback.stale),
        (evb::FOREIGN, feedback.foreign),
        (evb::OUT_OF_RANGE, feedback.out_of_range),
        (evb::WRONG_COLUMN, feedback.wrong_column),
        (evb::EXCLUDED, feedback.excluded),
        (evb::FEEDBACK_LOST, 0),
        (evb::RETURNED_LOST, ring.lost()),
        (evb::RETURNED_DAMAGED, damaged),
        (evb::OTHER_RUN, counters.other_run),
        (evb::DECIDED_FOREIGN, counters.decided_foreign),
        (evb::REASSIGNED, counters.exclusions.reassigned),
        (evb::COLUMNS_REPEATED, counters.columns_repeated),
    ] {
        let found = ring.read(register.at)?;
        if u64::from(found) != expected {
            ring.differs(format!(
                "{} is {found}, the software has {expected}",
                register.name
            ));
        }
    }
    Ok(())
}
