//! Back end: executes the front end's requests, and is the device of its rings.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use zerocopy::IntoBytes;

use super::connection::Connection;
use super::ended::Ended;
use super::link::State;
use super::memory::Table;
use super::message::{Message, Request, VringAddress, VringState, protocol};
use super::queues::{RxSlot, TxSlot, watch};
use crate::drivers::virtio::{Areas, DeviceRx, DeviceTx, Doorbell, Features, RingFeatures};

pub(super) struct Back {
    /// Name for the log.
    pub(super) port: String,
    /// Features offered to the front end.
    pub(super) offered: Features,
    pub(super) mtu: u16,
    /// Refuse memory files that can be truncated.
    pub(super) sealed: bool,
    pub(super) rx: Vec<Arc<RxSlot<DeviceRx>>>,
    pub(super) tx: Vec<Arc<TxSlot<DeviceTx>>>,
}

/// State of a ring, as far as the front end has configured it.
#[derive(Default)]
struct Vring {
    size: u16,
    address: Option<VringAddress>,
    /// Index at which it resumes; for a packed ring two halves, of available and of used
    /// descriptors.
    base: u32,
    call: Option<OwnedFd>,
    started: bool,
    enabled: bool,
    /// The ring is in its slot.
    running: bool,
}

/// A session with one front end.
struct Session<'a> {
    back: &'a Back,
    state: &'a State,
    features: Features,
    protocol: u64,
    table: Option<Table>,
    vrings: Vec<Vring>,
}

impl Back {
    /// Serves one front end, until it disconnects or the port is stopped.
    pub(super) fn session(&self, connection: &Connection, state: &State) -> Ended {
        self.session_with(connection, state, || {})
    }

    /// As `session`, with a callback after each message.
    pub(super) fn session_with(
        &self,
        connection: &Connection,
        state: &State,
        mut between: impl FnMut(),
    ) -> Ended {
        let mut session = Session {
            back: self,
            state,
            features: Features::default(),
            protocol: 0,
            table: None,
            vrings: (0..2 * self.pairs()).map(|_| Vring::default()).collect(),
        };
        let ended = loop {
            if let Err(ended) = session.step(connection) {
                break ended;
            }
            between();
        };
        session.pause_all();
        state.set_up(false);
        ended
    }

    fn pairs(&self) -> usize {
        self.rx.len().max(self.tx.len())
    }

    fn offered(&self) -> Features {
        let mut offered = self.offered | Features::VHOST_USER_PROTOCOL | Features::MTU;
        if self.pairs() > 1 {
            offered = offered | Features::SEVERAL_QUEUES;
        }
        offered
    }
}

impl Session<'_> {
    /// Executes the next request, and replies if a reply is required.
    fn step(&mut self, connection: &Connection) -> Result<(), Ended> {
        let mut message = connection.next(|| {
            self.table.as_ref().map_or(Ok(()), Table::check)?;
            watch(&self.back.rx, &self.back.tx)
        })?;
        let answer = self.handle(&mut message);
        let running = self.vrings.iter().take(2).all(|vring| vring.running);
        self.state.set_up(running);
        let acknowledge = message.needs_reply() && self.protocol & protocol::REPLY_ACK != 0;
        let reply = match &answer {
            Ok(Answer::Number(number)) => number.as_bytes().to_vec(),
            Ok(Answer::Vring(state)) => state.as_bytes().to_vec(),
            Ok(Answer::Done) if acknowledge => 0_u64.as_bytes().to_vec(),
            Ok(Answer::Refused) | Err(_) if acknowledge => 1_u64.as_bytes().to_vec(),
            Ok(Answer::Done) | Err(_) => Vec::new(),
            // The front end may be waiting for a reply to a request that is unknown here.
            Ok(Answer::Refused) => {
                let number = message.number();
                return Err(Ended::Violation(format!(
                    "request number {number}, which was not offered"
                )));
            }
        };
        if !reply.is_empty() {
            connection.send(message.header.reply(reply.len()), &reply, &[])?;
        }
        answer.map(drop)
    }

    fn handle(&mut self, message: &mut Message) -> Result<Answer, Ended> {
        let known =
            protocol::MULTI_QUEUE | protocol::REPLY_ACK | protocol::MTU | protocol::RESET_DEVICE;
        let Some(request) = message.request() else {
            return Ok(Answer::Refused);
        };
        match request {
            Request::GetFeatures => return Ok(Answer::Number(self.back.offered().0)),
            Request::GetProtocolFeatures => return Ok(Answer::Number(known)),
            Request::GetQueueNum => return Ok(Answer::Number(self.back.pairs() as u64)),
            Request::GetVringBase => return self.stop_ring(message.read()?).map(Answer::Vring),
            Request::SetFeatures => self.set_features(Features(message.read()?))?,
            Request::SetProtocolFeatures => {
                let chosen: u64 = message.read()?;
                if chosen & !known != 0 {
                    let more = chosen & !known;
                    return Err(Ended::Violation(format!(
                        "protocol features {more:#x} were not offered"
                    )));
                }
                self.protocol = chosen;
            }
            Request::SetOwner => {}
            // Deprecated: "either ignore this message, or use it to disable all rings".
            Request::ResetOwner | Request::ResetDevice => self.reset(),
            Request::SetMemTable => {
                let table = message.take_regions()?;
                // The rings resume in the new memory, at their addresses.
                self.pause_all();
                self.table = Some(Table::map(&table, self.back.sealed)?);
                self.run_all()?;
            }
            Request::SetVringNum => {
                let VringState { index, num } = message.read()?;
                let size = u16::try_from(num)
                    .map_err(|_| Ended::Violation(format!("a ring of {num} descriptors")))?;
                self.change(index, |vring| vring.size = size)?;
            }
            Request::SetVringAddr => {
                let address: VringAddress = message.read()?;
                self.change(address.index, |vring| vring.address = Some(address))?;
            }
            Request::SetVringBase => {
                let VringState { index, num } = message.read()?;
                self.change(index, |vring| vring.base = num)?;
            }
            Request::SetVringKick => {
                // The ring is polled, so no kick is needed: the descriptor is closed.
                let (index, _kick) = message.take_vring_fd()?;
                let on = !self.features.contains(Features::VHOST_USER_PROTOCOL);
                self.change(index, |vring| {
                    vring.started = true;
                    vring.enabled |= on;
                })?;
            }
            Request::SetVringCall => {
                let (index, call) = message.take_vring_fd()?;
                let call = call.map(eventfd).transpose()?;
                self.change(index, |vring| vring.call = call)?;
            }
            // Errors are reported by closing the connection.
            Request::SetVringErr => drop(message.take_vring_fd()?),
            Request::SetVringEnable => {
                let VringState { index, num } = message.read()?;
                self.change(index, |vring| vring.enabled = num != 0)?;
            }
            Request::NetSetMtu => {
                let mtu: u64 = message.read()?;
                if mtu > self.back.mtu.into() {
                    return Ok(Answer::Refused);
                }
            }
        }
        Ok(Answer::Done)
    }

    fn set_features(&mut self, chosen: Features) -> Result<(), Ended> {
        let offered = self.back.offered();
        if !offered.contains(chosen) {
            let more = chosen.0 & !offered.0;
            return Err(Ended::Violation(format!(
                "features {more:#x} were not offered"
            )));
        }
        self.pause_all();
        self.features = chosen;
        self.run_all()
    }

    fn vring(&mut self, index: u32) -> Result<&mut Vring, Ended> {
        let rings = self.vrings.len();
        self.vrings
            .get_mut(index as usize)
            .ok_or_else(|| Ended::Violation(format!("ring number {index} of {rings}")))
    }

    /// Changes a ring, which is paused during the change.
    fn change(&mut self, index: u32, change: impl FnOnce(&mut Vring)) -> Result<(), Ended> {
        self.vring(index)?;
        self.pause(index as usize);
        change(self.vring(index)?);
        self.run(index as usize)
    }

    /// GET_VRING_BASE: the ring stops; the reply is the index at which it would resume.
    fn stop_ring(&mut self, asked: VringState) -> Result<VringState, Ended> {
        let index = asked.index;
        self.change(index, |vring| vring.started = false)?;
        let num = self.vring(index)?.base;
        Ok(VringState { index, num })
    }

    fn reset(&mut self) {
        self.pause_all();
        for vring in &mut self.vrings {
            vring.enabled = false;
        }
    }

    /// Takes a ring out of its slot.
    fn pause(&mut self, index: usize) {
        let vring = &mut self.vrings[index];
        if !std::mem::take(&mut vring.running) {
            return;
        }
        let pair = index / 2;
        // The odd rings are the driver's transmit queues.
        let base = if index % 2 == 1 {
            self.back
                .rx
                .get(pair)
                .and_then(|slot| slot.take())
                .map(|ring| ring.base())
        } else {
            self.back
                .tx
                .get(pair)
                .and_then(|slot| slot.take())
                .map(|ring| ring.base())
        };
        if let Some(base) = base.map(u32::from) {
            // A packed ring has two halves, both equal: every descriptor that was taken has been
            // used.
            let used = if self.features.contains(Features::PACKED) {
                base << 16
            } else {
                0
            };
            vring.base = used | base;
        }
    }

    fn pause_all(&mut self) {
        (0..self.vrings.len()).for_each(|index| self.pause(index));
    }

    fn run_all(&mut self) -> Result<(), Ended> {
        (0..self.vrings.len()).try_for_each(|index| self.run(index))
    }

    /// Reports once that the front end shares memory and does not use it, though it contains a
    /// ring. Writes of a virtual machine to a private mapping of the file are not visible here.
    fn tell_untouched(&mut self) {
        if self.table.as_mut().is_some_and(Table::take_untouched) {
            self.state.count_untouched();
            tracing::warn!(
                "{}: the peer has written nothing into its shared memory, although its rings are \
                 set up: the memory may be private, so that no frame arrives; QEMU needs share=on \
                 at its memory-backend-file or memory-backend-memfd",
                self.back.port
            );
        }
    }

    /// Puts a ring into its slot if its configuration is complete, and it is enabled.
    fn run(&mut self, index: usize) -> Result<(), Ended> {
        let vring = &mut self.vrings[index];
        let (Some(Table { memory, .. }), Some(address)) = (&self.table, vring.address) else {
            return Ok(());
        };
        // A ring that is started and disabled should be drained and its frames discarded. They stay
        // in the ring instead, so no frame is lost that the driver has not given up itself.
        if vring.running || !vring.started || !vring.enabled {
            return Ok(());
        }
        let features = RingFeatures::of(self.features).ok_or_else(|| {
            Ended::Unfit("VIRTIO_F_VERSION_1: it is a driver from before the standard".into())
        })?;
        let areas = Areas {
            descriptors: address.descriptors,
            driver: address.available,
            device: address.used,
        };
        let violation = |error| Ended::Violation(format!("ring number {index}: {error}"));
        // A packed ring has two halves; a split ring has one index of 16 bits.
        if !features.packed && vring.base > u32::from(u16::MAX) {
            let base = vring.base;
            return Err(Ended::Violation(format!(
                "ring number {index} is to begin at {base:#x}, and its indices have 16 bits"
            )));
        }
        let ring = memory
            .ring(areas, vring.size, features.packed)
            .map_err(violation)?;
        let doorbell = match &vring.call {
            None => Doorbell::None,
            Some(fd) => fd
                .try_clone()
                .map(Doorbell::Event)
                .map_err(|error| Ended::System("cannot copy a descriptor", error))?,
        };
        // The half of available descriptors; all of them have been used.
        let (pair, base) = (index / 2, vring.base as u16);
        if index % 2 == 1 {
            if let Some(slot) = self.back.rx.get(pair) {
                let ring = DeviceRx::new(&ring, features, memory, base, doorbell);
                slot.put(ring.map_err(violation)?);
            }
        } else if let Some(slot) = self.back.tx.get(pair) {
            let ring = DeviceTx::new(&ring, features, memory, base, doorbell);
            slot.put(ring.map_err(violation)?);
        }
        vring.running = true;
        self.tell_untouched();
        Ok(())
    }
}

/// Accepts an eventfd as the doorbell of the loop: a write to it never blocks. (A write to any
/// other file could block, or end in a signal.)
fn eventfd(fd: OwnedFd) -> Result<OwnedFd, Ended> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let kind = std::fs::read_link(path);
    if !kind.is_ok_and(|kind| kind.as_os_str() == "anon_inode:[eventfd]") {
        return Err(Ended::Violation(
            "a descriptor to be rung that is no eventfd".into(),
        ));
    }
    fcntl_getfl(&fd)
        .and_then(|flags| fcntl_setfl(&fd, flags | OFlags::NONBLOCK))
        .map_err(Ended::system("cannot use an eventfd"))?;
    Ok(fd)
}

/// Outcome of a request.
enum Answer {
    /// Done; acknowledged if the front end requests it.
    Done,
    Refused,
    Number(u64),
    Vring(VringState),
}
