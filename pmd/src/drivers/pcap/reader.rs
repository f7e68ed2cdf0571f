//! Reads the records of a capture file in order, one look-ahead record at a time.

use std::fs::File;
use std::io;

use pollux_mempool::time::WireTime;

use super::classic::Classic;
use super::link::Link;
use super::pcapng::Pcapng;
use super::window::Window;

/// Longest record or block that is believed: libpcap's own limit is 256 KiB for Ethernet, and
/// chains of buffers end far below this. A longer one is a sign of a damaged file.
pub(super) const MAX_RECORD: usize = 16 << 20;

/// Why a capture cannot be read, or cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum CaptureError {
    #[error("cannot be read at byte {at}: {source}")]
    Io { at: u64, source: io::Error },
    #[error(
        "is no capture: it does not start with the magic number of pcap or pcapng, plain or \
         compressed by gzip or zstd"
    )]
    NotACapture,
    #[error(
        "is truncated: its {packing} data end too early, {at} bytes into the capture; frames \
         before that can be used"
    )]
    CutOff { packing: &'static str, at: u64 },
    #[error(
        "is damaged: its {packing} data cannot be unpacked {at} bytes into the capture: {source}; \
         what follows cannot be read"
    )]
    Unpack {
        packing: &'static str,
        at: u64,
        source: io::Error,
    },
    #[error("is a capture of version {0}.{1}, which is not supported; convert it with editcap")]
    Version(u16, u16),
    #[error("is truncated: it ends inside the record at byte {0}; frames before it can be used")]
    Truncated(u64),
    #[error("is damaged at byte {at}: {what}; what follows cannot be read")]
    Damaged { at: u64, what: &'static str },
}

/// Byte order of a capture, or of a section of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    /// `None` where the bytes do not reach that far.
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let &bytes = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        })
    }

    /// `None` where the bytes do not reach that far.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let &bytes = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        })
    }
}

/// Where the next record lies, counted from the front of the window.
pub(super) struct Located {
    /// Stamp in nanoseconds since the Unix epoch; a simple packet block has none.
    pub(super) time: Option<u64>,
    pub(super) link: Link,
    /// Where the captured bytes start.
    pub(super) data: usize,
    pub(super) captured: usize,
    /// Length of the frame when it was captured.
    pub(super) original: usize,
    /// Length of the whole record.
    pub(super) record: usize,
}

/// One captured frame.
pub(super) struct Record<'a> {
    /// Number in the file, from 0.
    pub(super) index: u64,
    /// Stamp, raised to the latest one before it, so that the order of stamps is the order of
    /// records however the file is shared out.
    pub(super) time: WireTime,
    pub(super) link: Link,
    /// Length of the frame when it was captured; more than there is if the capture cut it off.
    pub(super) original: usize,
    pub(super) data: &'a [u8],
}

enum Format {
    Classic(Classic),
    Pcapng(Pcapng),
}

impl Format {
    /// Reads the file header.
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
    /// Times that the file is still to be read, this one included; `None`: without end.
    rounds: Option<u64>,
    /// Number of the first record of this round, and what its round adds to the stamps.
    begin: u64,
    offset: u64,
    /// Length of the record that `peek` showed.
    pending: usize,
    index: u64,
    first: Option<WireTime>,
    latest: WireTime,
}

impl Reader {
    /// Begins a file that is to be read so many times, one after the other; `None`: without end.
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

    /// The next record, again and again until `advance`; `None` at the end of the last round.
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

    /// Goes back to the beginning, if there is another round of something. Its first frame comes
    /// after the last one of this round as if the rounds were one recording: by the mean distance.
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
        // Saturating: a file may claim any times.
        let length = self.latest.since(first).0.saturating_sub(self.offset);
        let round = length.saturating_add(length / (records - 1).max(1));
        self.offset = self.offset.saturating_add(round);
        Ok(true)
    }

    /// Passes the record that `peek` showed.
    pub(super) fn advance(&mut self) {
        self.window.consume(self.pending);
        self.pending = 0;
        self.index += 1;
    }

    /// Stamp of the first record, once it was shown.
    pub(super) fn first(&self) -> Option<WireTime> {
        self.first
    }
}

impl Window {
    /// The next `n` bytes, or the error for a file that ends before them.
    pub(super) fn need(&mut self, n: usize) -> Result<&[u8], CaptureError> {
        if let Err(source) = self.peek(n) {
            return Err(self.unreadable(source));
        }
        let at = self.position();
        self.front().get(..n).ok_or(CaptureError::Truncated(at))
    }

    /// Whether the file ends here.
    pub(super) fn is_at_end(&mut self) -> Result<bool, CaptureError> {
        match self.peek(1) {
            Ok(bytes) => Ok(bytes.is_empty()),
            Err(source) => Err(self.unreadable(source)),
        }
    }

    /// What it means that nothing can be read here.
    #[cold]
    fn unreadable(&self, source: io::Error) -> CaptureError {
        let at = self.position();
        // An error with a number is the system's, whatever the file is.
        match self.packing() {
            Some(packing) if source.kind() == io::ErrorKind::UnexpectedEof => {
                CaptureError::CutOff { packing, at }
            }
            Some(packing) if source.raw_os_error().is_none() => CaptureError::Unpack {
                packing,
                at,
                source,
            },
            _ => CaptureError::Io { at, source },
        }
    }

    pub(super) fn damaged(&self, what: &'static str) -> CaptureError {
        CaptureError::Damaged {
            at: self.position(),
            what,
        }
    }
}
