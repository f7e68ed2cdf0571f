//! A virtual function (VF) in hands that mean harm: registers by hand, and descriptors with
//! addresses of memory that another process has mapped for its own VF. Sections are those of the
//! Intel 82576EB Gigabit Ethernet Controller datasheet, revision 2.7.

use anyhow::{Context as _, Result, ensure};
use pollux_pmd::MemoryGrant;
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
/// What is said there: first words, as Linux's igb and igbvf have them.
const TELL_RESET: u32 = 1;
const SET_MAC: u32 = 2;
const NOTICE: u32 = 0x0100;
const GRANTED: u32 = 1 << 31;
const REFUSED: u32 = 1 << 30;
const CLEAR_TO_SEND: u32 = 1 << 29;
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
        // SAFETY: the test's own pool is mapped, of which nothing is borrowed while the device has it.
        let grant = unsafe { MemoryGrant::new() };
        let device = VfioDevice::open(address, &options, grant)?;
        let bus = device.bar(0, 0x4000)?;
        bus.write32(CONTROL, RESET);
        wait_until("the physical function is there", || {
            bus.read32(MAILBOX_CONTROL) & PF_RESETS == 0
        })?;
        // Its answer has an address.
        let [first, low, high] = ask(&bus, [TELL_RESET, 0, 0])?;
        ensure!(first == TELL_RESET | GRANTED, "the answer is {first:#x}");
        let ([a, b, c, d], [e, f, ..]) = (low.to_le_bytes(), high.to_le_bytes());
        let memory = device.map(pool.region(), grant)?;
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

    /// Asks for an address, which must be refused.
    pub(super) fn is_not_given(&self, station: MacAddr) -> Result<()> {
        let bus = self.device.bar(0, 0x4000)?;
        // The physical function has had something to say since: that this one may ask.
        wait_until("it may ask", || {
            bus.read32(MAILBOX) == NOTICE | CLEAR_TO_SEND
        })?;
        bus.write32(MAILBOX_CONTROL, READ);
        let [a, b, c, d, e, f] = station.0;
        let words = [[a, b, c, d], [e, f, 0, 0]].map(u32::from_le_bytes);
        let [answer, ..] = ask(&bus, [SET_MAC, words[0], words[1]])?;
        ensure!(
            answer == SET_MAC | REFUSED | CLEAR_TO_SEND,
            "asked for {station}, the physical function answered {answer:#x}"
        );
        Ok(())
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

/// Asks the physical function through the mailbox; the first words of its answer.
fn ask(bus: &impl Bus, words: [u32; 3]) -> Result<[u32; 3]> {
    let at = [MAILBOX, MAILBOX + 4, MAILBOX + 8];
    wait_until("the mailbox is free", || {
        bus.write32(MAILBOX_CONTROL, OWN);
        bus.read32(MAILBOX_CONTROL) & OWN != 0
    })?;
    for (at, word) in at.into_iter().zip(words) {
        bus.write32(at, word);
    }
    bus.write32(MAILBOX_CONTROL, ASK);
    wait_until("the physical function answers", || {
        bus.read32(MAILBOX) & (GRANTED | REFUSED) != 0
    })?;
    let answer = at.map(|at| bus.read32(at));
    bus.write32(MAILBOX_CONTROL, READ);
    Ok(answer)
}

impl Drop for Trespasser {
    /// Before its rings go back to the pool.
    fn drop(&mut self) {
        let _ = self.device.set_bus_master(false);
    }
}
