//! Forward-moving window over a file, so that a capture of any size is read in memory of a fixed
//! size.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};

use super::error::CaptureError;
use super::source::Source;

/// Size of the window, unless a record is longer. The largest record of any libpcap tool is 256 KiB
/// (MAXIMUM_SNAPLEN).
const WINDOW: usize = 512 << 10;

pub(super) struct Window {
    source: Source,
    buf: Vec<u8>,
    /// Bytes read and not yet consumed: `buf[start..end]`.
    start: usize,
    end: usize,
    /// Position of `start` in the file, or in its decompressed content.
    position: u64,
}

impl Window {
    pub(super) fn new(file: File) -> io::Result<Self> {
        Ok(Self {
            source: Source::new(file)?,
            buf: vec![0; WINDOW],
            start: 0,
            end: 0,
            position: 0,
        })
    }

    /// Name of the file's compression, if any.
    pub(super) fn packing(&self) -> Option<&'static str> {
        self.source.packing()
    }

    /// Position in the capture of the first byte that was not consumed.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns to the start of the file.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.source.rewind()?;
        (self.start, self.end, self.position) = (0, 0, 0);
        Ok(())
    }

    /// The next bytes, at least `n` of them; fewer only at the end of the file.
    pub(super) fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        if self.end - self.start < n {
            self.read_on(n)?;
        }
        Ok(&self.buf[self.start..self.end])
    }

    /// The bytes that the last `peek` returned.
    pub(super) fn front(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// Consumes `n` bytes, which a `peek` has returned.
    pub(super) fn consume(&mut self, n: usize) {
        let n = n.min(self.end - self.start);
        self.start += n;
        self.position += n as u64;
    }

    #[cold]
    fn read_on(&mut self, n: usize) -> io::Result<()> {
        self.buf.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buf.len() < n {
            self.buf.resize(n, 0);
        }
        while self.end < n {
            match self.source.read(&mut self.buf[self.end..]) {
                Ok(0) => break,
                Ok(got) => self.end += got,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Window {
    /// The next `n` bytes, or the error for a truncated file.
    pub(super) fn need(&mut self, n: usize) -> Result<&[u8], CaptureError> {
        if let Err(source) = self.peek(n) {
            return Err(self.unreadable(source));
        }
        let at = self.position();
        self.front().get(..n).ok_or(CaptureError::Truncated(at))
    }

    /// Whether the end of the file is reached.
    pub(super) fn is_at_end(&mut self) -> Result<bool, CaptureError> {
        match self.peek(1) {
            Ok(bytes) => Ok(bytes.is_empty()),
            Err(source) => Err(self.unreadable(source)),
        }
    }

    /// The meaning of a read error.
    #[cold]
    pub(super) fn unreadable(&self, source: io::Error) -> CaptureError {
        let at = self.position();
        // An error with a number comes from the system, whatever the file's format is.
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
