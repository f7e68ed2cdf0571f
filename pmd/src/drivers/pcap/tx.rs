//! The transmit side: frames become packets of a pcapng file.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use pollux_mempool::{BurstMut, PoolCache};

use super::Trouble;
use super::pcapng::{self, MAX_FRAME};
use crate::driver::TxDriver;
use crate::ledger::Sent;

/// Bytes that are gathered for one write.
const BUFFER: usize = 512 << 10;

pub(super) struct Tx {
    file: File,
    path: PathBuf,
    /// Whole blocks that were not written yet, and the frames in them.
    buf: Vec<u8>,
    frames: u64,
    bytes: u64,
    /// Bytes in the file, up to the end of a block.
    written: u64,
    failed: bool,
    trouble: Trouble,
}

impl Tx {
    /// Writes the file header, so that a file that cannot be written is refused at the start.
    pub(super) fn new(mut file: File, path: PathBuf, trouble: Trouble) -> io::Result<Self> {
        let header = pcapng::file_header();
        file.write_all(&header)?;
        let (buf, written) = (Vec::with_capacity(BUFFER), header.len() as u64);
        Ok(Self {
            file,
            path,
            buf,
            frames: 0,
            bytes: 0,
            written,
            failed: false,
            trouble,
        })
    }

    /// Frames count as sent when the file has taken them.
    fn flush(&mut self, sent: &mut Sent) {
        match self.write_out() {
            Ok(()) => sent.count(self.frames, self.bytes),
            Err(()) => sent.count_errors(self.frames),
        }
        (self.frames, self.bytes) = (0, 0);
    }

    fn write_out(&mut self) -> Result<(), ()> {
        let result = if self.failed {
            Err(())
        } else {
            self.write_blocks()
        };
        self.buf.clear();
        result
    }

    fn write_blocks(&mut self) -> Result<(), ()> {
        match self.file.write_all(&self.buf) {
            Ok(()) => {
                self.written += self.buf.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.failed = true;
                // What is there stays a readable capture, if the file can be cut at all.
                let cut = self.file.set_len(self.written).is_ok();
                let state = if cut {
                    "complete up to there"
                } else {
                    "cut off in a packet"
                };
                let what = format!(
                    "{}: writing failed at byte {}: {error}; the file is {state}",
                    self.path.display(),
                    self.written
                );
                tracing::warn!("{what}");
                self.trouble.report(what);
                Err(())
            }
        }
    }
}

impl TxDriver for Tx {
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        let n = burst.len();
        let mut now = None;
        for mbuf in burst.as_slice() {
            let len = mbuf.total_len();
            if self.failed || len > MAX_FRAME {
                sent.count_errors(1);
                continue;
            }
            if self.buf.len() + pcapng::packet_len(len) > BUFFER {
                self.flush(sent);
            }
            let ns = mbuf
                .wire_time()
                .map_or_else(|| *now.get_or_insert_with(unix_ns), |time| time.0);
            pcapng::packet(&mut self.buf, ns, len, mbuf.segments());
            self.frames += 1;
            self.bytes += len as u64;
        }
        cache.free_front(burst, n);
        n
    }

    fn finish(&mut self, sent: &mut Sent) {
        self.flush(sent);
    }
}

impl Drop for Tx {
    /// A queue that was dropped without `Port::stop` still completes its file.
    fn drop(&mut self) {
        if !self.buf.is_empty() {
            // `write_out` has logged the failure.
            let _ = self.write_out();
        }
    }
}

fn unix_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
