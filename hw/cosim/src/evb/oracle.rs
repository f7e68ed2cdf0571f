//! The software roles, and what they are expected to send.

use std::collections::VecDeque;

use pollux_farm::feeder::{Config as FeederConfig, Feeder};
use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::{Flow, Message};
use pollux_farm::role::{Address, Outbox, Role, Transfer};
use pollux_farm::scheduler::Scheduler;
use pollux_farm::time::Time;
use pollux_farm::topology::Topology;

use super::setting::Setting;

/// Messages that a scheduler has sent and the gateware has not.
#[derive(Default)]
pub(crate) struct Sent {
    pub(crate) flows: VecDeque<Flow>,
    /// Messages without an event.
    pub(crate) releases: u64,
}

impl Outbox for Sent {
    fn send(&mut self, _: Address, message: &Message) {
        if let Message::Flow(flow) = message {
            self.releases += u64::from(flow.count == 0);
            self.flows.push_back(*flow);
        }
    }

    fn transfer(&mut self, _: u16, _: &Outgoing<'_, impl Fragments>) -> Transfer {
        Transfer::Done
    }
}

/// A transfer that a feeder has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) descriptor: u16,
    pub(crate) number: u32,
    pub(crate) bytes: u32,
    pub(crate) absent: bool,
    pub(crate) oversize: bool,
}

/// Messages and transfers of a feeder that the gateware has not sent or begun.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) flows: VecDeque<Flow>,
    pub(crate) transfers: VecDeque<Begun>,
}

impl Outbox for Done {
    fn send(&mut self, _: Address, message: &Message) {
        if let Message::Flow(flow) = message {
            self.flows.push_back(*flow);
        }
    }

    fn transfer(&mut self, _: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        let fragment = outgoing.fragment();
        self.transfers.push_back(Begun {
            descriptor: fragment.descriptor.0,
            number: fragment.mep as u32,
            bytes: fragment.bytes,
            absent: fragment.absent > outgoing.oversize(),
            oversize: outgoing.oversize() > 0,
        });
        Transfer::Running
    }
}

/// Lengths of the events' data, from event 0 on; those of decided events are not there any more.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    pub(crate) all: Vec<u32>,
    released: u64,
}

impl Fragments for Lengths {
    fn length(&self, event: u64, _: u8) -> Option<u32> {
        (self.all.get(event as usize).copied()).filter(|_| event >= self.released)
    }

    fn write(&self, _: u64, _: u8, _: &mut [u8]) {}

    fn release(&mut self, before: u64) {
        self.released = before;
    }
}

/// The roles. A cycle is a picosecond of their time; the gateware says when they are to look for
/// time-outs that are over.
pub(crate) struct Roles {
    pub(crate) scheduler: Scheduler,
    pub(crate) sent: Sent,
    pub(crate) feeders: Vec<(Feeder<Lengths>, Done)>,
    pub(crate) now: Time,
}

impl Roles {
    pub(crate) fn new(setting: &Setting, feeders: usize) -> anyhow::Result<Self> {
        let config = setting.scheduler()?;
        let topology = Topology::new(
            feeders,
            setting.columns,
            &setting.column_of,
            setting.buffers,
        )?;
        let feeder = |id| {
            let config = FeederConfig {
                run: setting.run,
                id,
                slot: setting.slot.into(),
                in_flight: super::model::SLOTS,
                bypass_above: setting.bypass_above.into(),
                beat: Time::MAX,
            };
            Feeder::new(config, &topology, Lengths::default(), Time::ZERO)
        };
        let feeders: Result<Vec<_>, _> = (0..feeders as u8)
            .map(|id| feeder(id).map(|feeder| (feeder, Done::default())))
            .collect();
        Ok(Self {
            scheduler: Scheduler::new(config, Time::ZERO)?,
            sent: Sent::default(),
            feeders: feeders?,
            now: Time::ZERO,
        })
    }

    /// A message returns to the scheduler, or feedback or a decision arrives.
    pub(crate) fn receive(&mut self, message: &Message) {
        self.scheduler
            .receive(self.now, message, (), &mut self.sent);
    }

    /// The scheduler looks for what is over.
    pub(crate) fn poll(&mut self) {
        self.scheduler.poll(self.now, &mut self.sent);
    }
}
