//! A virtual function (VF) in hands that mean harm: registers by hand, and descriptors with
//! addresses of memory that another process has mapped for its own VF. Sections are those of the
//! Intel 82576EB Gigabit Ethernet Controller datasheet, revision 2.7.

use anyhow::{Context as _, Result, ensure};
use pollux_pmd::bus::pci::Address;
use pollux_pmd::bus::vfio::{VfioDevice, VfioOptions};
use pollux_pmd::bus::{Bus, Device, DmaMapping, DmaMemory as _};
use pollux_pmd::mempool::{Mbuf, Mempool};
use pollux_pmd::net::MacAddr;

use crate::nic::{Nic, wait_until};

/// Of the window of registers (section 8.26).
const CONTROL: usize = 0x0000;
const RESET: u32 = 1 << 26;
const MAILBOX: usize = 0x0800;
const MAILBOX_CONTROL: usize = 0x0c40;
const ASK: u32 = 1 << 0;
const READ: u32 = 1 << 1;
const OWN: u32 = 1 << 2;
const PF_RESETS: u32 = 1 << 6;
/// The first registers of the queues, and what is in each from there.
const RX: usize = 0x2800;
const TX: usize = 0x3800;
const RING_LOW: usize = 0x00;
const RING_HIGH: usize = 0x04;
const RING_LEN: usize = 0x08;
const RX_SPLIT: usize = 0x0c;
const TAIL: usize = 0x18;
const QUEUE: usize = 0x28;
const QUEUE_ON: u32 = 1 << 25;
/// Advanced descriptors, one buffer of 2 KiB.
const ONE_BUFFER: u32 = 1 << 25 | 2;

/// Bytes of the shortest ring: eight descriptors.
const RING: usize = 128;

/// The VF, taken over.
pub(super) struct Trespasser {
    device: VfioDevice,
    /// Of the pool that its rings are in.
    memory: DmaMapping,
    pool: Mempool,
    pub(super) station: MacAddr,
    rings: Vec<Mbuf>,
}

impl Trespasser {
    /// Takes a VF, and has it receive and send, as its physical function says that it may.
    pub(super) fn new(nic: &Nic, token: &str, pool: &Mempool) -> Result<Self> {
        let address: Address = nic.address.parse()?;
        let options = VfioOptions {
            vf_token: Some(token.parse()?),
            ..VfioOptions::default()
        };
        let device = VfioDevice::open(address, &options)?;
        let bus = device.bar(0, 0x4000)?;
        bus.write32(CONTROL, RESET);
        wait_until("the physical function is there", || {
            bus.read32(MAILBOX_CONTROL) & PF_RESETS == 0
        })?;
        let own = || {
            bus.write32(MAILBOX_CONTROL, OWN);
            bus.read32(MAILBOX_CONTROL) & OWN != 0
        };
        wait_until("the mailbox is free", own)?;
        // "I was reset", and its answer with an address.
        bus.write32(MAILBOX, 1);
        bus.write32(MAILBOX_CONTROL, ASK);
        wait_until("the physical function answers", || {
            bus.read32(MAILBOX) == 0x8000_0001
        })?;
        let [a, b, c, d] = bus.read32(MAILBOX + 4).to_le_bytes();
        let [e, f, ..] = bus.read32(MAILBOX + 8).to_le_bytes();
        bus.write32(MAILBOX_CONTROL, READ);
        let memory = device.map(pool.region())?;
        device.set_bus_master(true)?;
        Ok(Self {
            device,
            memory,
            pool: pool.clone(),
            station: MacAddr([a, b, c, d, e, f]),
            rings: Vec::new(),
        })
    }

    /// Has it receive the next frame to that address.
    pub(super) fn receive_to(&mut self, address: u64) -> Result<()> {
        let bus = self.device.bar(0, 0x4000)?;
        bus.write32(RX + RX_SPLIT, ONE_BUFFER);
        self.run(RX, [address, 0])
    }

    /// Has it send 60 bytes from there.
    pub(super) fn send_from(&mut self, address: u64) -> Result<()> {
        // Section 7.2.2.3: one data descriptor of 60 bytes, the last of its frame, with a check
        // sequence, reported.
        const LEN: u64 = 60;
        let word = LEN | 3 << 20 | 1 << 24 | 1 << 25 | 1 << 27 | 1 << 29 | LEN << 46;
        self.run(TX, [address, word])
    }

    /// Puts one descriptor into a ring of its own, and announces it.
    fn run(&mut self, queue: usize, words: [u64; 2]) -> Result<()> {
        let mut ring = self.pool.alloc().context("the pool is empty")?;
        let bytes = ring.append(RING).context("a buffer too small")?;
        bytes.fill(0);
        for (to, word) in bytes.chunks_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let at = self.memory.addresses().iova(ring.data_offset(), RING)?.0;
        ensure!(at.is_multiple_of(128), "a ring at {at:#x}");
        self.rings.push(ring);
        let bus = self.device.bar(0, 0x4000)?;
        bus.write32(queue + RING_LOW, at as u32);
        bus.write32(queue + RING_HIGH, (at >> 32) as u32);
        bus.write32(queue + RING_LEN, RING as u32);
        bus.write32(queue + QUEUE, QUEUE_ON);
        wait_until("the queue is on", || {
            bus.read32(queue + QUEUE) & QUEUE_ON != 0
        })?;
        bus.write32(queue + TAIL, 1);
        Ok(())
    }
}

impl Drop for Trespasser {
    /// Before its rings go back to the pool.
    fn drop(&mut self) {
        let _ = self.device.set_bus_master(false);
    }
}
