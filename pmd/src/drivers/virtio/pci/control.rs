//! Control queue: virtio 1.2 section 5.1.6.5. One command at a time, before frames pass.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use pollux_mempool::region::MemoryRegion;
use pollux_mempool::time::Ns;

use super::common::{Common, status};
use super::notify::NotifyRegister;
use super::wait::wait;
use crate::bus::Bus;
use crate::clock::Clock;
use crate::driver::filter::{Filter, Multicast};
use crate::drivers::virtio::areas::RingMemory;
use crate::drivers::virtio::packed::{Packed, Position};
use crate::drivers::virtio::split::{NEXT, Split, WRITE};
use crate::drivers::virtio::{Doorbell, Piece};
use crate::net::MacAddr;

/// Time limit of a command.
const PATIENCE: Ns = Ns(2_000_000_000);

/// Bytes for a command and its data, followed by the answer.
pub(super) const ROOM: usize = 4096;
const ANSWER: usize = ROOM - 1;
const OK: u8 = 0;

/// Maximum number of multicast addresses: behind the command and two counts.
pub(super) const MOST_ADDRESSES: usize = (ANSWER - 2 - 8) / size_of::<MacAddr>();

/// Descriptors of a command: one that the device reads, and its answer.
pub(super) const DESCRIPTORS: u16 = 2;

/// `VIRTIO_NET_CTRL_RX` with `_PROMISC` and `_ALLMULTI`, `VIRTIO_NET_CTRL_MAC` with `_TABLE_SET`,
/// `VIRTIO_NET_CTRL_MQ` with `_VQ_PAIRS_SET`: class and command.
const PROMISCUOUS: [u8; 2] = [0, 0];
const ALL_MULTICAST: [u8; 2] = [0, 1];
const ADDRESSES: [u8; 2] = [1, 0];
const PAIRS: [u8; 2] = [4, 0];

/// Why a command was not executed, as text.
pub(super) type Refusal = &'static str;

enum Ring {
    Split { ring: Split, commands: u32 },
    Packed { ring: Packed, at: Position },
}

impl Ring {
    fn new(memory: &RingMemory) -> Self {
        if memory.is_packed() {
            let ring = Packed::new(memory);
            ring.quiet_device();
            let at = Position::START;
            Self::Packed { ring, at }
        } else {
            let ring = Split::new(memory);
            ring.quiet_device();
            Self::Split { ring, commands: 0 }
        }
    }

    /// Makes a chain of two descriptors available: one to be read, one to be written.
    fn publish(&mut self, command: Piece, answer: Piece) {
        match self {
            Self::Split { ring, commands } => {
                // In the order of the table (section 2.7.8); its size is even.
                let head = ring.slot(commands.wrapping_mul(2));
                let tail = ring.slot(commands.wrapping_mul(2).wrapping_add(1));
                ring.write(head, command, NEXT, tail);
                ring.write(tail, answer, WRITE, 0);
                ring.available(*commands).store(head, Relaxed);
                ring.publish_available(commands.wrapping_add(1));
            }
            Self::Packed { ring, at } => {
                let (head, tail) = (*at, ring.after(*at, 1));
                ring.write_address(head, command.address);
                ring.write_address(tail, answer.address);
                ring.publish(tail, Packed::available_word(tail, answer.len, 0, WRITE));
                ring.publish(head, Packed::available_word(head, command.len, 0, NEXT));
            }
        }
    }

    /// Whether the device has used the chain that was posted; `None` if it has used none yet.
    fn done(&mut self) -> Option<bool> {
        match self {
            Self::Split { ring, commands } => {
                let next = commands.wrapping_add(1);
                let used = ring.used_index();
                if used == *commands as u16 {
                    return None;
                }
                let (id, _) = ring.read_used(*commands);
                let head = ring.slot(commands.wrapping_mul(2));
                *commands = next;
                Some(used == next as u16 && id == u32::from(head))
            }
            Self::Packed { ring, at } => {
                let (id, _) = ring.used(*at)?;
                *at = ring.after(*at, DESCRIPTORS);
                Some(id == 0)
            }
        }
    }

    fn device_listens(&self) -> bool {
        match self {
            Self::Split { ring, .. } => ring.device_listens(),
            Self::Packed { ring, .. } => ring.device_listens(),
        }
    }
}

/// The control queue.
pub(super) struct Control<'a, B> {
    common: &'a Common<B>,
    ring: Ring,
    /// [`ROOM`] bytes that hold commands only, and their device address.
    room: Arc<MemoryRegion>,
    address: u64,
    doorbell: Doorbell<NotifyRegister<B>>,
}

impl<'a, B: Bus> Control<'a, B> {
    /// The queue in this memory, of at least [`DESCRIPTORS`] descriptors. The device sees the
    /// [`ROOM`] bytes of `room` at `address`, and may write there until it is reset.
    pub(super) fn new(
        common: &'a Common<B>,
        memory: &RingMemory,
        room: Arc<MemoryRegion>,
        address: u64,
        register: NotifyRegister<B>,
    ) -> Self {
        Self {
            common,
            ring: Ring::new(memory),
            room,
            address,
            doorbell: Doorbell::Register(register),
        }
    }

    /// Sets the receive filter.
    pub(super) fn set_filter(
        &mut self,
        clock: &impl Clock,
        filter: &Filter,
    ) -> Result<(), Refusal> {
        let all = filter.multicast == Multicast::All;
        self.command(clock, PROMISCUOUS, &[filter.promiscuous.into()])?;
        self.command(clock, ALL_MULTICAST, &[all.into()])?;
        let listed: &[MacAddr] = match &filter.multicast {
            Multicast::Listed(listed) => listed,
            Multicast::All => &[],
        };
        // Two tables, unicast first: the device's own address is not in it (section 5.1.6.5.2).
        let mut tables = 0_u32.to_le_bytes().to_vec();
        tables.extend((listed.len() as u32).to_le_bytes());
        tables.extend(listed.iter().flat_map(|mac| mac.0));
        self.command(clock, ADDRESSES, &tables)
    }

    /// Sets the number of queue pairs that the device uses.
    pub(super) fn set_pairs(&mut self, clock: &impl Clock, pairs: u16) -> Result<(), Refusal> {
        self.command(clock, PAIRS, &pairs.to_le_bytes())
    }

    /// Executes a command. After a refusal the queue must not be used any more.
    fn command(
        &mut self,
        clock: &impl Clock,
        command: [u8; 2],
        data: &[u8],
    ) -> Result<(), Refusal> {
        let bytes: Vec<_> = command.iter().chain(data).copied().collect();
        if bytes.len() > ANSWER {
            return Err("it is too long: fewer multicast addresses, or all of them");
        }
        let at = self
            .room
            .ptr_at(0, ROOM)
            .map_err(|_| "it has no memory; start the port again")?;
        // SAFETY: the region has `ROOM` bytes, of which these are the first; it holds commands
        // alone, and no references to it exist.
        let answer = unsafe {
            at.copy_from_nonoverlapping(NonNull::from(&bytes[..]).cast(), bytes.len());
            at.add(ANSWER)
        };
        // SAFETY: the last of the region's bytes. Volatile, since the device writes it.
        unsafe { answer.write_volatile(!OK) };
        let piece = |offset, len| Piece {
            address: self.address + offset,
            len,
        };
        let (to_read, to_write) = (piece(0, bytes.len() as u32), piece(ANSWER as u64, 1));
        self.ring.publish(to_read, to_write);
        self.doorbell
            .after_publication(|| self.ring.device_listens());
        let is_gone = || (self.common.status() == status::GONE).then_some(false);
        match wait(clock, PATIENCE, || self.ring.done().or_else(is_gone)) {
            None => Err("it does not answer; start the port again, or the machine"),
            Some(false) => Err(
                "it answers something else, or is gone; plug it in again, or start the port anew",
            ),
            // SAFETY: as above. `done` has acquired the bytes that the device had written before.
            Some(true) if unsafe { answer.read_volatile() } == OK => Ok(()),
            Some(true) => Err(
                "it refuses; start the port with fewer queues, without promisc= and multicast=, or \
                 allow them in the hypervisor",
            ),
        }
    }
}
