//! The ring from its RTL beside the software roles: each operation that the gateware begins is done by
//! the roles too, and what they send is compared.

mod setup;

use std::collections::VecDeque;

use pollux_card_model::evb_registers::evb;
use pollux_farm::message::{Decided, Feedback, Flow, Message};
use pollux_farm::role::Role;
use pollux_farm::scheduler::{Register, Source};
use pollux_farm::time::Time;

use super::command::Command;
use super::flow;
use super::model::{FEEDERS, In, Model, Offer, Out, bits};
use super::oracle::{Begun, Roles};
use super::setting::Setting;

/// Bytes between the addresses of two receive buffers.
const ADDRESS_STEP: u64 = 0x1_0000;
/// Messages that the scheduler's input buffer holds; cycles of a link.
const INPUTS: usize = 64;
const LINK: u64 = 2;
/// Cycles of a register access or a set-up.
const PATIENCE: u32 = 10_000;

/// What the farm around the ring has to know of a cycle.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// A message that the scheduler sent.
    pub(crate) sent: Option<Flow>,
    /// Feeders that began a transfer, and its bytes.
    pub(crate) begun: Vec<(usize, u32)>,
    /// An operation began.
    pub(crate) busy: bool,
}

/// The ring.
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings as they are written, in effect, and under way"
)]
pub(crate) struct Ring {
    model: Model,
    pub(crate) inputs: In,
    outputs: Out,
    pub(crate) roles: Roles,
    /// Messages on each link, and when they were sent.
    links: Vec<VecDeque<(u64, Flow)>>,
    /// Messages in the scheduler's input buffer, and those that found it full.
    returned: VecDeque<Flow>,
    lost: u64,
    /// Feedback in the input buffer.
    feedback: VecDeque<Feedback>,
    /// The decision that is on offer.
    decided: Option<Decided>,
    transfers: [bool; FEEDERS],
    /// Transfers that began in the run before: a bit for each feeder.
    former: u8,
    writes: VecDeque<(usize, u32)>,
    command: Option<Command>,
    changes: bool,
    pub(crate) enabled: bool,
    pub(crate) waits: bool,
    /// Whether the gateware's scheduler is enabled: changes take effect later.
    in_effect: bool,
    source: Source,
    expired: u64,
    released: u64,
    damaged: u64,
    /// Events that the scheduler has sent.
    pub(crate) events: u64,
    pub(crate) cycles: u64,
    /// The first difference.
    pub(crate) mismatch: Option<String>,
}

impl Ring {
    /// A ring after its reset and set-up, with the scheduler enabled.
    pub(crate) fn new(setting: &Setting, seed: u64) -> anyhow::Result<Self> {
        let mut ring = Self::unset(Model::new(seed), setting)?;
        ring.reset();
        ring.set_up(setting)?;
        Ok(ring)
    }

    /// The same ring after another set-up: without a reset, whatever is under way.
    pub(crate) fn again(self, setting: &Setting) -> anyhow::Result<Self> {
        let mut ring = Self::unset(self.model, setting)?;
        ring.set_up(setting)?;
        Ok(ring)
    }

    fn unset(model: Model, setting: &Setting) -> anyhow::Result<Self> {
        let mut roles = Roles::new(setting, FEEDERS)?;
        let source = match setting.source {
            3 => Source::Hand,
            2 => Source::External,
            _ => Source::Internal,
        };
        roles.scheduler.select(source);
        Ok(Self {
            model,
            inputs: In::default(),
            outputs: Out::default(),
            roles,
            links: vec![VecDeque::new(); FEEDERS + 1],
            returned: VecDeque::new(),
            lost: 0,
            feedback: VecDeque::new(),
            decided: None,
            transfers: [false; FEEDERS],
            former: 0,
            writes: VecDeque::new(),
            command: None,
            changes: false,
            enabled: true,
            waits: setting.wait,
            in_effect: true,
            source,
            expired: 0,
            released: 0,
            damaged: 0,
            events: 0,
            cycles: 0,
            mismatch: None,
        })
    }

    /// Reads a register.
    pub(crate) fn read(&mut self, at: usize) -> anyhow::Result<u32> {
        self.inputs.read = 1;
        for _ in 0..PATIENCE {
            self.inputs.register_address = at as u16;
            self.step();
            if self.outputs.scheduler & bits::ANSWER != 0 {
                self.inputs.read = 0;
                self.step();
                return Ok(self.outputs.read_data);
            }
        }
        anyhow::bail!("a read of register {at:#x} is not answered")
    }

    /// Whether no command is under way.
    pub(crate) fn is_obeyed(&self) -> bool {
        self.command.is_none() && self.outputs.scheduler & bits::BUSY == 0
    }

    /// Gives a command, unless another one is under way.
    pub(crate) fn command(&mut self, command: Command) -> bool {
        if !self.is_obeyed() {
            return false;
        }
        self.command = Some(command);
        self.writes.push_back((evb::COMMAND.at, command.word()));
        true
    }

    /// Enables or disables the scheduler, or changes its mode, unless a change is under way.
    pub(crate) fn change(&mut self, enabled: bool, waits: bool) -> bool {
        if self.changes || (enabled != self.enabled) == (waits != self.waits) {
            return false;
        }
        if enabled == self.enabled {
            self.writes.push_back((evb::MODE.at, waits.into()));
        } else {
            self.writes.push_back((evb::ENABLE.at, enabled.into()));
        }
        (self.enabled, self.waits, self.changes) = (enabled, waits, true);
        true
    }

    /// Triggers by hand.
    pub(crate) fn hand(&mut self) {
        if self.writes.is_empty() {
            self.writes.push_back((evb::HAND_TRIGGER.at, 1));
        }
    }

    /// Ends the internal triggers.
    pub(crate) fn stop_triggers(&mut self) {
        self.writes.push_back((evb::TRIGGER_ENABLE.at, 0));
    }

    /// Whether accesses, commands and changes are done.
    pub(crate) fn is_still(&self) -> bool {
        self.writes.is_empty()
            && self.command.is_none()
            && !self.changes
            && self.feedback.is_empty()
    }

    /// Whether feedback can be sent.
    pub(crate) fn takes_feedback(&self) -> bool {
        self.feedback.len() < 60
    }

    /// Sends feedback with the next cycle.
    pub(crate) fn send(&mut self, feedback: Feedback) {
        self.inputs.feedback = flow::feedback(&feedback);
        self.inputs.feedback_valid = 1;
        self.feedback.push_back(feedback);
    }

    /// Offers a decision, unless one is on offer.
    pub(crate) fn offer(&mut self, decided: Decided) -> bool {
        if self.decided.is_some() {
            return false;
        }
        self.inputs.decided = decided.mep << 32 | decided.before;
        self.inputs.decided_valid = 1;
        self.decided = Some(decided);
        true
    }

    /// Whether the scheduler has a receive buffer for the next event.
    pub(crate) fn is_ready(&self) -> bool {
        self.outputs.scheduler & bits::READY != 0
    }

    /// Transfers that run.
    pub(crate) fn runs(&self, feeder: usize) -> bool {
        self.transfers[feeder]
    }

    /// Whether a transfer that runs is of the run before.
    pub(crate) fn is_former(&self, feeder: usize) -> bool {
        self.former >> feeder & 1 == 1
    }

    /// One cycle, compared.
    pub(crate) fn step(&mut self) -> Seen {
        if let Some(&(at, value)) = self.writes.front() {
            self.inputs.write = 1;
            self.inputs.register_address = at as u16;
            self.inputs.write_data = value;
        }
        self.model.cycle(&self.inputs, &mut self.outputs);
        self.cycles += 1;
        self.inputs.feedback_valid = 0;
        self.inputs.trigger = 0;
        self.inputs.write = 0;
        let happens = self.outputs.scheduler;
        if happens & bits::WRITTEN != 0 {
            self.writes.pop_front();
        }
        let mut seen = Seen {
            busy: happens & bits::QUIET == 0 || happens & bits::OPERATIONS != 0,
            ..Seen::default()
        };
        let has_room = self.returned.len() < INPUTS;
        self.operate(happens);
        while let Some(&(sent, flow)) = self.links[FEEDERS].front()
            && self.cycles >= sent + LINK
        {
            self.links[FEEDERS].pop_front();
            if has_room {
                self.returned.push_back(flow);
            } else {
                self.lost += 1;
            }
        }
        self.compare_messages(&mut seen);
        self.operate_feeders(&mut seen);
        seen
    }

    /// The scheduler does what the gateware does.
    fn operate(&mut self, happens: u32) {
        if happens & bits::OPERATIONS == 0 {
            return;
        }
        let now = Time::from_ps(self.cycles);
        self.roles.now = now;
        let roles = &mut self.roles;
        let (scheduler, sent) = (&mut roles.scheduler, &mut roles.sent);
        if happens & bits::TRIGGER != 0 {
            scheduler.trigger(self.source, 1, now, sent);
        }
        if happens & bits::CHANGE != 0 {
            self.changes = false;
            self.in_effect = self.enabled;
            let mode = u32::from(self.waits);
            if let Err(error) = scheduler.write(Register::Mode, mode, now, sent) {
                self.differs(format!("mode {mode}: {error}"));
                return;
            }
            scheduler.enable(self.enabled, now, sent);
        }
        if happens & bits::COMMAND != 0 {
            self.commanded(now);
        }
        if happens & bits::DECIDE != 0 {
            self.inputs.decided_valid = 0;
            match self.decided.take() {
                Some(decided) => self.roles.receive(&Message::Decided(decided)),
                None => self.differs("a decision that was not offered"),
            }
        }
        if happens & bits::FLOW != 0 {
            match self.returned.pop_front() {
                Some(flow) => self.roles.receive(&Message::Flow(flow)),
                None => self.differs("a message that did not return"),
            }
        }
        if happens & bits::FEEDBACK != 0 {
            match self.feedback.pop_front() {
                Some(feedback) => self.roles.receive(&Message::Feedback(feedback)),
                None => self.differs("feedback that was not sent"),
            }
        }
        if happens & bits::EXPIRE != 0 {
            self.expired += 1;
            let counted = |roles: &Roles| {
                let flow = roles.scheduler.counters().flow;
                flow.timeouts + flow.unreturned
            };
            self.expire(self.expired, counted);
        }
        if happens & bits::RELEASE != 0 {
            if self.roles.scheduler.members().is_empty() {
                self.roles.poll();
            } else {
                self.released += 1;
                self.expire(self.released, |roles| roles.sent.releases);
            }
        }
    }

    /// A time-out of the gateware is one of the software's.
    fn expire(&mut self, number: u64, counted: impl Fn(&Roles) -> u64) {
        if counted(&self.roles) < number {
            self.roles.poll();
        }
        if counted(&self.roles) < number {
            self.differs("a time-out that the software does not have next");
        }
    }

    fn commanded(&mut self, now: Time) {
        let roles = &mut self.roles;
        let (scheduler, sent) = (&mut roles.scheduler, &mut roles.sent);
        match self.command.take() {
            Some(Command::ExcludeNode(node)) => {
                scheduler.exclude_node(node, now, sent);
            }
            Some(Command::ReadmitNode(node)) => {
                scheduler.readmit_node(node, now);
                // The gateware chooses at once.
                scheduler.enable(self.in_effect, now, sent);
            }
            Some(Command::ExcludeFeeder(feeder)) => {
                scheduler.exclude_feeder(feeder);
            }
            Some(Command::ReadmitFeeder(feeder)) => {
                scheduler.readmit_feeder(feeder, now, sent);
            }
            None => self.differs("a command that was not given"),
        }
    }

    /// Messages at the ends of the links.
    fn compare_messages(&mut self, seen: &mut Seen) {
        for link in 0..=FEEDERS {
            if self.outputs.sent >> link & 1 == 0 {
                continue;
            }
            let found = flow::flow(&self.outputs.flow[link]);
            let expected = match link {
                0 => self.roles.sent.flows.pop_front(),
                n => self.roles.feeders[n - 1].1.flows.pop_front(),
            };
            if expected != Some(found) {
                self.differs(format!(
                    "link {link}: {found:?}, the software: {expected:?}"
                ));
            }
            if link == 0 {
                self.events += u64::from(found.count == 1 && found.loops == 0);
                seen.sent = Some(found);
            }
            let fault = self.inputs.fault_flip >> link & 1 == 1;
            self.damaged +=
                u64::from(fault && link == FEEDERS && self.inputs.fault_lose >> link & 1 == 0);
            if !fault && self.inputs.fault_lose >> link & 1 == 0 {
                self.links[link].push_back((self.cycles, found));
            }
        }
    }

    fn operate_feeders(&mut self, seen: &mut Seen) {
        let out = self.outputs;
        seen.busy |= out.takes | out.stores | out.ends | out.transfers != 0 || out.offered != 0;
        for n in 0..FEEDERS {
            let (feeder, done) = &mut self.roles.feeders[n];
            let bit = |mask: u8| mask >> n & 1 == 1;
            if bit(self.former) && !bit(out.transfers) {
                self.transfers[n] = false;
                self.former &= !(1 << n);
            }
            if bit(out.transfers) && !self.transfers[n] {
                self.transfers[n] = true;
                let offer = out.transfer[n];
                let expected = done.transfers.pop_front();
                if expected != Some(begun(&offer))
                    || offer.address != u64::from(offer.descriptor) * ADDRESS_STEP
                {
                    self.differs(format!("feeder {n}: {offer:?}, the software: {expected:?}"));
                    return;
                }
                seen.begun.push((n, offer.bytes));
            }
            if bit(out.stores) {
                feeder
                    .store_mut()
                    .all
                    .push(self.inputs.store_bytes[n].into());
                self.inputs.store_valid &= !(1 << n);
            }
            if bit(out.ends) {
                self.transfers[n] = false;
                feeder.transferred(done);
            }
            if bit(out.takes) {
                if let Some((_, flow)) = self.links[n].pop_front() {
                    feeder.receive(Time::ZERO, &Message::Flow(flow), (), done);
                } else {
                    self.differs(format!("feeder {n}: a message that was not on its link"));
                    return;
                }
            }
        }
        self.inputs.done = 0;
    }

    /// Records the first difference.
    pub(crate) fn differs(&mut self, what: impl std::fmt::Display) {
        let cycle = self.cycles;
        self.mismatch
            .get_or_insert_with(|| format!("cycle {cycle}: {what}"));
    }

    /// Messages of the last link that the scheduler has found damaged.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Messages that the scheduler's input buffer had no room for.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether all that the software has sent has been seen.
    pub(crate) fn is_even(&self) -> bool {
        self.roles.sent.flows.is_empty()
            && self.returned.is_empty()
            && self.links.iter().all(VecDeque::is_empty)
            && (self.roles.feeders.iter())
                .all(|(_, done)| done.flows.is_empty() && done.transfers.is_empty())
    }
}

fn begun(offer: &Offer) -> Begun {
    Begun {
        descriptor: offer.descriptor,
        number: offer.number,
        bytes: offer.bytes,
        absent: offer.absent == 1,
        oversize: offer.oversize == 1,
    }
}
