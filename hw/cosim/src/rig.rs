//! The minimum of software that makes a card receive: for measurements, which must not wait for it, and
//! for tests of a card without its driver. All ports of its function, some streams of each, one page,
//! one event queue for each port.

mod page;
mod pages;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_card_model::registers::{card, clop, event, port, tx};
use pollux_card_model::{Block, Host, Register, SimulatedCard, WireFrame};
use pollux_mempool::MemoryRegion;
use pollux_mempool::region::PageSize;
use pollux_pmd::bus::{Bus, BusError, Device, DmaMapping, DmaMemory};
use pollux_pmd::net::UdpEndpoint;

pub use self::page::Page;
pub use self::wire::{datagram, neighbour, peer};
use crate::device::grant;
use crate::touched::Touched;
use crate::{CosimBus, CosimDevice};

/// Virtual addresses of the lists; not addresses of this process.
const VIRTUAL: u64 = 0x7f00_0000_0000;
/// All of the memory, in one page.
const LOG2_PAGE: u32 = 24;
/// Pages of a function: a group of the TLB's entries, of its number.
const PAGES: usize = 16;
/// Records of a queue, and bytes of it.
const LOG2_RECORDS: u32 = 8;
const QUEUE_BYTES: usize = 64 << LOG2_RECORDS;
/// Transmit rings, and what they send.
const LOG2_RING: u32 = 10;
const RING_BYTES: usize = 32 << LOG2_RING;
const RING_AT: usize = 8 * QUEUE_BYTES;
const DATA_AT: usize = RING_AT + 4 * RING_BYTES;
/// Payloads to send of each port, and bytes for each.
pub const LOADS: usize = 4;
const LOAD_BYTES: usize = 16 << 10;
/// Start of the lists, and bytes of each: those of all streams and default lists of four ports fit.
pub const LISTS_AT: usize = 1 << 20;
const LIST_BYTES: usize = 192 << 10;
const _: () = assert!(DATA_AT + 4 * LOADS * LOAD_BYTES <= LISTS_AT);
const _: () = assert!(LISTS_AT + 4 * 17 * LIST_BYTES <= 1 << LOG2_PAGE);
/// The default list of a port.
pub const DEFAULT_LIST: u16 = 16;

/// Delivery mode of a stream, as in the register `STREAM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The payload is placed.
    Payload = 0,
    /// The whole frame is placed.
    Frame = 1,
    /// The payload is a container of hits, and is expanded.
    Hits = 2,
}

/// A payload from a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Its list: 32 x port + stream.
    pub list: u16,
    /// Of its list, from 0.
    pub sequence: u32,
    /// Its source UDP port.
    pub source_port: u16,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Of its buffer's last payload: MAC in, parsed, placed, event written, in cycles of 6.4 ns.
    pub stages: [u32; 4],
}

struct List {
    /// Offset of its first buffer in the memory.
    at: usize,
    size: usize,
    count: u32,
    announced: u32,
    /// Bytes from one bare payload to the next; 0 for payloads with records.
    stride: usize,
}

/// A card that receives.
pub struct Rig<C: SimulatedCard> {
    /// The card.
    pub device: CosimDevice<C>,
    /// Its registers.
    pub bus: CosimBus<C>,
    memory: DmaMapping,
    base: u64,
    lists: BTreeMap<u16, List>,
    /// The TLB's entries.
    pages: BTreeMap<usize, Page>,
    consumed: [u32; 8],
    /// Descriptors of each ring.
    posted: [u32; 4],
    /// Destination in them, from the lowest bits: IP address, ports of it and of the source. 0: of the registers.
    pub destination: u64,
    touched: Touched,
    /// Impossible events.
    pub wrong: u64,
}

impl<C: SimulatedCard> Rig<C> {
    /// Takes the card over, with its ports disabled.
    ///
    /// # Errors
    /// It is not a card, or memory cannot be allocated.
    pub fn new(device: CosimDevice<C>) -> Result<Self, BusError> {
        let refused = |what: String| BusError::Device {
            device: device.name().into(),
            what,
        };
        let region = MemoryRegion::builder(1 << LOG2_PAGE)
            .pages(PageSize::Kib4)
            .build();
        let region = Arc::new(region.map_err(|error| refused(error.to_string()))?);
        let memory = device.map(&region, grant())?;
        let base = memory.addresses().iova(0, 1 << LOG2_PAGE);
        let base = base.map_err(|error| refused(error.to_string()))?.0;
        device.set_bus_master(true)?;
        let bus = device.bar(0, 128 << 10)?;
        let (lists, consumed) = (BTreeMap::new(), [0; 8]);
        let mut rig = Self {
            device,
            bus,
            memory,
            base,
            lists,
            pages: BTreeMap::new(),
            consumed,
            posted: [0; 4],
            destination: 0,
            touched: Touched::default(),
            wrong: 0,
        };
        let page = usize::from(rig.device.number()) * PAGES;
        rig.enter(page, Page::new(0, 0, LOG2_PAGE));
        for queue in 0..rig.ports() {
            rig.begin_queue(queue);
        }
        Ok(rig)
    }

    /// Ports of the card.
    #[must_use]
    pub fn ports(&self) -> usize {
        let has = self.read(&card::THIS, 0, card::HAS, 0);
        (has & 0xff) as usize
    }

    /// Enables an event queue, one of 8, which is disabled; another function's stays as it is.
    pub fn begin_queue(&self, queue: usize) {
        let at = self.base + (queue * QUEUE_BYTES) as u64;
        self.write64(&event::THIS, 0, event::QUEUE_BASE, queue, at);
        let control = LOG2_RECORDS << 8 | 1;
        self.write(&event::THIS, 0, event::QUEUE_CTRL, queue, control);
    }

    /// Zeroes the records of a disabled queue, and expects its first record next.
    pub fn forget_events(&mut self, queue: usize) {
        let at = self.base + (queue * QUEUE_BYTES) as u64;
        self.device
            .with(|_, memory| memory.write(self.device.number(), at, &[0; QUEUE_BYTES]));
        if let Some(consumed) = self.consumed.get_mut(queue) {
            *consumed = 0;
        }
    }

    /// Writes number `n` of a register in a block.
    pub fn write(&self, block: &Block, which: usize, register: Register, n: usize, value: u32) {
        self.touched.written(block, register, value);
        self.bus.write32(place(block, which, register, n), value);
    }

    /// Writes one of 64 bits.
    pub fn write64(&self, block: &Block, which: usize, register: Register, n: usize, value: u64) {
        self.write(block, which, register, n, value as u32);
        let high = place(block, which, register, n) + 4;
        self.bus.write32(high, (value >> 32) as u32);
    }

    /// Reads a register.
    #[must_use]
    pub fn read(&self, block: &Block, which: usize, register: Register, n: usize) -> u32 {
        let value = self.bus.read32(place(block, which, register, n));
        self.touched.read(block, register, value);
        value
    }

    /// Reads one of 64 bits.
    #[must_use]
    pub fn read64(&self, block: &Block, which: usize, register: Register, n: usize) -> u64 {
        let low = self.read(block, which, register, n);
        let high = self.bus.read32(place(block, which, register, n) + 4);
        u64::from(high) << 32 | u64::from(low)
    }

    /// Gives a list its buffers, and enables it. `size` is a multiple of 64; `timeout` is in
    /// cycles of 6.4 ns.
    pub fn add_list(&mut self, number: u16, size: usize, timeout: u32) {
        self.add_list_of(number, size, timeout, 0);
    }

    /// The same for bare payloads, `stride` bytes apart, a multiple of 16. They have neither source
    /// port nor length, and are returned with their whole stride.
    pub fn add_bare_list(&mut self, number: u16, size: usize, timeout: u32, stride: usize) {
        self.add_list_of(number, size, timeout, stride);
    }

    fn add_list_of(&mut self, number: u16, size: usize, timeout: u32, stride: usize) {
        let (n, at) = (
            usize::from(number),
            LISTS_AT + self.lists.len() * LIST_BYTES,
        );
        let count = (LIST_BYTES / size) as u32;
        self.write64(&clop::THIS, 0, clop::LIST_BASE, n, VIRTUAL + at as u64);
        self.write(&clop::THIS, 0, clop::LIST_SIZE, n, size as u32);
        self.write(&clop::THIS, 0, clop::LIST_COUNT, n, count);
        let framing = (stride as u32 / 16) << 16 | u32::from(stride > 0);
        let mode = framing | u32::from(number / 32) << 8;
        self.write(&clop::THIS, 0, clop::LIST_MODE, n, mode);
        self.write(&clop::THIS, 0, clop::LIST_TIMEOUT, n, timeout);
        self.write(&clop::THIS, 0, clop::LIST_CTRL, n, 1);
        self.lists.insert(
            number,
            List {
                at,
                size,
                count,
                announced: 0,
                stride,
            },
        );
    }

    /// Assigns a UDP port to a stream.
    pub fn add_stream(&self, which: usize, stream: usize, udp: u16, form: Form) {
        let value = 1 << 31 | (form as u32) << 16 | u32::from(udp);
        self.write(&port::THIS, which, port::STREAM, stream, value);
    }

    /// Enables a port, with its own addresses ([`neighbour`]).
    pub fn enable(&self, which: usize) {
        let UdpEndpoint { mac, socket } = neighbour(which, 0);
        let mac = mac
            .0
            .iter()
            .fold(0, |mac, &byte| mac << 8 | u64::from(byte));
        self.write64(&port::THIS, which, port::MAC, 0, mac);
        self.write(&port::THIS, which, port::IP, 0, u32::from(*socket.ip()));
        self.write(&port::THIS, which, port::MAX_FRAME, 0, 9600);
        self.write(&port::THIS, which, port::MAC_CTRL, 0, 0b11);
        // Earlier writes have taken effect.
        let _ = self.read(&port::THIS, which, port::MAC_STATUS, 0);
    }

    /// Advances time, in picoseconds.
    pub fn advance(&self, ps: u64) {
        self.device.with(|card, memory| card.advance(memory, ps));
    }

    /// Puts a frame on the wire of a port.
    pub fn put(&self, which: usize, frame: WireFrame) {
        self.device.with(|card, _| card.put(which, frame));
    }

    /// Puts a payload where a port's transmit ring can send it, in one of [`LOADS`] places.
    pub fn load(&self, which: usize, place: usize, payload: &[u8]) {
        let at = self.load_at(which, place);
        self.device
            .with(|_, memory| memory.write(self.device.number(), at, payload));
    }

    fn load_at(&self, which: usize, place: usize) -> u64 {
        let place = which * LOADS + place % LOADS;
        self.base + (DATA_AT + place * LOAD_BYTES) as u64
    }

    /// Posts bytes of a loaded payload to a port's transmit ring, to the [`destination`](Self::destination).
    /// They leave after [`doorbell`](Self::doorbell).
    pub fn post(&mut self, which: usize, place: usize, len: usize) {
        let ring = (RING_AT + which * RING_BYTES) as u64;
        let data = self.load_at(which, place);
        let Some(&posted) = self.posted.get(which) else {
            return;
        };
        if posted == 0 {
            let queue = (which as u32) << 16;
            self.write64(&tx::THIS, 0, tx::RING_BASE, which, self.base + ring);
            self.write(
                &tx::THIS,
                0,
                tx::RING_CTRL,
                which,
                queue | LOG2_RING << 8 | 1,
            );
        }
        let slot = u64::from(posted % (1 << LOG2_RING));
        // First and last of its packet, no event.
        let mut descriptor = [0; 32];
        descriptor[..8].copy_from_slice(&data.to_le_bytes());
        descriptor[8..12].copy_from_slice(&(len as u32).to_le_bytes());
        descriptor[12..14].copy_from_slice(&3_u16.to_le_bytes());
        descriptor[14..16].copy_from_slice(&(len as u16).to_le_bytes());
        descriptor[16..24].copy_from_slice(&self.destination.to_le_bytes());
        let at = self.base + ring + 32 * slot;
        self.device
            .with(|_, memory| memory.write(self.device.number(), at, &descriptor));
        self.posted[which] = posted.wrapping_add(1);
    }

    /// Descriptors that a port's ring has room for, as it says itself.
    #[must_use]
    pub fn ring_room(&self, which: usize) -> u32 {
        let done = self.read(&tx::THIS, 0, tx::RING_CONSUMER, which);
        let posted = self.posted.get(which).copied().unwrap_or(done);
        (1_u32 << LOG2_RING).saturating_sub(posted.wrapping_sub(done))
    }

    /// Tells a port's ring how many descriptors are posted.
    pub fn doorbell(&self, which: usize) {
        let posted = self.posted.get(which).copied().unwrap_or_default();
        self.write(&tx::THIS, 0, tx::RING_PRODUCER, which, posted);
    }

    /// Sends a payload by a port's transmit ring, to the destination in its registers.
    pub fn send(&mut self, which: usize, payload: &[u8]) {
        self.load(which, 0, payload);
        self.post(which, 0, payload.len());
        self.doorbell(which);
    }

    /// Reads what has been announced since, and returns buffers and records.
    pub fn receive(&mut self) -> Vec<Payload> {
        let mut found = Vec::new();
        for queue in 0..self.consumed.len().min(self.ports_known()) {
            let before = found.len();
            while let Some(record) = self.event(queue) {
                self.announced(&record, &mut found);
            }
            if found.len() > before {
                let consumed = self.consumed[queue];
                self.write(&event::THIS, 0, event::QUEUE_RELEASED, queue, consumed);
            }
        }
        found
    }

    /// Announces the rest, and waits until that is done.
    pub fn flush(&mut self) -> Vec<Payload> {
        let numbers: Vec<_> = self.lists.keys().copied().collect();
        for &number in &numbers {
            self.write(&clop::THIS, 0, clop::LIST_CTRL, number.into(), 3);
        }
        let mut found = Vec::new();
        for number in numbers {
            let flushes =
                |rig: &Self| rig.read(&clop::THIS, 0, clop::LIST_CTRL, number.into()) & 2 != 0;
            let mut patience = 1000;
            while flushes(self) && patience > 0 {
                found.append(&mut self.receive());
                patience -= 1;
            }
        }
        found.append(&mut self.receive());
        found
    }

    /// Outcomes of a list's payloads: placed, no buffer, no event, oversize, fault, off,
    /// malformed, bad version.
    #[must_use]
    pub fn outcomes(&self, list: u16) -> [u64; 8] {
        [
            clop::OUTCOME_PLACED,
            clop::OUTCOME_NO_BUFFER,
            clop::OUTCOME_NO_EVENT,
            clop::OUTCOME_OVERSIZE,
            clop::OUTCOME_FAULT,
            clop::OUTCOME_OFF,
            clop::OUTCOME_MALFORMED,
            clop::OUTCOME_BAD_VERSION,
        ]
        .map(|outcome| self.read64(&clop::THIS, 0, outcome, list.into()))
    }

    fn ports_known(&self) -> usize {
        self.lists
            .keys()
            .last()
            .map_or(0, |&list| usize::from(list / 32) + 1)
    }

    /// The next record of a queue, if its phase bit is the one of this pass.
    pub fn event(&mut self, queue: usize) -> Option<[u8; 64]> {
        let number = *self.consumed.get(queue)?;
        let at = queue * QUEUE_BYTES + (number as usize % (1 << LOG2_RECORDS)) * 64;
        let record: [u8; 64] = self.memory_at(at, 64).try_into().ok()?;
        let phase = (number >> LOG2_RECORDS) & 1 == 0;
        let is_there = (record[63] & 0x80 != 0) == phase;
        is_there.then(|| {
            self.consumed[queue] = number.wrapping_add(1);
            record
        })
    }

    /// A buffer was announced: reads its payloads.
    fn announced(&mut self, record: &[u8; 64], found: &mut Vec<Payload>) {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| record[at + i]));
        let number = u16::from_le_bytes([record[60], record[61]]);
        let (index, len, payloads) = (word(8), word(12) as usize, word(16));
        let stages = std::array::from_fn(|i| word(40 + 4 * i));
        let Some(list) = self.lists.get_mut(&number) else {
            self.wrong += 1;
            return;
        };
        let in_turn = list.announced % list.count == index && word(56) == list.announced;
        if record[62] & 0x7f != 1 || !in_turn || len > list.size {
            self.wrong += 1;
            return;
        }
        list.announced = list.announced.wrapping_add(1);
        let (at, released) = (list.at + index as usize * list.size, list.announced);
        let stride = list.stride;
        let buffer = self.list_memory(at, len);
        self.write(&clop::THIS, 0, clop::LIST_RELEASED, number.into(), released);
        if stride > 0 {
            self.wrong += u64::from(len != payloads as usize * stride);
            let first = word(20);
            found.extend(
                buffer
                    .chunks_exact(stride)
                    .zip(first..)
                    .map(|(bytes, sequence)| Payload {
                        list: number,
                        sequence,
                        source_port: 0,
                        bytes: bytes.to_vec(),
                        stages,
                    }),
            );
            return;
        }
        let mut rest = buffer.as_slice();
        for _ in 0..payloads {
            let Some((head, behind)) = rest.split_first_chunk::<16>() else {
                self.wrong += 1;
                break;
            };
            let length = u32::from_le_bytes(std::array::from_fn(|i| head[i])) as usize;
            let Some(bytes) = behind.get(..length) else {
                self.wrong += 1;
                break;
            };
            found.push(Payload {
                list: number,
                sequence: u32::from_le_bytes(std::array::from_fn(|i| head[8 + i])),
                source_port: u16::from_le_bytes([head[4], head[5]]),
                bytes: bytes.to_vec(),
                stages,
            });
            rest = behind
                .get(length.next_multiple_of(16)..)
                .unwrap_or_default();
        }
    }

    /// Bytes of the memory.
    pub(crate) fn memory_at(&self, at: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let read = self
            .device
            .with(|_, memory| memory.read(self.device.number(), self.base + at as u64, &mut bytes));
        debug_assert!(read.is_ok() && at + len <= self.memory.region().len());
        bytes
    }
}

/// Address of number `n` of a register, in one of several blocks.
fn place(block: &Block, which: usize, register: Register, n: usize) -> usize {
    block.at + which * block.step + register.of(n)
}
