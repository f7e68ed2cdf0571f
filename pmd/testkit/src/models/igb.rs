//! An 82576 made of software, with a physical function and up to seven virtual ones, each a device
//! of its own: for tests of both drivers. It behaves as the datasheet says, as far as the drivers
//! touch it, and knows nothing of them.

mod look;
mod mailbox;
mod offsets;
mod queue;
mod switch;
pub mod trial;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pollux_pmd::bus::Ids;
use pollux_pmd::drivers::igb::message::mac_words;
use pollux_pmd::drivers::igb::registers::*;
use pollux_pmd::net::MacAddr;

use crate::adversary::Choices;
use crate::fake::{FakeDevice, Model, World};

/// The address that is burnt in.
pub const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x12, 0x34, 0x56]);

/// All functions together.
#[allow(clippy::struct_excessive_bools)] // independent of each other
pub struct Chip {
    registers: Vec<u32>,
    /// Virtual functions that there are.
    vfs: usize,
    /// What was sent to the wire.
    pub wire: VecDeque<Vec<u8>>,
    /// Frames for each queue that wait until its function is looked at.
    arrived: [VecDeque<Vec<u8>>; 16],
    /// Where each transmit queue sums from, and where to (section 7.2.2.2).
    contexts: [(usize, usize); 16],
    /// Vectors that are to be signalled: of the virtual functions, and of the physical one last.
    pending: [u32; 8],
    /// A reset does not end.
    pub stuck: bool,
    /// Queues are not switched off.
    pub deaf: bool,
    /// The PHY takes no notice.
    pub silent: bool,
    /// It has an address.
    pub named: bool,
    /// So many looks are taken until the EEPROM has been read after a reset.
    loading: u32,
    /// The cable.
    pub plugged: bool,
    /// There is no driver of the physical function, but something that answers.
    pretended: Option<Choices>,
    /// Frames of a virtual function that were stopped by anti-spoofing.
    pub spoofed: u64,
    /// Bits that the next descriptor has wrong.
    lie: u64,
}

impl Chip {
    fn new() -> Self {
        let mut chip = Self {
            registers: vec![0; WINDOW / 4],
            vfs: 0,
            wire: VecDeque::new(),
            arrived: Default::default(),
            contexts: [(0, 0); 16],
            pending: [0; 8],
            stuck: false,
            deaf: false,
            silent: false,
            named: true,
            loading: 0,
            plugged: true,
            spoofed: 0,
            lie: 0,
            pretended: None,
        };
        chip.reset();
        chip
    }

    fn get(&self, at: usize) -> u32 {
        self.registers.get(at / 4).copied().unwrap_or(0)
    }

    fn set(&mut self, at: usize, value: u32) {
        if let Some(register) = self.registers.get_mut(at / 4) {
            *register = value;
        }
    }

    fn set_bits(&mut self, at: usize, bits: u32, on: bool) {
        let others = self.get(at) & !bits;
        self.set(at, others | if on { bits } else { 0 });
    }

    fn has(&self, at: usize, bits: u32) -> bool {
        self.get(at) & bits != 0
    }

    /// Of the physical function, and so of all, but not of the PHY, which keeps its link.
    fn reset(&mut self) {
        let link = self.get(STATUS.at) & STATUS_LINK_UP;
        self.registers.fill(0);
        self.arrived.iter_mut().for_each(VecDeque::clear);
        self.loading = 3;
        self.set(STATUS.at, STATUS_MASTER_ENABLED | 2 << 6 | link);
        self.set(VFRE.at, 0xff);
        self.set(VFTE.at, 0xff);
        for vf in 0..8 {
            self.set(offsets::V2PMAILBOX + 4 * vf, offsets::mailbox::PF_RESETS);
        }
    }

    /// The driver polls whether the EEPROM has been read.
    fn load(&mut self) {
        if self.loading > 0 {
            self.loading -= 1;
            return;
        }
        let [low, high] = mac_words(MAC);
        let valid = if self.named { RAH_VALID } else { 0 };
        self.set(RAL.at, low);
        self.set(RAH.at, high | valid);
        self.set(EEC.at, EEC_AUTO_READ_DONE);
    }

    fn pool_mode(&self) -> bool {
        self.has(MRQC.at, 1)
    }

    /// Raises a cause of the physical function's `ICR`.
    fn raise(&mut self, cause: u32) {
        self.set_bits(ICR.at, cause, true);
        let entry = self.get(IVAR_MISC.at) >> 8;
        if self.has(IMS.at, cause) && self.has(GPIE.at, GPIE_MSIX) && entry & 0x80 != 0 {
            self.signal(7, entry & 0x1f);
        }
    }

    fn signal(&mut self, function: usize, vector: u32) {
        if let Some(pending) = self.pending.get_mut(function) {
            *pending |= 1 << (vector & 31);
        }
    }

    /// Has every message of a virtual function answered at once, as by a hostile physical function.
    /// A seed determines the replies.
    pub fn pretend_physical(&mut self, seed: u64) {
        self.pretended = Some(Choices::Seeded(seed));
        self.reset_is_done();
        self.set(STATUS.at, STATUS_LINK_UP | 2 << 6);
        self.set(RCTL.at, RCTL_ENABLE | RCTL_BROADCAST);
        self.set(TCTL.at, TCTL_ENABLE);
        self.set(RLPML.at, LONGEST);
        // As the physical function sets a pool up.
        self.vfs = 1;
        self.set(MRQC.at, 1);
        let pool = VMOLR_BROADCAST | VMOLR_UNTAGGED | VMOLR_LONG | LONGEST;
        self.set(VMOLR.of(0), pool);
    }

    /// Plugs the cable in, or out.
    pub fn plug(&mut self, on: bool) {
        self.plugged = on;
        self.set_bits(STATUS.at, STATUS_LINK_UP, on);
        self.raise(IMS_LINK);
    }
}

/// One function: the physical one, or a virtual one by number.
pub struct Function {
    chip: Arc<Mutex<Chip>>,
    vf: Option<usize>,
    /// What happens elsewhere while this one waits.
    meanwhile: Option<Box<dyn FnMut() + Send>>,
}

/// The same chip.
#[derive(Clone)]
pub struct Nic(Arc<Mutex<Chip>>);

impl Nic {
    /// A chip after power-up.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Chip::new())))
    }

    /// Access to the state that the functions share.
    pub fn chip(&self) -> MutexGuard<'_, Chip> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model of a function, to be put into a device or an adversary.
    #[must_use]
    pub fn function(&self, vf: Option<usize>) -> Function {
        let (chip, meanwhile) = (self.0.clone(), None);
        Function {
            chip,
            vf,
            meanwhile,
        }
    }

    /// The device of a function: a virtual one by its number, or the physical one.
    #[must_use]
    pub fn device(&self, vf: Option<usize>) -> FakeDevice<Function> {
        FakeDevice::new(self.function(vf))
    }

    /// A frame arrives on the wire.
    pub fn arrive(&self, frame: &[u8]) {
        self.chip().receive(frame, None);
    }

    /// Takes what was sent to the wire.
    #[must_use]
    pub fn sent(&self) -> Vec<Vec<u8>> {
        self.chip().wire.drain(..).collect()
    }
}

impl Function {
    /// Has `work` done whenever this function's driver waits.
    pub fn meanwhile(&mut self, work: impl FnMut() + Send + 'static) {
        self.meanwhile = Some(Box::new(work));
    }

    /// A frame arrives on the wire. What was sent to it is forgotten.
    pub fn arrive(&mut self, frame: &[u8], world: &mut World) {
        let mut chip = self.chip();
        chip.wire.clear();
        chip.receive(frame, None);
        self.settle(&mut chip, world);
    }

    fn chip(&self) -> MutexGuard<'_, Chip> {
        self.chip.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a register of this function is among those of the physical one; `None` if there is
    /// none (section 8.26).
    fn place(&self, at: usize) -> Option<usize> {
        let Some(vf) = self.vf else { return Some(at) };
        let queue = |base: usize, first: usize| first + 0x40 * vf + (at - base);
        match at {
            0x0008 => Some(at),
            0x0800..0x0840 => Some(at + 64 * vf),
            0x0c40 => Some(at + 4 * vf),
            0x0f10..0x0f40 => Some(offsets::POOL_STATISTICS + 0x100 * vf + (at & 0xff)),
            0x1740 => Some(offsets::VTIVAR_MISC + 4 * vf),
            0x2800..0x2840 => Some(queue(0x2800, RX.at)),
            0x3800..0x3840 => Some(queue(0x3800, TX.at)),
            _ => None,
        }
    }

    /// Moves what has arrived, and signals what is to be signalled.
    fn settle(&self, chip: &mut Chip, world: &mut World) {
        for queue in 0..16 {
            let (pool, vfs) = (queue % 8, chip.vfs);
            if self.vf == (pool < vfs).then_some(pool) {
                chip.deliver(queue, world);
            }
        }
        let own = self.vf.unwrap_or(7);
        if let Some(pending) = chip.pending.get_mut(own) {
            let vectors = std::mem::take(pending);
            (0..32)
                .filter(|n| vectors & 1 << n != 0)
                .for_each(|n| world.interrupt(n));
        }
    }
}

impl Model for Function {
    fn ids(&self) -> Ids {
        Ids {
            vendor: 0x8086,
            device: if self.vf.is_some() { 0x10ca } else { 0x10c9 },
            ..Ids::default()
        }
    }

    fn bars(&self) -> [usize; 6] {
        let len = if self.vf.is_some() { 0x4000 } else { WINDOW };
        [len, 0, 0, 0, 0, 0]
    }

    fn vectors(&self) -> u16 {
        if self.vf.is_some() { 3 } else { 10 }
    }

    fn set_virtual_functions(&mut self, count: u16) -> bool {
        let is_physical = self.vf.is_none();
        if is_physical {
            self.chip().vfs = count.min(7).into();
        }
        is_physical && count <= 7
    }

    fn read(&mut self, world: &mut World, _: u8, at: usize, _: usize) -> u32 {
        let mut chip = self.chip();
        self.settle(&mut chip, world);
        let Some(at) = self.place(at) else { return 0 };
        if at == EEC.at && !chip.has(at, EEC_AUTO_READ_DONE) {
            chip.load();
        }
        let value = chip.get(at);
        match at {
            0xc000.. if at % 0x40 == offsets::queue::CONTROL && chip.deaf => {
                value | offsets::queue::ENABLED
            }
            _ if self.vf.is_none() && at == CTRL.at && chip.stuck => value | CTRL_RESET,
            0x00c0 | 0x3554 | 0x4000..0x4200 if self.vf.is_none() => {
                chip.set(at, 0);
                value
            }
            0x0c40..0x0c60 => {
                chip.set(at, value & !offsets::mailbox::CLEARED_BY_READING);
                value
            }
            0xc000..0xc400 if at % 0x40 == offsets::queue::DROPPED => {
                chip.set(at, 0);
                value
            }
            _ => value,
        }
    }

    fn write(&mut self, world: &mut World, _: u8, at: usize, _: usize, value: u32) {
        let mut chip = self.chip();
        if let Some(vf) = self.vf
            && at == CTRL.at
        {
            if value & CTRL_RESET != 0 {
                chip.reset_vf(vf);
            }
            return;
        }
        let Some(place) = self.place(at) else { return };
        match place {
            0x0000 if value & CTRL_RESET != 0 => chip.reset(),
            0x0000 => {
                let masters = value & CTRL_MASTER_DISABLE == 0;
                chip.set_bits(STATUS.at, STATUS_MASTER_ENABLED, masters);
                chip.set(place, value);
            }
            0x0008 => {}
            0x0020 => {
                let error = if chip.silent { MDIC_ERROR } else { 0 };
                chip.set(place, value | MDIC_READY | error);
                let up = chip.plugged && !chip.silent;
                chip.set_bits(STATUS.at, STATUS_LINK_UP, up);
            }
            0x0018 => {
                chip.set(place, value);
                if value & CTRL_EXT_PF_RESET_DONE != 0 {
                    chip.reset_is_done();
                }
            }
            0x00d0 | 0x1524 => chip.set_bits(place, value, true),
            0x00d8 => chip.set_bits(IMS.at, value, false),
            0x1528 => chip.set_bits(EIMS.at, value, false),
            0x0c00..0x0c20 => chip.pf_mailbox((place - P2VMAILBOX.at) / 4, value),
            0x0c40..0x0c60 => chip.vf_mailbox((place - offsets::V2PMAILBOX) / 4, value),
            // Ones clear.
            0x0c80 | 0x0c88 => chip.set_bits(place, value, false),
            0xe000..0xe400 => {
                chip.set(place, value);
                let queue = (place - TX.at) / 0x40;
                if (place - TX.at) % 0x40 == offsets::queue::TAIL {
                    chip.send(queue, world);
                }
            }
            _ => chip.set(place, value),
        }
        self.settle(&mut chip, world);
    }

    fn tick(&mut self, world: &mut World) {
        if let Some(work) = &mut self.meanwhile {
            work();
        }
        let mut chip = self.chip();
        self.settle(&mut chip, world);
    }

    fn lie(&mut self, bits: u64) {
        self.chip().lie = bits;
    }

    fn reset(&mut self, _: &mut World) {
        let mut chip = self.chip();
        match self.vf {
            Some(vf) => chip.reset_vf(vf),
            None => chip.reset(),
        }
    }
}
