//! What an assembler is made of, and why it cannot.

use pollux_mempool::region::RegionError;
use pollux_mempool::time::Ns;
use pollux_pmd::CauseError;
use pollux_pmd::event::RegionOptions;

use super::turns::{MAX_PARTS, MAX_WRITERS};

/// Most buffers.
const MAX_BUFFERS: usize = 1 << 12;
/// Most bytes of a frame.
const MAX_BYTES: usize = 1 << 30;

/// Why an assembler could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// The number of buffers is wrong.
    #[error(
        "{0} frame buffers: it must be a power of two from 2 to {MAX_BUFFERS}; and up to {MAX_BUFFERS} spare ones"
    )]
    Buffers(usize),
    /// The number of parts is wrong.
    #[error("{senders} senders of {packets} packets a frame: together 1 to {MAX_PARTS}")]
    Parts {
        /// Senders.
        senders: usize,
        /// Packets of each.
        packets: usize,
    },
    /// The size of a packet's data, or of a frame, is wrong.
    #[error(
        "{packet} B of data in a packet, {frame} B in a frame: each must be at least 1 B, and a frame at most {MAX_BYTES} B"
    )]
    Size {
        /// Bytes of a packet's data.
        packet: usize,
        /// Bytes of a frame.
        frame: usize,
    },
    /// The jump or the horizon is wrong.
    #[error(
        "a jump of {jump} frames and a horizon of {horizon}: 1 to 2^30 each, and the horizon no less than the jump"
    )]
    Horizon {
        /// Frames of the jump.
        jump: u64,
        /// Frames of the horizon.
        horizon: u64,
    },
    /// There are too many loops.
    #[error("more than {MAX_WRITERS} receiving loops for one assembler")]
    Loops,
    /// The memory could not be had.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The causes of loss could not be declared.
    #[error(transparent)]
    Cause(#[from] CauseError),
}

/// Lists of notes of a frame.
pub const NOTES: usize = 2;

/// What an assembler is made of.
#[derive(Clone, Debug)]
pub struct AssembleConfig {
    /// Frames that may be under way: a power of two. Frame numbers that are so far apart share a buffer. A
    /// frame is closed [`margin`](Self::margin) frames before its buffer is needed, also before its time
    /// is over.
    pub buffers: usize,
    /// Frames that the reader may have beside, without a buffer that is occupied by them.
    pub spares: usize,
    /// Senders of which each frame has packets.
    pub senders: usize,
    /// Packets of a frame from each sender.
    pub packets: usize,
    /// Bytes of data in each packet.
    pub packet_bytes: usize,
    /// Bytes of each packet's header that are kept, beside the data; 0 for none.
    pub header_bytes: usize,
    /// Bytes of a packet in each list of notes: what [`Placer::place_noted`](super::Placer::place_noted)
    /// keeps of its data, beside them. 0 for none.
    pub note_bytes: [usize; NOTES],
    /// What stands in the place of a packet that is missing, repeated: the code of a pixel without a
    /// value, little-endian; a code of two bytes is given twice.
    pub fill: [u8; 4],
    /// How long a frame waits for its packets, from the first one on.
    pub timeout: Ns,
    /// How far from the newest a frame number may be on the word of one packet, which costs as many
    /// frames if it is wrong. Of a number further away many packets have to say the same.
    pub jump: u64,
    /// How far ahead such a number may be for the frames between to be lost ones. Further ahead, and
    /// behind, the sender began anew.
    pub horizon: u64,
    /// The memory.
    pub memory: RegionOptions,
}

impl Default for AssembleConfig {
    /// Frames of 128 packets of 8 KiB, of one sender, for which 10 ms are waited.
    fn default() -> Self {
        Self {
            buffers: 32,
            spares: 32,
            senders: 1,
            packets: 128,
            packet_bytes: 8192,
            header_bytes: 0,
            note_bytes: [0; NOTES],
            fill: [0; 4],
            timeout: Ns(10_000_000),
            jump: 64,
            horizon: 4096,
            memory: RegionOptions::default(),
        }
    }
}

impl AssembleConfig {
    /// Packets of a frame from all senders.
    #[must_use]
    pub fn frame_parts(&self) -> usize {
        self.senders.saturating_mul(self.packets)
    }

    /// Bytes of a frame's data.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.frame_parts().saturating_mul(self.packet_bytes)
    }

    /// How many frames before its buffer is needed a frame is closed, for the reader to take it meanwhile:
    /// an eighth of the buffers, but one of four, and none of two.
    #[must_use]
    pub fn margin(&self) -> usize {
        (self.buffers / 8).max(1).min(self.buffers / 4)
    }

    pub(super) fn check(&self) -> Result<(), AssembleError> {
        if !(2..=MAX_BUFFERS).contains(&self.buffers) || !self.buffers.is_power_of_two() {
            return Err(AssembleError::Buffers(self.buffers));
        }
        if self.spares > MAX_BUFFERS {
            return Err(AssembleError::Buffers(self.spares));
        }
        let parts = self.senders.checked_mul(self.packets);
        if !parts.is_some_and(|parts| (1..=MAX_PARTS).contains(&parts)) {
            return Err(AssembleError::Parts {
                senders: self.senders,
                packets: self.packets,
            });
        }
        let most = MAX_BYTES / self.frame_parts();
        let beside = self.note_bytes.iter().chain([&self.header_bytes]);
        if !(1..=most).contains(&self.packet_bytes) || beside.max() > Some(&most) {
            return Err(AssembleError::Size {
                packet: self.packet_bytes,
                frame: self.packet_bytes.saturating_mul(self.frame_parts()),
            });
        }
        let (jump, horizon) = (self.jump, self.horizon);
        if jump == 0 || jump > horizon || horizon > 1 << 30 {
            return Err(AssembleError::Horizon { jump, horizon });
        }
        Ok(())
    }
}
