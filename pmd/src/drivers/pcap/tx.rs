//! Transmit side: frames become packets of a pcapng file.

use pollux_mempool::time::WireTime;
use pollux_mempool::{BurstMut, PoolCache};

use super::trouble::Trouble;
use super::writer::Writer;
use crate::driver::TxDriver;
use crate::ledger::Sent;

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Tx {
    writer: Writer,
    /// Frames, bytes and lost frames of the writer that have been counted as sent and as refused.
    counted: (u64, u64, u64),
    trouble: Trouble,
}

impl Tx {
    pub(super) fn new(writer: Writer, trouble: Trouble) -> Self {
        Self {
            writer,
            counted: (0, 0, 0),
            trouble,
        }
    }

    /// Frames count as sent when they have been written to the file.
    fn settle(&mut self, sent: &mut Sent) {
        let (frames, bytes, lost) = self.counted;
        let writer = &mut self.writer;
        self.counted = (writer.written(), writer.written_bytes(), writer.lost());
        sent.count(self.counted.0 - frames, self.counted.1 - bytes);
        sent.count_errors(self.counted.2 - lost);
        if let Some(error) = writer.take_error() {
            self.trouble.report(error.to_string());
        }
    }
}

impl TxDriver for Tx {
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        let n = burst.len();
        let mut now = None;
        for mbuf in burst.as_slice() {
            let time = mbuf
                .wire_time()
                .unwrap_or_else(|| *now.get_or_insert_with(WireTime::now));
            self.writer.packet(time, mbuf);
        }
        self.settle(sent);
        cache.free_front(burst, n);
        n
    }

    fn finish(&mut self, sent: &mut Sent) {
        self.writer.flush();
        self.settle(sent);
    }
}
