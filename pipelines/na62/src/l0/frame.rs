//! What comes to the trigger.

use pollux_mempool::Mbuf;
use pollux_pipelines::stage::Moment;
use pollux_pmd::stream::StreamId;

/// A received datagram of a known stream.
#[derive(Debug)]
pub struct Frame {
    /// The whole frame.
    pub mbuf: Mbuf,
    /// Stream that it belongs to.
    pub stream: StreamId,
    /// Bytes from the start of the frame to the UDP payload.
    pub offset: u16,
    /// Bytes of UDP payload.
    pub len: u16,
    /// When it came, on the time line of the deadlines.
    pub at: Moment,
}

impl Frame {
    /// The payload; copied into `scratch` first if it spans segments.
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
