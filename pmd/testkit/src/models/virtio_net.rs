//! A virtio network device on the PCI bus, register by register: virtio 1.2 sections 4.1 and 5.1,
//! written from the standard and not from the driver, which it judges.

mod registers;
mod rings;
pub mod trial;
mod windows;

use std::collections::VecDeque;

use pollux_pmd::bus::Ids;
use pollux_pmd::net::Checksum;

use self::rings::{Chain, Queue};
use crate::fake::{Model, World};

/// Bytes of the header in front of each frame (section 5.1.6).
const HEADER: usize = 12;

/// Frames that wait for buffers; others are lost on the wire.
const MOST_PENDING: usize = 64;

/// Feature bits.
pub mod bit {
    /// `VIRTIO_NET_F_CSUM`.
    pub const CHECKSUM: u64 = 1 << 0;
    /// `VIRTIO_NET_F_GUEST_CSUM`.
    pub const GUEST_CHECKSUM: u64 = 1 << 1;
    /// `VIRTIO_NET_F_MTU`.
    pub const MTU: u64 = 1 << 3;
    /// `VIRTIO_NET_F_MAC`.
    pub const MAC: u64 = 1 << 5;
    /// `VIRTIO_NET_F_MRG_RXBUF`.
    pub const MERGEABLE: u64 = 1 << 15;
    /// `VIRTIO_NET_F_STATUS`.
    pub const STATUS: u64 = 1 << 16;
    /// `VIRTIO_NET_F_CTRL_VQ`.
    pub const CONTROL: u64 = 1 << 17;
    /// `VIRTIO_NET_F_CTRL_RX`.
    pub const CONTROL_RX: u64 = 1 << 18;
    /// `VIRTIO_NET_F_MQ`.
    pub const SEVERAL_QUEUES: u64 = 1 << 22;
    /// `VIRTIO_F_INDIRECT_DESC`.
    pub const INDIRECT: u64 = 1 << 28;
    /// `VIRTIO_F_VERSION_1`.
    pub const VERSION_1: u64 = 1 << 32;
    /// `VIRTIO_F_ACCESS_PLATFORM`.
    pub const ACCESS_PLATFORM: u64 = 1 << 33;
    /// `VIRTIO_F_RING_PACKED`.
    pub const PACKED: u64 = 1 << 34;
    /// `VIRTIO_F_IN_ORDER`.
    pub const IN_ORDER: u64 = 1 << 35;
}

/// All that the model can.
pub const ALL: u64 = bit::CHECKSUM
    | bit::GUEST_CHECKSUM
    | bit::MTU
    | bit::MAC
    | bit::MERGEABLE
    | bit::STATUS
    | bit::CONTROL
    | bit::CONTROL_RX
    | bit::SEVERAL_QUEUES
    | bit::INDIRECT
    | bit::VERSION_1
    | bit::ACCESS_PLATFORM
    | bit::PACKED
    | bit::IN_ORDER;

/// What the model does wrong on purpose.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fault of its own
pub struct Faults {
    /// It accepts no features.
    pub refuses: bool,
    /// It does not come to an end with a reset.
    pub never_rests: bool,
    /// It does not work on its control queue.
    pub mute: bool,
    /// It says no to commands.
    pub says_no: bool,
    /// Its configuration changes whenever it is looked at.
    pub restless: bool,
}

/// The device.
#[allow(clippy::struct_excessive_bools)] // independent of each other
pub struct VirtioNet {
    /// Its configuration space: a test may bend it.
    pub space: [u8; 256],
    /// Numbers by which it is found.
    pub ids: Ids,
    /// Feature bits that it offers.
    pub offered: u64,
    /// Its address.
    pub mac: [u8; 6],
    /// State of the link.
    pub up: bool,
    /// Most pairs of queues.
    pub max_pairs: u16,
    /// The MTU that it reports.
    pub mtu: u16,
    /// Interrupts.
    pub vectors: u16,
    /// Generation of the configuration.
    pub generation: u8,
    /// Most descriptors of each queue.
    pub max_size: u16,
    /// Steps of a queue's register for notifications.
    pub notify_step: u16,
    /// Faults to show.
    pub faults: Faults,
    /// The device polls for buffers whenever time passes, and needs no notifications.
    pub polls: bool,
    /// The device neither polls nor asks for notifications.
    pub deaf: bool,
    /// What the driver does that the standard forbids.
    pub violations: Vec<String>,
    /// Frames that were sent, and on which queue.
    pub sent: Vec<(u16, Vec<u8>)>,
    /// Frames that wait for buffers, and for which queue.
    pub pending: VecDeque<(u16, Vec<u8>)>,
    /// Flags and places of the checksum in the headers of frames that are received, where the
    /// driver takes such.
    pub checksums: [u8; 12],
    /// Frames that no buffer could hold.
    pub too_long: u64,
    /// Notifications of queues.
    pub notifications: u64,
    /// Receives all frames.
    pub promiscuous: bool,
    /// Receives all groups.
    pub all_multicast: bool,
    /// Groups that it receives.
    pub multicast: Vec<[u8; 6]>,
    /// Pairs of queues in use.
    pub pairs: u16,
    /// Bits of its status that it sets by itself.
    pub trouble: u8,
    /// Bits that the next length has wrong.
    lie: u32,
    status: u8,
    accepted: u64,
    device_feature_select: u32,
    driver_feature_select: u32,
    queue_select: u16,
    queues: Vec<Queue>,
}

impl VirtioNet {
    /// A device that offers these features, and has its windows where QEMU's has them.
    #[must_use]
    pub fn new(offered: u64) -> Self {
        let mut model = Self {
            space: windows::configuration_space(),
            ids: Ids {
                vendor: 0x1af4,
                device: 0x1041,
                revision: 1,
                ..Ids::default()
            },
            offered,
            mac: [0x52, 0x54, 0, 0x12, 0x34, 0x56],
            up: true,
            max_pairs: 4,
            mtu: 9000,
            vectors: 5,
            generation: 0,
            max_size: 256,
            notify_step: 1,
            faults: Faults::default(),
            polls: false,
            deaf: false,
            violations: Vec::new(),
            sent: Vec::new(),
            pending: VecDeque::new(),
            checksums: [0; 12],
            too_long: 0,
            notifications: 0,
            promiscuous: true,
            all_multicast: false,
            multicast: Vec::new(),
            pairs: 1,
            trouble: 0,
            lie: 0,
            status: 0,
            accepted: 0,
            device_feature_select: 0,
            driver_feature_select: 0,
            queue_select: 0,
            queues: Vec::new(),
        };
        model.clear();
        model
    }

    /// What the driver has accepted.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// The device's status.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.status
    }

    /// How many descriptors the driver gave a queue; 0 if it does not use it.
    #[must_use]
    pub fn size_of(&self, queue: u16) -> u16 {
        let queue = self.queues.get(usize::from(queue));
        queue.map_or(0, |queue| if queue.enabled { queue.size } else { 0 })
    }

    /// The link goes up or down.
    pub fn set_link(&mut self, up: bool) {
        self.up = up;
        self.generation = self.generation.wrapping_add(1);
    }

    /// A frame comes off the wire: for the queue of that pair.
    pub fn receive(&mut self, world: &mut World, pair: u16, frame: &[u8]) {
        if self.pending.len() == MOST_PENDING {
            self.pending.pop_front();
        }
        self.pending.push_back((2 * pair, frame.to_vec()));
        self.deliver(world);
    }

    /// Back to how it was when it was switched on.
    fn clear(&mut self) {
        self.status = 0;
        self.accepted = 0;
        self.device_feature_select = 0;
        self.driver_feature_select = 0;
        self.queue_select = 0;
        self.promiscuous = true;
        self.all_multicast = false;
        self.multicast.clear();
        self.pairs = 1;
        self.trouble = 0;
        let count = 2 * usize::from(self.max_pairs.min(16)) + 1;
        self.queues = (0..count).map(|_| Queue::new(self.max_size)).collect();
        self.pending.clear();
    }

    fn blame(&mut self, what: impl Into<String>) {
        if self.violations.len() < 100 {
            self.violations.push(what.into());
        }
    }

    fn has(&self, feature: u64) -> bool {
        self.accepted & feature != 0
    }

    fn is_running(&self) -> bool {
        self.status & (4 | 64 | 128) == 4
    }

    /// Number of the control queue (section 5.1.2).
    fn control(&self) -> u16 {
        if self.has(bit::SEVERAL_QUEUES) {
            2 * self.max_pairs
        } else {
            2
        }
    }

    /// Processes a queue, after a notification or when time passes.
    fn work(&mut self, world: &mut World, queue: u16) {
        if !self.is_running() || self.size_of(queue) == 0 {
            return;
        }
        let (packed, deaf) = (self.has(bit::PACKED), self.deaf);
        self.queues[usize::from(queue)].ask_to_be_told(world, packed, !deaf);
        if deaf {
            return;
        }
        if queue == self.control() && self.has(bit::CONTROL) {
            self.obey(world, queue);
        } else if queue.is_multiple_of(2) {
            self.deliver(world);
        } else {
            self.send(world, queue);
        }
    }

    fn take(&mut self, world: &mut World, queue: u16) -> Option<Chain> {
        let packed = self.has(bit::PACKED);
        let found = self.queues[usize::from(queue)].take(world, packed);
        found.unwrap_or_else(|what| {
            self.blame(format!("queue {queue}: {what}"));
            None
        })
    }

    fn give(&mut self, world: &mut World, queue: u16, chain: &Chain, written: u32) {
        let packed = self.has(bit::PACKED);
        let written = written ^ std::mem::take(&mut self.lie);
        self.queues[usize::from(queue)].give(world, packed, chain, written);
    }

    /// Takes all that is to be sent; where it may, it is done with it in another order.
    fn send(&mut self, world: &mut World, queue: u16) {
        let mut done = Vec::new();
        while let Some(chain) = self.take(world, queue) {
            let bytes = chain.read(world);
            if chain.has_table() && !self.has(bit::INDIRECT) {
                self.blame("a table, which was not agreed on");
            }
            match bytes.split_first_chunk::<HEADER>() {
                Some((header, frame)) if *header == [0; HEADER] && !frame.is_empty() => {
                    self.sent.push((queue, frame.to_vec()));
                }
                Some((header, frame)) if self.has(bit::CHECKSUM) && !frame.is_empty() => {
                    match finished(header, frame) {
                        Some(frame) => self.sent.push((queue, frame)),
                        None => self.blame("a checksum that cannot be"),
                    }
                }
                _ => self.blame("a header with offloads that were not agreed on, or no frame"),
            }
            if chain.writable() > 0 {
                self.blame("a buffer to be sent that the device may write");
            }
            done.push(chain);
        }
        if !self.has(bit::IN_ORDER) {
            done.reverse();
        }
        for chain in done {
            self.give(world, queue, &chain, 0);
        }
    }

    /// Puts what has come into buffers, as far as there are any.
    fn deliver(&mut self, world: &mut World) {
        for _ in 0..self.pending.len() {
            let Some((queue, frame)) = self.pending.pop_front() else {
                break;
            };
            if !self.is_running() || self.size_of(queue) == 0 || queue / 2 >= self.pairs {
                continue;
            }
            if !self.fill(world, queue, &frame) {
                self.pending.push_back((queue, frame));
            }
        }
    }

    /// Puts a frame into buffers; false if there are too few.
    fn fill(&mut self, world: &mut World, queue: u16, frame: &[u8]) -> bool {
        let before = self.queues[usize::from(queue)].clone();
        let (mut chains, mut room) = (Vec::new(), 0);
        while room < HEADER + frame.len() {
            let Some(chain) = self.take(world, queue) else {
                self.queues[usize::from(queue)] = before;
                return false;
            };
            room += chain.writable();
            chains.push(chain);
            if !self.has(bit::MERGEABLE) && room < HEADER + frame.len() {
                self.queues[usize::from(queue)] = before;
                self.too_long += 1;
                return true;
            }
        }
        let mut bytes = vec![0; HEADER];
        if self.has(bit::GUEST_CHECKSUM) {
            bytes.copy_from_slice(&self.checksums);
        }
        bytes[10..].copy_from_slice(&(chains.len() as u16).to_le_bytes());
        bytes.extend_from_slice(frame);
        let mut rest = &bytes[..];
        for chain in chains {
            let (now, later) = rest.split_at(rest.len().min(chain.writable()));
            chain.write(world, now);
            self.give(world, queue, &chain, now.len() as u32);
            rest = later;
        }
        true
    }

    /// Carries out commands (section 5.1.6.5).
    fn obey(&mut self, world: &mut World, queue: u16) {
        if self.faults.mute {
            return;
        }
        while let Some(chain) = self.take(world, queue) {
            let command = chain.read(world);
            let understood = !self.faults.says_no && self.carry_out(&command);
            chain.write(world, &[u8::from(!understood)]);
            self.give(world, queue, &chain, 1);
        }
    }

    fn carry_out(&mut self, command: &[u8]) -> bool {
        match *command {
            [0, 0, on] if self.has(bit::CONTROL_RX) => self.promiscuous = on == 1,
            [0, 1, on] if self.has(bit::CONTROL_RX) => self.all_multicast = on == 1,
            [1, 0, 0, 0, 0, 0, a, b, c, d, ref macs @ ..] if self.has(bit::CONTROL_RX) => {
                let count = u32::from_le_bytes([a, b, c, d]) as usize;
                let (macs, rest) = macs.as_chunks();
                if macs.len() != count || !rest.is_empty() {
                    return false;
                }
                self.multicast = macs.to_vec();
            }
            [4, 0, low, high] if self.has(bit::SEVERAL_QUEUES) => {
                let pairs = u16::from_le_bytes([low, high]);
                if pairs == 0 || pairs > self.max_pairs {
                    return false;
                }
                self.pairs = pairs;
            }
            _ => return false,
        }
        true
    }
}

/// A frame whose header asks for its checksum (section 5.1.6.2.1), with it.
fn finished(header: &[u8; HEADER], frame: &[u8]) -> Option<Vec<u8>> {
    let [1, 0, 0, 0, 0, 0, a, b, c, d, 0, 0] = *header else {
        return None;
    };
    let start = usize::from(u16::from_le_bytes([a, b]));
    let field = start + usize::from(u16::from_le_bytes([c, d]));
    let mut sum = Checksum::new();
    sum.add(frame.get(start..)?);
    let mut frame = frame.to_vec();
    let place = frame.get_mut(field..field + 2)?;
    place.copy_from_slice(&sum.finish().to_be_bytes());
    Some(frame)
}

impl Model for VirtioNet {
    fn ids(&self) -> Ids {
        self.ids
    }

    fn bars(&self) -> [usize; 6] {
        [0, 4096, 0, 0, 0x4000, 0]
    }

    fn config(&mut self, at: u16) -> Option<u32> {
        let bytes = self.space.get(usize::from(at)..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    fn vectors(&self) -> u16 {
        self.vectors
    }

    fn read(&mut self, _: &mut World, bar: u8, at: usize, width: usize) -> u32 {
        self.read_register(bar, at, width)
    }

    fn write(&mut self, world: &mut World, bar: u8, at: usize, width: usize, value: u32) {
        self.write_register(world, bar, at, width, value);
    }

    fn tick(&mut self, world: &mut World) {
        // A second passes in a thousand rounds of a loop that waits.
        world.now += 1_000_000;
        for queue in 0..self.queues.len() as u16 {
            if self.polls {
                self.work(world, queue);
            }
        }
    }

    fn reset(&mut self, _: &mut World) {
        self.clear();
    }

    fn lie(&mut self, bits: u64) {
        self.lie = bits as u32;
    }
}
