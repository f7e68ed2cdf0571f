//! Byte source of a capture file, with decompression.
//!
//! The first bytes of a file determine its format, not its name. Memory is bounded: gzip needs 32
//! KiB, zstd the window that the file specifies; one of more than 128 MiB is refused, as by `zstd
//! -d`.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read, Seek as _};
use std::os::unix::fs::FileExt as _;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// RFC 1952 section 2.3.1.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// RFC 8878 section 3.1.1.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A file from start to end, rewindable.
pub(super) struct Source {
    file: File,
    packing: Packing,
}

/// Compression of the file. A decoder reads through a file descriptor of its own, which shares the
/// position of the file.
enum Packing {
    None,
    Gzip(Box<MultiGzDecoder<BufReader<File>>>),
    Zstd(Box<Zstd>),
}

impl Packing {
    fn of(file: &File) -> io::Result<Self> {
        let mut start = [0; ZSTD.len()];
        let got = file.read_at(&mut start, 0)?;
        let start = start.get(..got).unwrap_or_default();
        Ok(if start.starts_with(&GZIP) {
            let decoder = MultiGzDecoder::new(BufReader::new(file.try_clone()?));
            Self::Gzip(Box::new(decoder))
        } else if start == ZSTD {
            Self::Zstd(Box::new(Zstd::new(file.try_clone()?)))
        } else {
            Self::None
        })
    }
}

impl Source {
    /// A file at its start.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let packing = Packing::of(&file)?;
        Ok(Self { file, packing })
    }

    /// Returns to the start.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.file.rewind()?;
        self.packing = Packing::of(&self.file)?;
        Ok(())
    }

    /// Name of the compression, if any.
    pub(super) fn packing(&self) -> Option<&'static str> {
        match self.packing {
            Packing::None => None,
            Packing::Gzip(_) => Some("gzip"),
            Packing::Zstd(_) => Some("zstd"),
        }
    }
}

/// Returns `UnexpectedEof` if a compressed file is truncated.
impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.packing {
            Packing::None => self.file.read(out),
            Packing::Gzip(decoder) => decoder.read(out),
            Packing::Zstd(decoder) => decoder.read(out),
        }
    }
}

/// Consecutive zstd frames; skippable frames have no bytes.
struct Zstd {
    file: Tail,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl Zstd {
    fn new(file: File) -> Self {
        Self {
            file: Tail {
                file: BufReader::new(file),
                ended: false,
            },
            decoder: FrameDecoder::new(),
            in_frame: false,
        }
    }

    /// Starts the next frame; false at the end of the file.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.file.file.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.file) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut content = self.file.by_ref().take(length.into());
                    if io::copy(&mut content, &mut io::sink())? < length.into() {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(self.file.judge(error)),
            }
        }
        Ok(false)
    }

    /// Bytes of the frame; none at its end.
    fn read_frame(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let step = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder
                .decode_blocks(&mut self.file, step)
                .map_err(|error| self.file.judge(error))?;
        }
        let n = self.decoder.read(out)?;
        if n == 0 {
            let stored = self.decoder.get_checksum_from_data();
            if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
                return Err(io::Error::new(ErrorKind::InvalidData, "wrong checksum"));
            }
        }
        Ok(n)
    }
}

impl Read for Zstd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if self.in_frame {
                match self.read_frame(out)? {
                    0 => self.in_frame = false,
                    n => return Ok(n),
                }
            }
            if !self.begin_frame()? {
                return Ok(0);
            }
            self.in_frame = true;
        }
    }
}

/// A file that records whether a read went beyond its end.
struct Tail {
    file: BufReader<File>,
    ended: bool,
}

impl Tail {
    /// Classifies an error of the decoder, which does not distinguish truncation from other damage.
    fn judge(&self, error: FrameDecoderError) -> io::Error {
        let kind = if self.ended {
            ErrorKind::UnexpectedEof
        } else {
            ErrorKind::InvalidData
        };
        io::Error::new(kind, error)
    }
}

impl Read for Tail {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(out)?;
        self.ended |= n == 0 && !out.is_empty();
        Ok(n)
    }
}
