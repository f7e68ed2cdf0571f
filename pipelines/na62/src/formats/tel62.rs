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

mod decode;

pub use decode::Decoded;

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
const TIME: u32 = (1 << 19) - 1;
/// The slot bits that an edge's own time replaces.
const FRAME_LOW: u32 = TIME >> 8;
/// Most words of a payload: a fragment counts its bytes, and those of its header, with 16 bits.
const MAX_WORDS: usize = (u16::MAX as usize - super::mep::FRAGMENT_HEADER_LEN) / 4;
const NO_EDGE: FormatError = FormatError::Malformed("a TDC word that is no edge");

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
        let data = Self::board(payload)?;
        let mut frames = data.frames(0);
        while let Some(frame) = frames.next()? {
            frame.check()?;
        }
        Ok(data)
    }

    /// Checks the payload of an event at slot `timestamp` of its burst, and decodes all its edges
    /// into `decoded`, in one pass.
    ///
    /// # Errors
    /// As of [`Tel62::parse`]; `decoded` is empty then.
    #[inline]
    pub fn decode(
        payload: &'a [u8],
        timestamp: u32,
        decoded: &mut Decoded,
    ) -> Result<Self, FormatError> {
        decoded.clear();
        let data = Self::board(payload)?;
        decoded.fill(&data, timestamp)?;
        Ok(data)
    }

    /// Checks the board word, and that there are whole words behind it.
    fn board(payload: &'a [u8]) -> Result<Self, FormatError> {
        let words = <[U32]>::ref_from_bytes(payload)
            .map_err(|_| FormatError::Malformed("the length is not a multiple of four"))?;
        if words.len() > MAX_WORDS {
            return Err(FormatError::Malformed("longer than a fragment can be"));
        }
        let (first, _) = words.split_first().ok_or(FormatError::Truncated {
            need: 4,
            have: payload.len(),
        })?;
        let data = Self {
            words,
            board: first.get().to_le_bytes(),
        };
        if !data.is_special() && !(1..=FPGAS).contains(&data.board[0].count_ones()) {
            return Err(FormatError::Malformed(
                "a board of no FPGA or of more than four",
            ));
        }
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
        Edges {
            frames: self.frames(timestamp),
            frame: Frame::default(),
        }
    }

    fn frames(&self, timestamp: u32) -> Frames<'a> {
        let (words, fpgas) = match self.words.split_first() {
            Some((_, words)) if !self.is_special() => (words, self.board[0].count_ones()),
            // What follows is counters of the detector's own making.
            _ => (&[][..], 0),
        };
        Frames {
            words,
            timestamp,
            fpgas,
            left: 0,
            fpga: [0; 4],
        }
    }
}

/// Reader of the edges of checked data.
#[derive(Clone, Debug)]
pub struct Edges<'a> {
    frames: Frames<'a>,
    /// What is left of it.
    frame: Frame<'a>,
}

impl Iterator for Edges<'_> {
    type Item = Edge;

    fn next(&mut self) -> Option<Edge> {
        loop {
            if let Some((word, rest)) = self.frame.words.split_first() {
                self.frame.words = rest;
                return Some(Edge::new(self.frame.fpga, self.frame.base, word.get()));
            }
            // `Tel62::parse` found the same frames without an error.
            self.frame = self.frames.next().ok()??;
        }
    }
}

impl Edge {
    /// The edge in a TDC word of a frame.
    fn new(fpga: u8, base: u64, word: u32) -> Self {
        Self {
            fpga,
            tdc: (word >> 24) as u8 & 0x3,
            channel: (word >> 19) as u8 & 0x1F,
            leading: word >> 28 == LEADING,
            time: base | u64::from(word & TIME),
        }
    }
}

/// The TDC words of one FPGA and slot.
#[derive(Clone, Copy, Debug, Default)]
struct Frame<'a> {
    fpga: u8,
    /// Time of the slot without the bits that an edge's own time has.
    base: u64,
    words: &'a [U32],
}

impl Frame<'_> {
    fn check(&self) -> Result<(), FormatError> {
        let is_edge = |word: &U32| matches!(word.get() >> 28, LEADING | TRAILING);
        if self.words.iter().all(is_edge) {
            Ok(())
        } else {
            Err(NO_EDGE)
        }
    }
}

/// Walks the words behind the board word, checking each count against what is there.
#[derive(Clone, Debug)]
struct Frames<'a> {
    words: &'a [U32],
    timestamp: u32,
    /// FPGAs, and frames of this FPGA, that are still to come.
    fpgas: u32,
    left: u8,
    /// The word of the current FPGA: non-empty frames, frames, FPGA id, error flags.
    fpga: [u8; 4],
}

impl<'a> Frames<'a> {
    /// Takes so many words.
    #[inline(always)]
    fn take(&mut self, count: usize) -> Result<&'a [U32], FormatError> {
        let (words, rest) = self
            .words
            .split_at_checked(count)
            .ok_or(FormatError::Truncated {
                need: count * 4,
                have: self.words.len() * 4,
            })?;
        self.words = rest;
        Ok(words)
    }

    #[inline(always)]
    fn word(&mut self) -> Result<u32, FormatError> {
        Ok(self.take(1)?[0].get())
    }

    /// Goes to the next frame; `None` at the end of the data.
    #[inline(always)]
    fn next(&mut self) -> Result<Option<Frame<'a>>, FormatError> {
        while self.left == 0 {
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
            self.left = self.fpga[0];
        }
        self.left -= 1;
        let word = self.word()?;
        let edges = (word >> 16).checked_sub(1).ok_or(FormatError::Malformed(
            "a frame of no words, where it counts its own",
        ))?;
        // Only the low 16 bits of the frame's slot are sent. The slot is the one with these
        // bits that is nearest to the event, before or after it, across a wrap of the 16 bits.
        let offset = (word as u16).wrapping_sub(self.timestamp as u16) as i16;
        let slot = self.timestamp.wrapping_add_signed(i32::from(offset));
        Ok(Some(Frame {
            fpga: self.fpga[2],
            base: u64::from(slot & !FRAME_LOW) << 8,
            words: self.take(edges as usize)?,
        }))
    }

    /// Passes over the error words behind the last FPGA's frames.
    #[inline(always)]
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
        match (word >> 16) as usize {
            0 => Err(FormatError::Malformed("an error block of no words")),
            words => self.take(words).map(|_| ()),
        }
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
                let time = edge.time as u32 & TIME;
                let place = (u32::from(edge.tdc) << 24) | (u32::from(edge.channel) << 19);
                put(((id << 28) | place | time).to_le_bytes())?;
            }
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests;
