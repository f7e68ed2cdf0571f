//! Sequential reader of the records of a capture file, with one look-ahead record.

use std::fs::File;

use pollux_mempool::time::WireTime;

use super::classic::Classic;
use super::error::CaptureError;
use super::link::Link;
use super::pcapng::Pcapng;
use super::record::Located;
use super::window::Window;

/// One captured frame.
pub(super) struct Record<'a> {
    /// Number in the file, from 0.
    pub(super) index: u64,
    /// Time stamp, raised to the latest one before it, so that time stamps and records have one
    /// order however the records are distributed.
    pub(super) time: WireTime,
    pub(super) link: Link,
    /// Original length of the frame; longer than the data if the capture truncated it.
    pub(super) original: usize,
    pub(super) data: &'a [u8],
}

enum Format {
    Classic(Classic),
    Pcapng(Pcapng),
}

impl Format {
    /// Parses the file header.
    fn read(window: &mut Window) -> Result<Self, CaptureError> {
        if let Err(source) = window.peek(4) {
            return Err(window.unreadable(source));
        }
        let magic = window.front();
        if magic.starts_with(&super::pcapng::SECTION_HEADER) {
            Ok(Self::Pcapng(Pcapng::new()))
        } else {
            Ok(Self::Classic(Classic::new(window)?))
        }
    }

    fn locate(&mut self, window: &mut Window) -> Result<Option<Located>, CaptureError> {
        match self {
            Self::Classic(format) => format.locate(window),
            Self::Pcapng(format) => format.locate(window),
        }
    }
}

pub(super) struct Reader {
    window: Window,
    format: Format,
    /// Remaining passes over the file, this one included; `None`: endless.
    rounds: Option<u64>,
    /// Number of the first record of this pass, and the offset of the pass's time stamps.
    begin: u64,
    offset: u64,
    /// Length of the record that `peek` returned.
    pending: usize,
    index: u64,
    first: Option<WireTime>,
    latest: WireTime,
}

impl Reader {
    /// Opens a file that is read so many times in a row; `None`: endlessly.
    pub(super) fn new(file: File, rounds: Option<u64>) -> Result<Self, CaptureError> {
        let mut window = Window::new(file).map_err(|source| CaptureError::Io { at: 0, source })?;
        let format = Format::read(&mut window)?;
        let latest = WireTime(0);
        Ok(Self {
            window,
            format,
            rounds,
            begin: 0,
            offset: 0,
            pending: 0,
            index: 0,
            first: None,
            latest,
        })
    }

    /// The next record, unchanged until `advance`; `None` at the end of the last pass.
    pub(super) fn peek(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        let located = match self.format.locate(&mut self.window)? {
            None if self.begin_again()? => self.format.locate(&mut self.window)?,
            located => located,
        };
        let Some(at) = located else { return Ok(None) };
        if let Some(time) = at.time {
            let time = WireTime(time.saturating_add(self.offset));
            self.latest = self.latest.max(time);
        }
        self.first.get_or_insert(self.latest);
        self.pending = at.record;
        let data = self
            .window
            .front()
            .get(at.data..at.data + at.captured)
            .unwrap_or_default();
        Ok(Some(Record {
            index: self.index,
            time: self.latest,
            link: at.link,
            original: at.original,
            data,
        }))
    }

    /// Rewinds the file, if another pass remains and the file has records. The first frame of the
    /// new pass follows the last one of this pass at the mean distance, as if the passes were one
    /// recording.
    #[cold]
    fn begin_again(&mut self) -> Result<bool, CaptureError> {
        let records = self.index - self.begin;
        if records == 0 || self.rounds.is_some_and(|rounds| rounds <= 1) {
            return Ok(false);
        }
        if let Err(source) = self.window.rewind() {
            return Err(self.window.unreadable(source));
        }
        self.format = Format::read(&mut self.window)?;
        self.rounds = self.rounds.map(|rounds| rounds - 1);
        self.begin = self.index;
        let first = self.first.unwrap_or(self.latest);
        // Saturating: a file may contain any times.
        let length = self.latest.since(first).0.saturating_sub(self.offset);
        let round = length.saturating_add(length / (records - 1).max(1));
        self.offset = self.offset.saturating_add(round);
        Ok(true)
    }

    /// Advances past the record that `peek` returned.
    pub(super) fn advance(&mut self) {
        self.window.consume(self.pending);
        self.pending = 0;
        self.index += 1;
    }

    /// Whether the file has been read to its end at least once.
    pub(super) fn has_passed(&self) -> bool {
        self.begin > 0
    }

    /// Time stamp of the first record, once it was read.
    pub(super) fn first(&self) -> Option<WireTime> {
        self.first
    }
}
