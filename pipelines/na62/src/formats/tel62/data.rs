//! Parser of an event's TDC data: checked data, read edge by edge.

use zerocopy::FromBytes;
use zerocopy::byteorder::little_endian::U32;

use crate::formats::FormatError;

/// Bit of the trigger type for a special trigger: start or end of burst, monitoring.
const SPECIAL: u8 = 0x80;
/// Bit of an FPGA's error flags: a block of error words follows its frames.
const ERROR_BLOCK: u8 = 0x01;
/// Maximum number of FPGAs of a board.
pub(super) const FPGAS: u32 = 4;
/// Word id of a leading edge.
pub(super) const LEADING: u32 = 4;
/// Word id of a trailing edge.
pub(super) const TRAILING: u32 = 5;
/// Number of units in the range of an edge's time: 2048 slots of 256 units.
pub(super) const TIME: u32 = (1 << 19) - 1;
/// The slot bits that an edge's own time replaces.
const FRAME_LOW: u32 = TIME >> 8;
/// Maximum number of words of a payload: a fragment has 16 bits for its length, including its
/// header.
pub(super) const MAX_WORDS: usize =
    (u16::MAX as usize - crate::formats::mep::FRAGMENT_HEADER_LEN) / 4;
pub(super) const NO_EDGE: FormatError = FormatError::Malformed("a TDC word that is no edge");

/// One edge of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// FPGA of the board, which is a TDC board with four TDC chips: 0 to 3 in valid data, but
    /// unchecked.
    pub fpga: u8,
    /// TDC chip of that TDC board, 0 to 3.
    pub tdc: u8,
    /// Channel of that chip, 0 to 31.
    pub channel: u8,
    /// A leading edge; otherwise a trailing one.
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
    /// Checks a fragment's payload completely.
    ///
    /// # Errors
    /// Counts that do not fill the payload exactly, a word that is not an edge where one is
    /// required, or an invalid number of FPGAs: malformed data, of which no edge can be read.
    pub fn parse(payload: &'a [u8]) -> Result<Self, FormatError> {
        let data = Self::board(payload)?;
        let mut frames = data.frames(0);
        while let Some(frame) = frames.next()? {
            frame.check()?;
        }
        Ok(data)
    }

    /// Checks the board word, and that whole words follow it.
    pub(super) fn board(payload: &'a [u8]) -> Result<Self, FormatError> {
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

    /// Format version of the data, as reported by the board.
    #[must_use]
    pub fn format(&self) -> u8 {
        self.board[3]
    }

    /// Whether the event is a special trigger, which has no edges.
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

    pub(super) fn frames(&self, timestamp: u32) -> Frames<'a> {
        let (words, fpgas) = match self.words.split_first() {
            Some((_, words)) if !self.is_special() => (words, self.board[0].count_ones()),
            // Counters in a format of the detector's own follow.
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
    /// The remaining data.
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
pub(super) struct Frame<'a> {
    pub(super) fpga: u8,
    /// Time of the slot without the bits that an edge's own time replaces.
    pub(super) base: u64,
    pub(super) words: &'a [U32],
}

impl Frame<'_> {
    pub(super) fn check(&self) -> Result<(), FormatError> {
        let is_edge = |word: &U32| matches!(word.get() >> 28, LEADING | TRAILING);
        if self.words.iter().all(is_edge) {
            Ok(())
        } else {
            Err(NO_EDGE)
        }
    }
}

/// Parser of the words after the board word; checks each count against the remaining length.
#[derive(Clone, Debug)]
pub(super) struct Frames<'a> {
    words: &'a [U32],
    timestamp: u32,
    /// Remaining FPGAs, and remaining frames of this FPGA.
    fpgas: u32,
    left: u8,
    /// The word of the current FPGA: non-empty frames, frames, FPGA id, error flags.
    fpga: [u8; 4],
}

impl<'a> Frames<'a> {
    /// Takes the next words.
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

    /// Advances to the next frame; `None` at the end of the data.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<Frame<'a>>, FormatError> {
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
        // Only the low 16 bits of the frame's slot are sent. The slot is the one with these bits
        // that is nearest to the event, before or after it, across a wrap of the 16 bits.
        let offset = (word as u16).wrapping_sub(self.timestamp as u16) as i16;
        let slot = self.timestamp.wrapping_add_signed(i32::from(offset));
        Ok(Some(Frame {
            fpga: self.fpga[2],
            base: u64::from(slot & !FRAME_LOW) << 8,
            words: self.take(edges as usize)?,
        }))
    }

    /// Skips the error words after the last FPGA's frames.
    #[inline(always)]
    fn skip_error_block(&mut self) -> Result<(), FormatError> {
        if self.fpga[3] & ERROR_BLOCK == 0 {
            return Ok(());
        }
        self.fpga[3] = 0;
        // Boards set the flag without a block: at the end of the data, or where the second byte is
        // 0xFF (the farm's decoder handles these two cases).
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
