//! Input of the trigger's pipeline.

use pollux_mempool::Mbuf;
use pollux_pipelines::stage::Moment;
use pollux_pmd::stream::StreamId;

/// A received datagram of a known stream.
#[derive(Debug)]
pub struct Frame {
    /// The whole frame.
    pub mbuf: Mbuf,
    /// Stream of the frame.
    pub stream: StreamId,
    /// Offset of the UDP payload in the frame, in bytes.
    pub offset: u16,
    /// Length of the UDP payload in bytes.
    pub len: u16,
    /// Arrival time, on the time scale of the deadlines.
    pub at: Moment,
}

impl Frame {
    /// The payload; it is first copied into `scratch` if it spans segments.
    #[must_use]
    #[inline]
    pub fn payload<'a>(&'a self, scratch: &'a mut [u8]) -> &'a [u8] {
        let (start, len) = (usize::from(self.offset), usize::from(self.len));
        if let Some(payload) = self.mbuf.data().get(start..start + len) {
            return payload;
        }
        let len = len.min(scratch.len());
        let copied = self.mbuf.copy_to(start, &mut scratch[..len]);
        &scratch[..copied]
    }
}
