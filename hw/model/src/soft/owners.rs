//! Functions: who owns what, what an owner reaches, and how one forgets (hw/docs/functions.md).

use super::msix;
use super::soft_card::SoftCard;
use super::state::{PORTS, Ring, Sender};
use super::store::{Place, Store};
use crate::registers::{card, clop, event, functions, host, port, timing, tlb, tx};
use crate::{Block, Register};

/// Lists of a port, and pages of a group.
pub(super) const LISTS: usize = 32;
const GROUP: usize = 16;

/// What a register belongs to.
enum Whose {
    /// All may read it, and function 0 may write it.
    All,
    /// Function 0.
    First,
    /// All may read it, and function 0 and this one may write it.
    Row(u8),
    /// This one.
    Owner(u8),
}

/// The owner of an event queue, and of its vector.
pub(super) fn owner_of(store: &Store, queue: usize) -> u8 {
    let word = store.get(functions::THIS.at + functions::QUEUE_OWNERS.of(queue / 8));
    (word >> (4 * (queue % 8)) & 7) as u8
}

impl SoftCard {
    fn owner(&self, register: Register, n: usize) -> u8 {
        (self.store.get(functions::THIS.at + register.at) >> (4 * n) & 7) as u8
    }

    pub(super) fn port_owner(&self, port: usize) -> u8 {
        self.owner(functions::PORTS, port)
    }

    pub(super) fn queue_owner(&self, queue: usize) -> u8 {
        owner_of(&self.store, queue)
    }

    fn page_owner(&self, entry: usize) -> u8 {
        self.owner(functions::PAGES, entry / GROUP)
    }

    /// The vectors of a function, which are those of its queues.
    pub(super) fn vectors_of(&self, function: u8) -> msix::Own {
        std::array::from_fn(|queue| self.queue_owner(queue) == function)
    }

    fn whose(&self, place: &Place) -> Whose {
        let Place {
            kind,
            instance,
            register,
            n,
            ..
        } = *place;
        let is_of = |block: &Block| block.kind == kind;
        // What the block is, and where the next one.
        if register.at < 8 {
            return Whose::All;
        }
        let rows = functions::FAULT_CTRL.at..functions::QUEUE_OWNERS.at;
        if is_of(&functions::THIS) && rows.contains(&register.at) {
            return Whose::Row(n as u8);
        }
        if is_of(&card::THIS) || is_of(&functions::THIS) {
            return Whose::All;
        }
        if is_of(&event::THIS) {
            return Whose::Owner(self.queue_owner(n));
        }
        if is_of(&tx::THIS) {
            return Whose::Owner(self.port_owner(n));
        }
        if is_of(&clop::THIS) {
            return Whose::Owner(self.port_owner(n / LISTS));
        }
        if is_of(&port::THIS) {
            return Whose::Owner(self.port_owner(instance));
        }
        if is_of(&tlb::THIS) && register.at >= tlb::ENTRY_VIRTUAL.at {
            return Whose::Owner(self.page_owner(n));
        }
        debug_assert!(is_of(&host::THIS) || is_of(&timing::THIS) || is_of(&tlb::THIS));
        Whose::First
    }

    /// Whether the function that acts may access a register. A refused access is counted.
    pub(super) fn is_allowed(&mut self, write: bool, bar: u8, at: usize) -> bool {
        let me = self.function;
        let allowed = match (bar, Store::place(at)) {
            (0, Some(place)) => match self.whose(&place) {
                Whose::All => me == 0 || !write,
                Whose::First => me == 0,
                Whose::Row(row) => me == 0 || !write || me == row,
                Whose::Owner(owner) => me == owner,
            },
            (msix::BAR, _) if at >= msix::PENDING => !write && at < 2 * msix::PENDING,
            (msix::BAR, _) => {
                at / msix::ENTRY < self.queues.len() && self.queue_owner(at / msix::ENTRY) == me
            }
            // A reserved register of a block reads 0.
            (0, None) => Store::is_in_block(at),
            _ => false,
        };
        if !allowed {
            self.host_count(host::REFUSED);
        }
        allowed
    }

    /// A written word, and the bytes that are written: a page of another function than 0 has its
    /// number.
    pub(super) fn stamped(&self, bar: u8, at: usize, value: u32, bytes: u32) -> (u32, u32) {
        const FUNCTION: u32 = 0xff << 16;
        let is_page = Store::place(at).is_some_and(|place| {
            place.kind == tlb::THIS.kind && place.register.at == tlb::ENTRY_CTRL.at
        });
        if bar == 0 && is_page && self.function > 0 {
            let function = u32::from(self.function) << 16;
            return (value & !FUNCTION | function, bytes | FUNCTION);
        }
        (value, bytes)
    }

    /// A function forgets its rings, lists, queues and pages.
    pub(super) fn forget(&mut self, function: u8) {
        let all = u32::MAX;
        for n in (0..PORTS)
            .filter(|&n| self.port_owner(n) == function)
            .collect::<Vec<_>>()
        {
            let at = |register: Register| port::THIS.at + n * port::THIS.step + register.at;
            for stream in 0..port::STREAM.count {
                self.set(at(port::STREAM) + 4 * stream, 0, all);
            }
            for list in 0..LISTS {
                let control = clop::THIS.at + clop::LIST_CTRL.of(LISTS * n + list);
                self.set(control, 0, all);
            }
            // A frame that has begun still leaves, and pause frames count.
            for (register, value) in [
                (port::PCS_CTRL, 0),
                (port::NET_CTRL, 0),
                (port::ARP_CTRL, 0x104),
                (port::GEN_CTRL, 2),
                (port::MAC_CTRL, 0x22),
            ] {
                self.set(at(register), value, all);
            }
            let control = tx::THIS.at + tx::RING_CTRL.of(n);
            self.set(control, tx::RING_CTRL.reset, all);
            if let Some(ring) = self.rings.get_mut(n) {
                *ring = Ring::default();
            }
            // Nothing leaves later, with the addresses of the next owner.
            if let Some(port) = self.ports.get_mut(n) {
                port.sender = Sender::default();
                port.out.clear();
            }
        }
        let queues = self.vectors_of(function);
        for queue in (0..self.queues.len())
            .filter(|&queue| queues.get(queue) == Some(&true))
            .collect::<Vec<_>>()
        {
            let control = event::THIS.at + event::QUEUE_CTRL.of(queue);
            self.set(control, event::QUEUE_CTRL.reset, all);
        }
        self.vectors.mask(&queues);
        self.forget_faults(function);
        self.on_its_way.take_if(|(whose, ..)| *whose == function);
        for entry in (0..tlb::ENTRY_CTRL.count)
            .filter(|&entry| self.page_owner(entry) == function)
            .collect::<Vec<_>>()
        {
            self.set(tlb::THIS.at + tlb::ENTRY_CTRL.of(entry), 0, all);
        }
    }
}
