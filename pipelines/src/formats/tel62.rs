//! TDC data of a TEL62 readout board: what a fragment of a multi-event packet holds for the
//! detectors that it reads out, the RICH among them (docs/formats/mep.md).
//!
//! Layout after the farm's decoder (NA62/na62-trigger-algorithms,
//! `common/decoding/TrbFragmentDecoder.h`). All words are of 32 bits, little-endian: a board
//! word; for each FPGA of the board a word, its frames, and possibly a block of error words;
//! a frame is a word and the edges of one slot of 25 ns.

use zerocopy::FromBytes;
use zerocopy::byteorder::little_endian::U32;

use super::{FormatError, WriteError};

/// Bit of the trigger type that marks a special trigger: start or end of burst, monitoring.
const SPECIAL: u8 = 0x80;
/// Bit of an FPGA's error flags: a block of error words follows its frames.
const ERROR_BLOCK: u8 = 0x01;
/// Most FPGAs of a board.
const FPGAS: u32 = 4;
/// Word id of a leading edge.
const LEADING: u32 = 4;
/// Word id of a trailing edge.
const TRAILING: u32 = 5;
/// Bits of an edge's time: 2048 slots of 256 units.
const TIME_BITS: u32 = 19;
/// The slot bits that an edge's own time replaces.
const FRAME_LOW: u32 = (1 << (TIME_BITS - 8)) - 1;

/// One edge of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// FPGA of the board, which is a TDC board with four TDC chips: 0 to 3 in sound data, but
    /// whatever the board wrote.
    pub fpga: u8,
    /// TDC chip of that TDC board, 0 to 3.
    pub tdc: u8,
    /// Channel of that chip, 0 to 31.
    pub channel: u8,
    /// Leading edge; else a trailing one.
    pub leading: bool,
    /// Time since the start of the burst, in units of 25/256 ns, modulo 2^40.
    pub time: u64,
}

/// The checked TDC data of one event.
#[derive(Clone, Copy, Debug)]
pub struct Tel62<'a> {
    words: &'a [U32],
    board: [u8; 4],
}

impl<'a> Tel62<'a> {
    /// Checks a fragment's payload to its last word.
    ///
    /// # Errors
    /// Counts that do not fill the payload exactly, a word that is no edge where an edge must
    /// be, an impossible number of FPGAs: malformed data, of which no edge can be read.
    pub fn parse(payload: &'a [u8]) -> Result<Self, FormatError> {
        let words = <[U32]>::ref_from_bytes(payload)
            .map_err(|_| FormatError::Malformed("the length is not a multiple of four"))?;
        let (first, _) = words.split_first().ok_or(FormatError::Truncated {
            need: 4,
            have: payload.len(),
        })?;
        let data = Self {
            words,
            board: first.get().to_le_bytes(),
        };
        if data.is_special() {
            // What follows is counters of the detector's own making.
            return Ok(data);
        }
        if !(1..=FPGAS).contains(&data.board[0].count_ones()) {
            return Err(FormatError::Malformed(
                "a board of no FPGA or of more than four",
            ));
        }
        data.walk(0).try_for_each(|edge| edge.map(|_| ()))?;
        Ok(data)
    }

    /// The event's L0 trigger type.
    #[must_use]
    pub fn trigger_type(&self) -> u8 {
        self.board[1]
    }

    /// Number of the board in its detector.
    #[must_use]
    pub fn sub_id(&self) -> u8 {
        self.board[2]
    }

    /// Format version of the data, as the board says it.
    #[must_use]
    pub fn format(&self) -> u8 {
        self.board[3]
    }

    /// Whether the event is a special trigger, without edges.
    #[must_use]
    pub fn is_special(&self) -> bool {
        self.trigger_type() & SPECIAL != 0
    }

    /// The edges, in the order of the data, of an event at slot `timestamp` of its burst (the
    /// fragment's timestamp).
    #[must_use]
    pub fn edges(&self, timestamp: u32) -> Edges<'a> {
        Edges(self.walk(timestamp))
    }

    fn walk(&self, timestamp: u32) -> Walk<'a> {
        let fpgas = if self.is_special() {
            0
        } else {
            self.board[0].count_ones()
        };
        Walk {
            words: &self.words[1..],
            timestamp,
            fpgas,
            frames: 0,
            edges: 0,
            fpga: [0; 4],
            base: 0,
        }
    }
}

/// Reader of the edges of checked data.
#[derive(Clone, Debug)]
pub struct Edges<'a>(Walk<'a>);

impl Iterator for Edges<'_> {
    type Item = Edge;

    fn next(&mut self) -> Option<Edge> {
        // `Tel62::parse` walked the same words without an error.
        self.0.next()?.ok()
    }
}

/// Walks the words behind the board word, checking each count against what is there.
#[derive(Clone, Debug)]
struct Walk<'a> {
    words: &'a [U32],
    timestamp: u32,
    /// FPGAs, frames of this FPGA and edges of this frame that are still to come.
    fpgas: u32,
    frames: u8,
    edges: u16,
    /// The word of the current FPGA: non-empty frames, frames, FPGA id, error flags.
    fpga: [u8; 4],
    /// Time of the current frame without the bits that an edge's own time has.
    base: u64,
}

impl Walk<'_> {
    fn word(&mut self) -> Result<u32, FormatError> {
        let (word, rest) = self
            .words
            .split_first()
            .ok_or(FormatError::Truncated { need: 4, have: 0 })?;
        self.words = rest;
        Ok(word.get())
    }

    /// Goes to the next edge; `None` at the end of the data.
    fn step(&mut self) -> Result<Option<Edge>, FormatError> {
        while self.edges == 0 {
            if self.frames > 0 {
                self.begin_frame()?;
            } else {
                self.skip_error_block()?;
                if self.fpgas == 0 {
                    return match self.words.len() {
                        0 => Ok(None),
                        words => Err(FormatError::Trailing { excess: words * 4 }),
                    };
                }
                self.fpgas -= 1;
                self.fpga = self.word()?.to_le_bytes();
                // Empty frames are not sent: the count of all frames is not that of the data.
                self.frames = self.fpga[0];
            }
        }
        self.edges -= 1;
        let word = self.word()?;
        let id = word >> 28;
        if id != LEADING && id != TRAILING {
            return Err(FormatError::Malformed("a TDC word that is no edge"));
        }
        Ok(Some(Edge {
            fpga: self.fpga[2],
            tdc: (word >> 24) as u8 & 0x3,
            channel: (word >> 19) as u8 & 0x1F,
            leading: id == LEADING,
            time: self.base + u64::from(word & ((1 << TIME_BITS) - 1)),
        }))
    }

    fn begin_frame(&mut self) -> Result<(), FormatError> {
        let word = self.word()?;
        self.frames -= 1;
        self.edges = ((word >> 16) as u16)
            .checked_sub(1)
            .ok_or(FormatError::Malformed(
                "a frame of no words, where it counts its own",
            ))?;
        // Only the low 16 bits of the frame's slot are sent. The slot is the one with these
        // bits that is nearest to the event, before or after it, across a wrap of the 16 bits.
        let offset = (word as u16).wrapping_sub(self.timestamp as u16) as i16;
        let slot = self.timestamp.wrapping_add_signed(i32::from(offset));
        self.base = u64::from(slot & !FRAME_LOW) << 8;
        Ok(())
    }

    /// Passes over the error words behind the last FPGA's frames.
    fn skip_error_block(&mut self) -> Result<(), FormatError> {
        if self.fpga[3] & ERROR_BLOCK == 0 {
            return Ok(());
        }
        self.fpga[3] = 0;
        // Boards set the flag without a block behind it: at the end of the data, or where the
        // second byte is 0xFF (the farm's decoder knows these two cases).
        let Some(word) = self.words.first().map(|word| word.get()) else {
            return Ok(());
        };
        if (word >> 8) as u8 == 0xFF {
            return Ok(());
        }
        let words = usize::from((word >> 16) as u16);
        if words == 0 {
            return Err(FormatError::Malformed("an error block of no words"));
        }
        let have = self.words.len() * 4;
        self.words = self.words.get(words..).ok_or(FormatError::Truncated {
            need: words * 4,
            have,
        })?;
        Ok(())
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Edge, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// Writes the TDC data of one event at slot `timestamp` into `buf`; returns its length in
/// bytes. The edges are sorted by FPGA (0 to 3), then by time.
///
/// # Errors
/// [`WriteError::Full`] when the buffer is too small; [`WriteError::Invalid`] when the edges
/// are out of order or out of range, or half a wrap of the frame timestamp (0.8 ms) or more
/// away from the event.
pub fn write_tel62(
    buf: &mut [u8],
    sub_id: u8,
    trigger_type: u8,
    timestamp: u32,
    edges: &[Edge],
) -> Result<usize, WriteError> {
    let slot = |edge: &Edge| (edge.time >> 8) as u32;
    for edge in edges {
        let offset = slot(edge).wrapping_sub(timestamp) as i32;
        if i16::try_from(offset).is_err() || edge.time >> 40 != 0 {
            return Err(WriteError::Invalid("an edge too far from its event"));
        }
        if u32::from(edge.fpga) >= FPGAS || edge.tdc > 3 || edge.channel > 31 {
            return Err(WriteError::Invalid(
                "an FPGA, TDC or channel that does not exist",
            ));
        }
    }
    if !edges.is_sorted_by_key(|edge| (edge.fpga, edge.time)) {
        return Err(WriteError::Invalid(
            "edges must be sorted by FPGA, then by time",
        ));
    }

    let mut len = 0;
    let mut put = |word: [u8; 4]| {
        let place = buf.get_mut(len..len + 4).ok_or(WriteError::Full)?;
        place.copy_from_slice(&word);
        len += 4;
        Ok(())
    };
    let by_fpga = || edges.chunk_by(|a, b| a.fpga == b.fpga);
    // A board always answers with one FPGA at least, be it without frames.
    let flags = by_fpga()
        .fold(0, |flags, chunk| flags | 1 << chunk[0].fpga)
        .max(1);
    put([flags, trigger_type, sub_id, 0])?;
    if edges.is_empty() {
        put([0; 4])?;
    }
    for fpga in by_fpga() {
        let frames = || fpga.chunk_by(|a, b| slot(a) == slot(b));
        let count = u8::try_from(frames().count())
            .map_err(|_| WriteError::Invalid("more than 255 frames of one FPGA"))?;
        put([count, count, fpga[0].fpga, 0])?;
        for frame in frames() {
            let words = u16::try_from(frame.len() + 1)
                .map_err(|_| WriteError::Invalid("more than 65534 edges in one slot"))?;
            put(((u32::from(words) << 16) | (slot(&frame[0]) & 0xFFFF)).to_le_bytes())?;
            for edge in frame {
                let id = if edge.leading { LEADING } else { TRAILING };
                let time = edge.time as u32 & ((1 << TIME_BITS) - 1);
                let place = (u32::from(edge.tdc) << 24) | (u32::from(edge.channel) << 19);
                put(((id << 28) | place | time).to_le_bytes())?;
            }
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests;
