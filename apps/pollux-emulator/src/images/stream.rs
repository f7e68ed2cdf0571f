//! Packets of a run in the order of sending, with faults, and an exact record of the faults.

use pollux_faults::{Behind, Counts, Injector};
use pollux_images::formats::Layout;
use pollux_mempool::time::Ns;
use serde::Serialize;

use super::config::ImagesConfig;
use super::order::StackOrder;
use crate::faults::FaultCounts;

/// Most faults that are listed one by one; further ones are counted.
pub const MAX_LISTED: usize = 1 << 17;
/// Packets that may wait beside the late ones.
const ROOM: usize = 1024;

/// A packet on its way to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time of sending, counted from the beginning of the run.
    pub due: Ns,
    /// Number of its frame.
    pub frame: u64,
    /// Its sender.
    pub sender: u16,
    /// Its number among the packets of its frame and sender.
    pub packet: u16,
    /// A byte of the payload that is changed, and the bits of it that are flipped.
    pub corrupt: Option<(u16, u8)>,
    /// Bytes of its payload.
    len: u16,
}

impl pollux_faults::Frame for Packet {
    fn due(&self) -> Ns {
        self.due
    }

    fn set_due(&mut self, due: Ns) {
        self.due = due;
    }

    fn len_on_link(&self) -> usize {
        self.len.into()
    }

    /// Its sender does not support marks.
    fn mark(&mut self) -> bool {
        false
    }

    fn corrupt(&mut self, pick: impl FnOnce(usize) -> Option<(usize, u8)>) -> bool {
        self.corrupt = pick(self.len.into()).map(|(at, bits)| (at as u16, bits));
        self.corrupt.is_some()
    }
}

/// A fault by which a frame may be incomplete at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// The packet was never sent.
    Lost,
    /// The packet was sent late.
    Late,
    /// The packet was sent with a changed byte.
    Corrupted,
}

/// A fault of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FaultRecord {
    /// Number of the frame.
    pub frame: u64,
    /// The module.
    pub module: u16,
    /// Its UDP interface.
    pub interface: u16,
    /// Number of the packet.
    pub packet: u16,
    /// What was done.
    pub fault: Fault,
}

/// Frames by the packets that were sent intact. Late packets count as sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FrameCounts {
    /// All packets.
    pub complete: u64,
    /// Some packets: others were lost or corrupted.
    pub partial: u64,
    /// No packet.
    pub empty: u64,
}

impl FrameCounts {
    fn count(&mut self, damaged: usize, packets: usize) {
        *match damaged {
            0 => &mut self.complete,
            _ if damaged < packets => &mut self.partial,
            _ => &mut self.empty,
        } += 1;
    }
}

/// What was done to the packets of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Done {
    /// Frames whose packets are all made.
    pub frames: u64,
    /// Dark ones among them.
    pub dark_frames: u64,
    /// Packets made. Made - lost + duplicated = sent + refused + unsent.
    pub packets_made: u64,
    /// Frames of the whole detector.
    pub images: FrameCounts,
    /// Frames of single modules.
    pub module_frames: FrameCounts,
    /// Packets by fault.
    pub faults: FaultCounts,
    /// Packets that were lost, late or corrupted, in the order of their frames: the first
    /// [`MAX_LISTED`].
    pub fault_list: Vec<FaultRecord>,
    /// Such packets that the list has no place for.
    pub faults_not_listed: u64,
}

/// All packets that a detector sends in a run, faults included, in order. The sequence depends on the
/// configuration alone, not on when it is asked for what.
#[derive(Debug)]
pub struct PacketStream {
    layout: Layout,
    order: StackOrder,
    period: Ns,
    gap: Ns,
    first_frame: u64,
    /// Frames of the run.
    limit: u64,
    /// The next packet: the frame counted from 0, and its number.
    next: (u64, usize),
    injector: Injector<Packet>,
    /// Lost and corrupted packets of each module in the current frame.
    damaged: Vec<usize>,
    done: Done,
}

impl PacketStream {
    /// The packets of a configuration that is valid.
    #[must_use]
    pub fn new(config: &ImagesConfig, layout: Layout, order: StackOrder) -> Self {
        let rates = config.faults.rates();
        // Packets that are late at once, and half as many again: on average the list of all waiting
        // packets never grows.
        let per_frame = (layout.senders() * layout.packets()) as f64;
        let late = per_frame * rates.delay_by.1.0 as f64 / config.period().0 as f64 * rates.delay;
        let room = ROOM + layout.senders() * layout.packets() + (1.5 * late) as usize;
        let listed = rates.loss + rates.delay + rates.corrupt > 0.0;
        // Behind the next packet of its sender, where packets of all senders alternate.
        let behind = Behind::Frames(layout.senders() as u32);
        Self {
            period: config.period(),
            gap: config.packet_gap(&layout),
            first_frame: config.first_frame,
            limit: config.frame_limit(),
            next: (0, 0),
            // The seed is apart from those of the images.
            injector: Injector::new(rates, behind, !config.seed, room),
            damaged: vec![0; layout.modules()],
            done: Done {
                fault_list: Vec::with_capacity(if listed { MAX_LISTED } else { 0 }),
                ..Done::default()
            },
            layout,
            order,
        }
    }

    /// Makes the next packet of every sender; false when all are made. This is the work that a loop
    /// does ahead of time.
    pub fn prepare(&mut self) -> bool {
        let Some(due) = self.horizon() else {
            return false;
        };
        let (index, packet) = self.next;
        for sender in 0..self.layout.senders() {
            let packet = Packet {
                due,
                frame: self.first_frame + index,
                sender: sender as u16,
                packet: packet as u16,
                corrupt: None,
                len: self.layout.payload_bytes() as u16,
            };
            let before = self.injector.counts();
            // Nothing of a lost packet is used again.
            let _ = self.injector.push(packet, |packet| Some(*packet));
            self.record(packet, before);
        }
        self.next = (index, packet + 1);
        if packet + 1 == self.layout.packets() {
            self.end_frame(self.first_frame + index);
            self.next = (index + 1, 0);
            if self.horizon().is_none() {
                self.injector.finish();
            }
        }
        true
    }

    /// Records what the injector did to a packet.
    fn record(&mut self, packet: Packet, before: Counts) {
        let after = self.injector.counts();
        let fault = if after.lost > before.lost {
            Fault::Lost
        } else if after.corrupted > before.corrupted {
            Fault::Corrupted
        } else if after.delayed > before.delayed {
            Fault::Late
        } else {
            return;
        };
        let sender = usize::from(packet.sender);
        let interfaces = self.layout.interfaces();
        let (module, interface) = (sender / interfaces, sender % interfaces);
        if fault != Fault::Late
            && let Some(damaged) = self.damaged.get_mut(module)
        {
            *damaged += 1;
        }
        if self.done.fault_list.len() == MAX_LISTED {
            self.done.faults_not_listed += 1;
            return;
        }
        self.done.fault_list.push(FaultRecord {
            frame: packet.frame,
            module: module as u16,
            interface: interface as u16,
            packet: packet.packet,
            fault,
        });
    }

    fn end_frame(&mut self, number: u64) {
        let (done, packets) = (&mut self.done, self.layout.module_packets());
        done.frames += 1;
        done.dark_frames += u64::from(self.order.is_dark(number));
        let damaged = self.damaged.iter().sum();
        done.images.count(damaged, packets * self.layout.modules());
        for damaged in &mut self.damaged {
            done.module_frames.count(std::mem::take(damaged), packets);
        }
    }

    /// Ends the run with the frame that is begun.
    pub fn end(&mut self) {
        let (frame, packet) = self.next;
        self.limit = self.limit.min(frame + u64::from(packet > 0));
        if self.horizon().is_none() {
            self.injector.finish();
        }
    }

    /// Whether the next packet to be prepared begins a frame.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        self.next.1 == 0
    }

    /// No packet that is still to be prepared is due before this; `None`: all are prepared.
    #[must_use]
    #[inline]
    pub fn horizon(&self) -> Option<Ns> {
        let (frame, packet) = self.next;
        let begin = frame.saturating_mul(self.period.0);
        let due = || Ns(begin.saturating_add(packet as u64 * self.gap.0));
        (frame < self.limit).then(due)
    }

    /// The next packet, if it is certain: else [`prepare`](Self::prepare) more.
    #[must_use]
    #[inline]
    pub fn peek(&self) -> Option<&Packet> {
        self.injector.peek(self.horizon())
    }

    /// Drops the packet that [`peek`](Self::peek) showed.
    #[inline]
    pub fn advance(&mut self) {
        let _ = self.injector.pop();
    }

    /// Whether every packet of the run has been taken.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.horizon().is_none() && self.injector.is_empty()
    }

    /// Packets prepared and not yet taken.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.injector.len() as u64
    }

    /// Frames whose packets are all made.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.done.frames
    }

    /// What was done to the packets so far. Takes the list of the faults.
    #[must_use]
    pub fn done(&mut self) -> Done {
        self.done.packets_made = self.injector.made();
        self.done.faults = self.injector.counts().into();
        std::mem::take(&mut self.done)
    }
}
