//! Memory of a queue pair: what peers access, what requests send and fetch, and the receives.

use anyhow::{Context as _, Result};
use pollux_pmd::mempool::region::MemoryRegion;
use pollux_rdma::{Access, Buffer, Endpoint, Memory, QueuePair, Receive};

use super::contents::Contents;

/// Most receives, and the most bytes of all of them.
const RECEIVES: usize = 64;
const RECEIVE_BYTES: usize = 64 << 20;
/// Parts before the receives: for the peer, this end's own, and that of the last request.
const PARTS: u64 = 3;

/// The memory of a queue pair.
pub(super) struct Area {
    pub(super) buffer: Buffer,
    bytes: u32,
    /// Distance of two of its parts.
    stride: u64,
    slots: u64,
    contents: Contents,
}

impl Area {
    /// Memory for messages of so many bytes; parts are no closer to each other than `cycle`. With contents
    /// this end has them in its own parts, and nothing like them where others come; if `is_read`, also in
    /// the peer's part.
    pub(super) fn new(
        endpoint: &mut Endpoint,
        (bytes, cycle): (u32, u32),
        contents: Contents,
        is_read: bool,
    ) -> Result<Self> {
        let stride = bytes.max(cycle) as usize;
        let slots = (RECEIVE_BYTES / stride).clamp(2, RECEIVES);
        let region = MemoryRegion::builder((PARTS as usize + slots) * stride).build();
        let memory = Memory::new(region.context("no memory for messages")?);
        let len = memory.len();
        let this = Self {
            buffer: endpoint.register_buffer(&memory, 0..len, Access::ALL)?,
            bytes,
            stride: stride as u64,
            slots: slots as u64,
            contents,
        };
        contents.clear(&this.buffer, 0, len)?;
        let fill = |at: u64, is_inverted| {
            contents.fill(&this.buffer, at as usize, bytes as usize, is_inverted)
        };
        if is_read {
            fill(0, false)?;
        }
        fill(this.own(), false)?;
        fill(this.last(), true)?;
        Ok(this)
    }

    /// Bytes of a message.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(super) fn contents(&self) -> Contents {
        self.contents
    }

    /// Offset of the part of this end's requests; the peer's is at 0.
    pub(super) fn own(&self) -> u64 {
        self.stride
    }

    /// Offset of the part of the last request, whose contents are others.
    pub(super) fn last(&self) -> u64 {
        2 * self.stride
    }

    /// Number of places for what comes.
    pub(super) fn slots(&self) -> u64 {
        self.slots
    }

    /// Offset of such a place. Numbers go round.
    pub(super) fn slot(&self, number: u64) -> u64 {
        (PARTS + number % self.slots) * self.stride
    }

    /// Posts all receives.
    pub(super) fn post_receives(&self, qp: &mut QueuePair) -> Result<()> {
        for cookie in 0..self.slots {
            self.post_receive(qp, cookie)?;
        }
        qp.doorbell();
        Ok(())
    }

    pub(super) fn post_receive(&self, qp: &mut QueuePair, cookie: u64) -> Result<()> {
        let to = self.buffer.part(self.slot(cookie), self.bytes);
        qp.post_receive(Receive { cookie, to })?;
        Ok(())
    }

    /// Checks the message in a slot, and makes room for the next.
    pub(super) fn check_slot(&self, at: u64) -> Result<()> {
        self.check(at as usize, self.bytes as usize, false)
    }

    /// Checks so many bytes of the PUT in the peer's part, and makes room for the next.
    pub(super) fn check_put(&self, len: usize) -> Result<()> {
        self.check(0, len, false)
    }

    /// Checks the last one of PUTs that overwrite each other.
    pub(super) fn check_last_put(&self) -> Result<()> {
        self.check(0, self.bytes as usize, true)
    }

    fn check(&self, at: usize, len: usize, is_inverted: bool) -> Result<()> {
        self.contents.check(&self.buffer, at, len, is_inverted)?;
        self.contents.clear(&self.buffer, at, len)
    }
}
