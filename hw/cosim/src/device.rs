//! A simulated card behind the traits of a device.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pollux_card_model::registers::event;
use pollux_card_model::{FUNCTIONS, SimulatedCard};
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Iova, IovaMap, MemoryRegion};
use pollux_pmd::bus::{Bus, BusError, Device, DmaMapping, DmaMemory, Ids, Interrupts};
use pollux_pmd::event::RegionOptions;
use pollux_pmd::{Clock, MemoryGrant};
use rustix::event::{EventfdFlags, eventfd};

use crate::memory::HostMemory;

/// Bus address of the first region; far from any address that Linux gives a process.
const BASE: u64 = 1 << 52;

/// Bytes of BAR 0 (registers), and of BAR 2 (MSI-X).
const WINDOWS: [usize; 6] = [128 << 10, 0, 8 << 10, 0, 0, 0];

/// Interrupt vectors: one for each event queue.
const VECTORS: u16 = event::QUEUE_BASE.count as u16;

/// The grant of the suites, which only run cards of this crate.
pub(crate) fn grant() -> MemoryGrant {
    // SAFETY: a simulated card writes by `HostMemory`, into the memory mapped for it, as programmed by
    // its driver or a test.
    unsafe { MemoryGrant::new() }
}

/// Command register, and its bit that lets a device reach memory (PCI 3.0 section 6.2.2).
const COMMAND: u16 = 0x04;
const BUS_MASTER: u32 = 1 << 2;

/// Duration of a clock reading, so that a loop that waits only for a time, or for a bit in
/// memory, advances the card.
const GLANCE: u64 = 20_000;

/// Duration of a round of a spin loop, in picoseconds.
const RELAX: u64 = 500_000;

struct Inner<C> {
    card: C,
    memory: HostMemory,
    /// Command registers of the functions.
    commands: [u32; FUNCTIONS],
}

/// A function of a simulated card that a driver takes over. Clones are the same device.
pub struct CosimDevice<C> {
    inner: Arc<Mutex<Inner<C>>>,
    function: u8,
}

impl<C> Clone for CosimDevice<C> {
    fn clone(&self) -> Self {
        let (inner, function) = (self.inner.clone(), self.function);
        Self { inner, function }
    }
}

impl<C: SimulatedCard> CosimDevice<C> {
    /// Function 0 of a card.
    #[must_use]
    pub fn new(card: C) -> Self {
        let inner = Arc::new(Mutex::new(Inner {
            card,
            memory: HostMemory::default(),
            commands: [0; FUNCTIONS],
        }));
        Self { inner, function: 0 }
    }

    /// Another function of the same card, below [`FUNCTIONS`].
    #[must_use]
    pub fn function(&self, function: u8) -> Self {
        let inner = self.inner.clone();
        let function = function % FUNCTIONS as u8;
        Self { inner, function }
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.function
    }

    /// A device that sees the pages of each region in reverse order, so that none follows another.
    #[must_use]
    pub fn scattered(card: C) -> Self {
        let device = Self::new(card);
        device.with(|_, memory| memory.is_scattered = true);
        device
    }

    /// Accesses the card and its memory.
    pub fn with<T>(&self, look: impl FnOnce(&mut C, &mut HostMemory) -> T) -> T {
        let mut inner = self.lock();
        let Inner { card, memory, .. } = &mut *inner;
        card.act_as(self.function);
        look(card, memory)
    }

    /// Lets time pass.
    pub fn advance(&self, time: Ns) {
        self.with(|card, memory| card.advance(memory, time.0 * 1000));
    }

    fn lock(&self) -> MutexGuard<'_, Inner<C>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, what: &dyn ToString) -> BusError {
        let (device, what) = (self.name().into(), what.to_string());
        BusError::Device { device, what }
    }
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<C: SimulatedCard> DmaMemory for CosimDevice<C> {
    fn map(&self, region: &Arc<MemoryRegion>, _grant: MemoryGrant) -> Result<DmaMapping, BusError> {
        let (id, scattered) = self.with(|_, memory| (memory.next_id(), memory.is_scattered));
        let base = BASE + (id << 40);
        let page = region.page_size();
        let addresses = if scattered {
            let pages = (0..region.len() / page).rev();
            IovaMap::paged(region, pages.map(|n| Iova(base + (n * page) as u64)))
        } else {
            IovaMap::simulated(region, base)
        };
        let addresses = addresses.map_err(|error| self.error(&error))?;
        self.with(|_, memory| memory.add(id, self.function, region.clone(), addresses.clone()));
        let device = self.clone();
        // The card cannot reach unmapped memory, as behind an IOMMU.
        let release = move || {
            device.with(|_, memory| memory.remove(id));
            true
        };
        Ok(DmaMapping::new(region.clone(), addresses, release))
    }
}

impl<C: SimulatedCard> Device for CosimDevice<C> {
    type Bus = CosimBus<C>;
    type Clock = CosimClock<C>;

    fn name(&self) -> &'static str {
        "card-sim"
    }

    fn ids(&self) -> Ids {
        Ids {
            vendor: 0x1234,
            device: 0x504c,
            ..Ids::default()
        }
    }

    fn bar(&self, index: u8, needed: usize) -> Result<CosimBus<C>, BusError> {
        let len = WINDOWS.get(usize::from(index)).copied().unwrap_or(0);
        let device = self.name().into();
        match len {
            0 => Err(BusError::NoBar { device, index }),
            len if len < needed => Err(BusError::BarTooSmall {
                device,
                index,
                len,
                needed,
            }),
            len => Ok(CosimBus {
                device: self.clone(),
                bar: index,
                len,
            }),
        }
    }

    fn config(&self, at: u16) -> Result<u32, BusError> {
        match at {
            0 => {
                let ids = self.ids();
                Ok(u32::from(ids.device) << 16 | u32::from(ids.vendor))
            }
            COMMAND => Ok(self.lock().commands[usize::from(self.function)]),
            1..256 => Ok(0),
            _ => Err(BusError::NoConfig {
                device: self.name().into(),
                at,
            }),
        }
    }

    fn set_config(&self, at: u16, value: u32) -> Result<(), BusError> {
        if at == COMMAND {
            let mut inner = self.lock();
            let Inner {
                card,
                memory,
                commands,
            } = &mut *inner;
            commands[usize::from(self.function)] = value & 0xffff;
            let on = value & BUS_MASTER != 0;
            card.act_as(self.function);
            memory.masters = memory.masters & !(1 << self.function) | u8::from(on) << self.function;
            card.set_bus_master(memory, on);
        }
        Ok(())
    }

    fn interrupts(&self, vectors: u16) -> Result<Interrupts, BusError> {
        if vectors > VECTORS {
            return Err(BusError::Interrupts {
                device: self.name().into(),
                asked: vectors,
                offered: VECTORS,
            });
        }
        let one = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let events: Result<Vec<_>, _> = (0..vectors).map(|_| one()).collect();
        let events = events.map_err(|error| self.error(&error))?;
        let theirs: Result<Vec<_>, _> = events.iter().map(OwnedFd::try_clone).collect();
        let theirs = theirs.map_err(|error| self.error(&error))?;
        self.with(|card, memory| {
            memory.events[usize::from(self.function)] = theirs;
            card.set_msix(memory, vectors);
        });
        let device = self.clone();
        let release = OnDrop(move || {
            device.with(|card, memory| {
                card.set_msix(memory, 0);
                memory.events[usize::from(device.function)].clear();
            });
        });
        Ok(Interrupts::new(events, release))
    }

    fn reset(&self) -> Result<(), BusError> {
        let mut inner = self.lock();
        let Inner {
            card,
            memory,
            commands,
        } = &mut *inner;
        // That of function 0 resets all.
        let all = if self.function == 0 {
            u8::MAX
        } else {
            1 << self.function
        };
        for (function, command) in commands.iter_mut().enumerate() {
            *command = if all >> function & 1 == 1 {
                0
            } else {
                *command
            };
        }
        card.act_as(self.function);
        card.reset(memory);
        memory.masters &= !all;
        Ok(())
    }

    fn is_gone(&self) -> bool {
        false
    }

    fn memory(&self) -> RegionOptions {
        RegionOptions::default()
    }

    fn clock(&self) -> CosimClock<C> {
        CosimClock(self.clone())
    }
}

/// A window of a simulated card's registers.
pub struct CosimBus<C> {
    device: CosimDevice<C>,
    bar: u8,
    len: usize,
}

impl<C> Clone for CosimBus<C> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            bar: self.bar,
            len: self.len,
        }
    }
}

impl<C: SimulatedCard> CosimBus<C> {
    fn is_there(&self, at: usize, width: usize) -> bool {
        at.is_multiple_of(width) && at < self.len && width <= self.len - at
    }

    fn read(&self, at: usize, width: usize) -> u32 {
        if !self.is_there(at, width) {
            return u32::MAX;
        }
        let bar = self.bar;
        self.device
            .with(|card, memory| card.read(memory, bar, at, width))
    }

    fn write(&self, at: usize, width: usize, value: u32) {
        if self.is_there(at, width) {
            let bar = self.bar;
            self.device
                .with(|card, memory| card.write(memory, bar, at, width, value));
        }
    }
}

impl<C: SimulatedCard> Bus for CosimBus<C> {
    fn len(&self) -> usize {
        self.len
    }

    fn read8(&self, at: usize) -> u8 {
        self.read(at, 1) as u8
    }

    fn read16(&self, at: usize) -> u16 {
        self.read(at, 2) as u16
    }

    fn read32(&self, at: usize) -> u32 {
        self.read(at, 4)
    }

    fn write8(&self, at: usize, value: u8) {
        self.write(at, 1, value.into());
    }

    fn write16(&self, at: usize, value: u16) {
        self.write(at, 2, value.into());
    }

    fn write32(&self, at: usize, value: u32) {
        self.write(at, 4, value);
    }
}

/// A simulated card's time: a cycle is one nanosecond. Reading it takes time.
pub struct CosimClock<C>(CosimDevice<C>);

impl<C> Clone for CosimClock<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C: SimulatedCard> Clock for CosimClock<C> {
    fn now(&self) -> Tsc {
        self.0.with(|card, memory| {
            card.advance(memory, GLANCE);
            Tsc(card.now() / 1000)
        })
    }

    fn to_ns(&self, cycles: u64) -> Ns {
        Ns(cycles)
    }

    fn to_cycles(&self, ns: Ns) -> u64 {
        ns.0
    }

    fn relax(&self) {
        self.0.with(|card, memory| card.advance(memory, RELAX));
    }
}
