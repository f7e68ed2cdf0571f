//! A device made of software, for tests of drivers: a [`Model`] behind the same traits as a real
//! one. Its clock is its own, so that waiting costs nothing and every run is the same; its
//! addresses of our memory are no pointers, and what it reaches is checked as an IOMMU would.
//!
//! [`World::no_iommu`], [`World::stubborn`] and [`FakeDevice::unplug`] take from a driver the proofs
//! that a device is at rest.

mod world;

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{IovaMap, MemoryRegion};
use rustix::event::{EventfdFlags, eventfd};

use self::world::Mapped;
pub use self::world::World;
use pollux_pmd::bus::{
    Bus, BusError, COMMAND, Device, DmaMapping, DmaMemory, Ids, Interrupts, is_register,
};
use pollux_pmd::clock::Clock;
use pollux_pmd::event::RegionOptions;
use pollux_pmd::grant::MemoryGrant;

/// The grant of tests and fuzzers. What it is used for is the devices of this module, and peers that
/// the tests run themselves.
#[must_use]
pub fn grant() -> MemoryGrant {
    // SAFETY: a fake device writes by raw pointers, into what was posted; a test that has it write
    // elsewhere holds no reference to that meanwhile.
    unsafe { MemoryGrant::new() }
}

thread_local! {
    static READS: Cell<u64> = const { Cell::new(0) };
}

/// Number of register reads of fake devices by this thread. On a real bus, a read stalls a poll loop
/// for about a microsecond; a write is posted.
#[must_use]
pub fn register_reads() -> u64 {
    READS.get()
}

/// What a device does when its registers are touched and when time passes.
pub trait Model: Send + 'static {
    /// What it is.
    fn ids(&self) -> Ids;

    /// Bytes in each of its windows; 0 where there is none.
    fn bars(&self) -> [usize; 6];

    /// 32 bits of configuration space; `None` beyond its end. The command register, the lower half
    /// of its word, is the fake device's own.
    fn config(&mut self, at: u16) -> Option<u32> {
        let ids = self.ids();
        match at {
            0 => Some(u32::from(ids.device) << 16 | u32::from(ids.vendor)),
            1..256 => Some(0),
            _ => None,
        }
    }

    /// Writes 32 bits of configuration space.
    fn set_config(&mut self, _at: u16, _value: u32) {}

    /// Whether it can put no more than 32 bits of an address on the bus. Memory that is mapped for it
    /// has such addresses then.
    fn is_narrow(&self) -> bool {
        false
    }

    /// Interrupt vectors.
    fn vectors(&self) -> u16 {
        0
    }

    /// It is to have so many virtual functions; false if it cannot.
    fn set_virtual_functions(&mut self, _count: u16) -> bool {
        false
    }

    /// A register of `width` bytes is read; the access is aligned and inside the window.
    fn read(&mut self, world: &mut World, bar: u8, at: usize, width: usize) -> u32;

    /// A register of `width` bytes is written.
    fn write(&mut self, world: &mut World, bar: u8, at: usize, width: usize, value: u32);

    /// Time has passed.
    fn tick(&mut self, _world: &mut World) {}

    /// Back to how it was made.
    fn reset(&mut self, world: &mut World);

    /// For an adversary: what it says next of a buffer that it gives back, beside that it does, is
    /// wrong by these bits.
    fn lie(&mut self, _bits: u64) {}
}

struct Inner<M> {
    model: M,
    world: World,
}

struct Shared<M> {
    inner: Mutex<Inner<M>>,
    gone: AtomicBool,
    wanted: AtomicBool,
}

impl<M> Shared<M> {
    fn lock(&self) -> MutexGuard<'_, Inner<M>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device whose behaviour is a [`Model`]. Clones are the same device.
pub struct FakeDevice<M>(Arc<Shared<M>>);

impl<M> Clone for FakeDevice<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M: Model> FakeDevice<M> {
    /// A device.
    pub fn new(model: M) -> Self {
        Self(Arc::new(Shared {
            inner: Mutex::new(Inner {
                model,
                world: World::default(),
            }),
            gone: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
        }))
    }

    /// Looks into the model, or changes something in it.
    pub fn with<T>(&self, look: impl FnOnce(&mut M, &mut World) -> T) -> T {
        let work = || {
            let mut inner = self.0.lock();
            let Inner { model, world } = &mut *inner;
            look(model, world)
        };
        // What the device does is not its driver's doing.
        crate::guard::aside(work)
    }

    /// Unplugs it: its registers and its configuration space read all ones from now on, and take no
    /// writes. That looks the same as a bus that is broken, so that the model still reaches what it
    /// reached before.
    pub fn unplug(&self) {
        self.0.gone.store(true, Ordering::Relaxed);
    }

    /// Whether it takes no accesses any more.
    fn is_unplugged(&self) -> bool {
        self.0.gone.load(Ordering::Relaxed)
    }

    /// Its owner wants it back: it is as good as gone, but works until it is given back.
    pub fn want_back(&self) {
        self.0.wanted.store(true, Ordering::Relaxed);
    }
}

impl<M: Model> DmaMemory for FakeDevice<M> {
    fn map(&self, region: &Arc<MemoryRegion>, _grant: MemoryGrant) -> Result<DmaMapping, BusError> {
        /// Far from where Linux puts anything of a process.
        const BASE: u64 = 1 << 52;
        /// Not where the processor has the region.
        const NARROW_BASE: u64 = 0x9000_0000;
        let (id, base) = self.with(|model, world| {
            world.next += 1;
            let mut base = BASE + (world.next << 40);
            if model.is_narrow() {
                base = NARROW_BASE + world.narrow_bytes;
                // A gap as well, so that what runs over an end is seen.
                world.narrow_bytes += (region.len() as u64).next_multiple_of(1 << 20) + (1 << 20);
            }
            (world.next, base)
        });
        let addresses = IovaMap::simulated(region, base).map_err(|error| {
            let (device, what) = (self.name().into(), error.to_string());
            BusError::Device { device, what }
        })?;
        let mapped = Mapped {
            id,
            region: region.clone(),
            addresses: addresses.clone(),
        };
        self.with(|_, world| world.mapped.push(mapped));
        let device = self.clone();
        let release = move || {
            device.with(|_, world| {
                if !world.no_iommu {
                    world.mapped.retain(|mapped| mapped.id != id);
                }
                !world.no_iommu
            })
        };
        Ok(DmaMapping::new(region.clone(), addresses, release))
    }
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<M: Model> Device for FakeDevice<M> {
    type Bus = FakeBus<M>;
    type Clock = FakeClock<M>;

    fn name(&self) -> &'static str {
        "fake"
    }

    fn ids(&self) -> Ids {
        self.with(|model, _| model.ids())
    }

    fn bar(&self, index: u8, needed: usize) -> Result<FakeBus<M>, BusError> {
        let bars = self.with(|model, _| model.bars());
        let len = bars.get(usize::from(index)).copied().unwrap_or(0);
        let device = self.name().into();
        match len {
            0 => Err(BusError::NoBar { device, index }),
            len if len < needed => Err(BusError::BarTooSmall {
                device,
                index,
                len,
                needed,
            }),
            len => Ok(FakeBus {
                device: self.clone(),
                bar: index,
                len,
            }),
        }
    }

    fn config(&self, at: u16) -> Result<u32, BusError> {
        if self.is_unplugged() {
            return Ok(u32::MAX);
        }
        let found = self.with(|model, world| match at {
            COMMAND => model
                .config(at)
                .map(|word| word & 0xffff_0000 | world.command()),
            at => model.config(at),
        });
        let device = self.name().into();
        found.ok_or(BusError::NoConfig { device, at })
    }

    fn set_config(&self, at: u16, value: u32) -> Result<(), BusError> {
        if self.is_unplugged() {
            return Ok(());
        }
        self.with(|model, world| match at {
            COMMAND => world.command = value & 0xffff,
            at => model.set_config(at, value),
        });
        Ok(())
    }

    fn interrupts(&self, vectors: u16) -> Result<Interrupts, BusError> {
        let device = || self.name().into();
        let offered = self.with(|model, _| model.vectors());
        if vectors > offered {
            return Err(BusError::Interrupts {
                device: device(),
                asked: vectors,
                offered,
            });
        }
        let one = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let events: Result<Vec<_>, _> = (0..vectors).map(|_| one()).collect();
        let both = events.and_then(|events| {
            let theirs: Result<Vec<_>, std::io::Error> =
                events.iter().map(OwnedFd::try_clone).collect();
            Ok((events, theirs.map_err(|_| rustix::io::Errno::MFILE)?))
        });
        let (events, theirs) = both.map_err(|error| BusError::System {
            device: device(),
            what: "eventfd".into(),
            hint: String::new(),
            error: error.into(),
        })?;
        self.with(|_, world| world.interrupts = theirs);
        let device = self.clone();
        let release = OnDrop(move || device.with(|_, world| world.interrupts.clear()));
        Ok(Interrupts::new(events, release))
    }

    fn reset(&self) -> Result<(), BusError> {
        if self.is_unplugged() {
            let (device, what) = (self.name().into(), "it does not answer".into());
            return Err(BusError::Device { device, what });
        }
        self.with(|model, world| {
            world.command = 0;
            model.reset(world);
        });
        Ok(())
    }

    fn set_virtual_functions(&self, count: u16) -> Result<(), BusError> {
        let done = self.with(|model, _| model.set_virtual_functions(count));
        let (device, what) = (self.name().into(), "has no virtual functions".into());
        done.then_some(()).ok_or(BusError::Device { device, what })
    }

    fn is_gone(&self) -> bool {
        self.is_unplugged() || self.0.wanted.load(Ordering::Relaxed)
    }

    fn memory(&self) -> RegionOptions {
        self.with(|_, world| world.memory)
    }

    fn counts_in_real_time(&self) -> bool {
        self.with(|_, world| world.real_time)
    }

    fn clock(&self) -> FakeClock<M> {
        FakeClock(self.clone())
    }
}

/// A window of a fake device's registers.
pub struct FakeBus<M> {
    device: FakeDevice<M>,
    bar: u8,
    len: usize,
}

impl<M> Clone for FakeBus<M> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            bar: self.bar,
            len: self.len,
        }
    }
}

impl<M: Model> FakeBus<M> {
    fn is_there(&self, at: usize, width: usize) -> bool {
        is_register(self.len, at, width) && !self.device.is_unplugged()
    }

    fn read(&self, at: usize, width: usize) -> u32 {
        READS.set(READS.get() + 1);
        if !self.is_there(at, width) {
            return u32::MAX;
        }
        let bar = self.bar;
        self.device
            .with(|model, world| model.read(world, bar, at, width))
    }

    fn write(&self, at: usize, width: usize, value: u32) {
        if self.is_there(at, width) {
            let bar = self.bar;
            self.device
                .with(|model, world| model.write(world, bar, at, width, value));
        }
    }
}

impl<M: Model> Bus for FakeBus<M> {
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

/// A fake device's clock: one cycle is one nanosecond, and a round of a spin loop takes ten
/// microseconds, in which the device works, so that time-outs pass quickly.
pub struct FakeClock<M>(FakeDevice<M>);

impl<M> Clone for FakeClock<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M: Model> Clock for FakeClock<M> {
    fn now(&self) -> Tsc {
        self.0.with(|_, world| Tsc(world.now))
    }

    fn to_ns(&self, cycles: u64) -> Ns {
        Ns(cycles)
    }

    fn to_cycles(&self, ns: Ns) -> u64 {
        ns.0
    }

    fn relax(&self) {
        self.0.with(|model, world| {
            world.now += 10_000;
            model.tick(world);
        });
    }
}

#[cfg(test)]
mod tests;
