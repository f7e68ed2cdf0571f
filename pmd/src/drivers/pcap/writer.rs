//! pcapng writer (draft-ietf-opsawg-pcapng): one section, one Ethernet interface, little-endian,
//! time stamps in nanoseconds.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use pollux_mempool::Mbuf;
use pollux_mempool::time::WireTime;

use super::pcapng::{
    BYTE_ORDER_MAGIC, ENHANCED_PACKET, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, MAX_FRAME,
    SECTION_HEADER, SMALLEST_BLOCK,
};

/// Bytes buffered for one write.
const BUFFER: usize = 512 << 10;

/// Maximum length of an option text; the format allows 65535 bytes.
const MAX_TEXT: usize = 4096;

/// Metadata of a file, in front of its frames.
#[derive(Clone, Debug)]
pub struct About {
    /// Program that writes it (shb_userappl).
    pub program: String,
    /// Source of the frames (if_name).
    pub interface: String,
    /// Filter of the frames (if_filter); empty: all.
    pub filter: String,
    /// Maximum number of bytes kept of a frame, up to 262144.
    pub snap_len: usize,
}

impl Default for About {
    /// Whole frames; empty texts are omitted.
    fn default() -> Self {
        Self {
            program: String::new(),
            interface: String::new(),
            filter: String::new(),
            snap_len: MAX_FRAME,
        }
    }
}

/// Frame counts since the start of the capture: an interface statistics block (section 4.6 of the
/// draft).
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Start of the capture.
    pub start: WireTime,
    /// Time of these counts.
    pub end: WireTime,
    /// Frames that reached the interface (isb_ifrecv).
    pub received: u64,
    /// Of those, dropped by the interface (isb_ifdrop).
    pub interface_drops: u64,
    /// Dropped by the operating system (isb_osdrop).
    pub system_drops: u64,
    /// Accepted by the filter (isb_filteraccept).
    pub accepted: u64,
    /// Written to files (isb_usrdeliv): accepted minus written is the number of lost frames.
    pub written: u64,
    /// Comment as text.
    pub comment: String,
}

/// Error: writing a file failed.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: writing failed at byte {at}: {source}; the file is {}",
    path.display(),
    if *.complete { "complete up to there" } else { "cut off in a packet" }
)]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub at: u64,
    /// Whether the file is a readable capture.
    pub complete: bool,
    /// Error of the system.
    pub source: io::Error,
}

/// A pcapng file being written. Blocks are buffered and written together; a frame counts as written
/// when it has been written to the file. Dropping the writer completes the file.
pub struct Writer {
    file: File,
    path: PathBuf,
    snap_len: usize,
    /// Whole blocks that are not written yet, and the number of frames in them.
    buf: Vec<u8>,
    frames: u64,
    /// Bytes in the file, up to the end of a block.
    in_file: u64,
    written: u64,
    written_bytes: u64,
    lost: u64,
    failed: bool,
    error: Option<WriteError>,
}

impl Writer {
    /// Writes the header at once, so that a file that cannot be written is refused at the start.
    /// `path` is for messages.
    ///
    /// # Errors
    /// Writing to the file failed.
    pub fn new(mut file: File, path: &Path, about: &About) -> io::Result<Self> {
        let snap_len = about.snap_len.min(MAX_FRAME);
        let mut buf = Vec::with_capacity(BUFFER);
        header(&mut buf, about, snap_len);
        file.write_all(&buf)?;
        let in_file = buf.len() as u64;
        buf.clear();
        Ok(Self {
            file,
            path: path.into(),
            snap_len,
            buf,
            frames: 0,
            in_file,
            written: 0,
            written_bytes: 0,
            lost: 0,
            failed: false,
            error: None,
        })
    }

    /// Appends a frame: an enhanced packet block (section 4.3). After a failure the frame is only
    /// counted, as lost, as is a frame longer than 262144 bytes.
    pub fn packet(&mut self, time: WireTime, frame: &Mbuf) {
        let len = frame.total_len();
        if self.failed || len > MAX_FRAME {
            self.lost += 1;
            return;
        }
        let kept = len.min(self.snap_len);
        self.make_room(SMALLEST_BLOCK + 20 + kept.next_multiple_of(4));
        if self.failed {
            self.lost += 1;
            return;
        }
        block(&mut self.buf, ENHANCED_PACKET, |out| {
            out.extend([0; 4]); // interface 0
            stamp(out, time);
            out.extend((kept as u32).to_le_bytes());
            out.extend((len as u32).to_le_bytes());
            let mut left = kept;
            for segment in frame.segments() {
                let part = &segment[..segment.len().min(left)];
                out.extend_from_slice(part);
                left -= part.len();
            }
            pad(out, kept);
        });
        self.frames += 1;
    }

    /// Appends the frame counts so far.
    pub fn statistics(&mut self, statistics: &Statistics) {
        if self.failed {
            return;
        }
        self.make_room(SMALLEST_BLOCK + 128 + MAX_TEXT);
        block(&mut self.buf, INTERFACE_STATISTICS, |out| {
            out.extend([0; 4]); // interface 0
            stamp(out, statistics.end);
            text(out, 1, &statistics.comment);
            for (code, time) in [(2, statistics.start), (3, statistics.end)] {
                option(out, code, |out| stamp(out, time));
            }
            for (code, count) in [
                (4, statistics.received),
                (5, statistics.interface_drops),
                (6, statistics.accepted),
                (7, statistics.system_drops),
                (8, statistics.written),
            ] {
                option(out, code, |out| out.extend(count.to_le_bytes()));
            }
            out.extend([0; 4]); // end of options
        });
    }

    /// Writes the buffered blocks to the file. After a failure, the file is truncated to the whole
    /// blocks that it has accepted, and nothing more is written.
    pub fn flush(&mut self) {
        if !self.failed {
            self.write();
        }
        self.lost += self.frames;
        self.frames = 0;
        self.buf.clear();
    }

    fn write(&mut self) {
        let (accepted, done) = write(&mut self.file, &self.buf);
        let Whole { len, frames, bytes } = whole(&self.buf[..accepted]);
        self.in_file += len as u64;
        self.written += frames;
        self.written_bytes += bytes;
        self.frames -= frames;
        if let Err(source) = done {
            self.failed = true;
            let error = WriteError {
                path: self.path.clone(),
                at: self.in_file,
                // The file remains a readable capture, if it can be truncated.
                complete: self.file.set_len(self.in_file).is_ok(),
                source,
            };
            tracing::warn!("{error}");
            self.error = Some(error);
        }
    }

    /// Length of the file after the next flush, in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.in_file + self.buf.len() as u64
    }

    /// Whether blocks are buffered.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.buf.is_empty()
    }

    /// Frames written to the file.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Their bytes, including truncated ones.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Frames that were not written to the file.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether writing has failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The error, once.
    pub fn take_error(&mut self) -> Option<WriteError> {
        self.error.take()
    }

    fn make_room(&mut self, len: usize) {
        if self.buf.len() + len > BUFFER {
            self.flush();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A failure is logged.
        self.flush();
    }
}

/// Writes all bytes; the number that the file has accepted, which is less after an error.
fn write(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut accepted = 0;
    while accepted < bytes.len() {
        match file.write(&bytes[accepted..]) {
            Ok(0) => return (accepted, Err(ErrorKind::WriteZero.into())),
            Ok(n) => accepted += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (accepted, Err(error)),
        }
    }
    (accepted, Ok(()))
}

/// The whole blocks in front of some bytes: their length, their frames, and the bytes of those.
#[derive(Default)]
struct Whole {
    len: usize,
    frames: u64,
    bytes: u64,
}

fn whole(blocks: &[u8]) -> Whole {
    let mut whole = Whole::default();
    let word = |at: usize| {
        let bytes = blocks.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    };
    while let Some((kind, len)) = word(whole.len).zip(word(whole.len + 4)) {
        let end = whole.len + len as usize;
        if end > blocks.len() {
            break;
        }
        if kind == ENHANCED_PACKET {
            whole.frames += 1;
            // Behind type, length, interface, time stamp and kept length.
            whole.bytes += u64::from(word(whole.len + 24).unwrap_or(0));
        }
        whole.len = end;
    }
    whole
}

/// Section header (section 4.1) and interface description (section 4.2).
fn header(out: &mut Vec<u8>, about: &About, snap_len: usize) {
    block(out, u32::from_le_bytes(SECTION_HEADER), |out| {
        out.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        out.extend([1, 0, 0, 0]); // version 1.0
        out.extend((-1_i64).to_le_bytes()); // the section's length is unknown
        if !about.program.is_empty() {
            text(out, 4, &about.program); // shb_userappl
            out.extend([0; 4]); // end of options
        }
    });
    block(out, INTERFACE_DESCRIPTION, |out| {
        out.extend([1, 0, 0, 0]); // LINKTYPE_ETHERNET
        out.extend((snap_len as u32).to_le_bytes());
        text(out, 2, &about.interface); // if_name
        option(out, 9, |out| out.push(9)); // if_tsresol: 10^-9 s
        if !about.filter.is_empty() {
            // if_filter: the first byte marks a filter text.
            option(out, 11, |out| {
                out.push(0);
                out.extend_from_slice(shortened(&about.filter));
            });
        }
        out.extend([0; 4]); // end of options
    });
}

fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let len = ((out.len() - start + 4) as u32).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&len);
    out.extend(len);
}

/// Section 3.5: code, length, value, padded to 4 bytes.
fn option(out: &mut Vec<u8>, code: u16, value: impl FnOnce(&mut Vec<u8>)) {
    out.extend(code.to_le_bytes());
    out.extend([0; 2]);
    let start = out.len();
    value(out);
    let len = out.len() - start;
    out[start - 2..start].copy_from_slice(&(len as u16).to_le_bytes());
    pad(out, len);
}

/// A text option; omitted if it is empty.
fn text(out: &mut Vec<u8>, code: u16, text: &str) {
    if !text.is_empty() {
        option(out, code, |out| out.extend_from_slice(shortened(text)));
    }
}

fn shortened(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(MAX_TEXT)]
}

/// The upper half of a time stamp comes first, whatever the byte order (section 4.3).
fn stamp(out: &mut Vec<u8>, time: WireTime) {
    out.extend(((time.0 >> 32) as u32).to_le_bytes());
    out.extend((time.0 as u32).to_le_bytes());
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.resize(out.len() + (len.next_multiple_of(4) - len), 0);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Type and body of each block, whose two lengths agree.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |bytes: &[u8], at| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let (kind, len) = (word(bytes, 0), word(bytes, 4) as usize);
            assert_eq!(word(bytes, len - 4) as usize, len);
            blocks.push((kind, &bytes[8..len - 4]));
            bytes = &bytes[len..];
        }
        blocks
    }

    /// Code and value of each option, up to the end of options.
    fn options(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
        let half = |bytes: &[u8], at| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
        let mut options = Vec::new();
        while half(bytes, 0) != 0 {
            let len = usize::from(half(bytes, 2));
            options.push((half(bytes, 0), &bytes[4..4 + len]));
            bytes = &bytes[4 + len.next_multiple_of(4)..];
        }
        assert_eq!(bytes, [0; 4]);
        options
    }

    #[test]
    fn a_file_says_what_it_is_and_what_was_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let about = About {
            program: "p 1".into(),
            interface: "if".into(),
            filter: "f".into(),
            snap_len: 1 << 20,
        };
        let mut writer = Writer::new(File::create(&path).unwrap(), &path, &about).unwrap();
        writer.statistics(&Statistics {
            start: WireTime(1 << 32 | 2),
            end: WireTime(3),
            received: 9,
            interface_drops: 1,
            system_drops: 2,
            accepted: 5,
            written: 4,
            comment: "\u{e9}".repeat(MAX_TEXT),
        });
        let len = writer.file_len();
        drop(writer);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, len);
        let blocks = blocks(&bytes);
        let kinds: Vec<_> = blocks.iter().map(|block| block.0).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 5]);
        assert_eq!(options(&blocks[0].1[16..]), [(4, &b"p 1"[..])]);
        assert_eq!(blocks[1].1[4..8], (MAX_FRAME as u32).to_le_bytes());
        let interface = [(2, &b"if"[..]), (9, &[9]), (11, b"\0f")];
        assert_eq!(options(&blocks[1].1[8..]), interface);
        let statistics = options(&blocks[2].1[12..]);
        assert_eq!(
            statistics[0].1.len(),
            MAX_TEXT,
            "whole characters of two bytes"
        );
        assert_eq!(statistics[1], (2, &[1, 0, 0, 0, 2, 0, 0, 0][..]));
        let count =
            |&(code, value): &(u16, &[u8])| (code, u64::from_le_bytes(value.try_into().unwrap()));
        let counts: Vec<_> = statistics[3..].iter().map(count).collect();
        assert_eq!(counts, [(4, 9), (5, 1), (6, 5), (7, 2), (8, 4)]);
    }
}
