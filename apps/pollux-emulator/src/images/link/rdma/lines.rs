//! Lines of a stack of images in registered memory.

use pollux_images::formats::Header;
use pollux_images::stack::StackLayout;
use pollux_mempool::region::MemoryRegion;
use pollux_rdma::{Access, Buffer, Endpoint, Local, Memory};
use zerocopy::IntoBytes as _;

use super::error::RdmaError;
use crate::images::stack::{PacketPlace, Stack};

/// All lines, each with room for its header behind its pixels. The pixels stay as they are; the header is
/// that of the frame that shows them.
pub(super) struct Lines {
    buffer: Buffer,
    stride: usize,
    pixel_bytes: usize,
    line_bytes: u32,
    /// Number of the last request of each line, of those of its connection.
    requests: Vec<u64>,
}

impl Lines {
    /// Copies the lines of a stack into registered memory.
    pub(super) fn new(endpoint: &mut Endpoint, stack: &Stack) -> Result<Self, RdmaError> {
        let one = StackLayout::new(stack.layout(), 1);
        let lines = stack.packets();
        let memory = Memory::new(MemoryRegion::builder(lines * one.stride()).build()?);
        let len = memory.len();
        let buffer = endpoint.register_buffer(&memory, 0..len, Access::LOCAL)?;
        for line in 0..lines {
            // The memory has so many lines.
            let _ = buffer.write(line * one.stride(), stack.pixels(PacketPlace::new(line)));
        }
        Ok(Self {
            buffer,
            stride: one.stride(),
            pixel_bytes: one.pixel_bytes(),
            line_bytes: one.line_bytes() as u32,
            requests: vec![0; lines],
        })
    }

    /// Whether the last request of a line is among the `done` ones of its connection: until then the memory
    /// has to stay as it is.
    #[inline]
    pub(super) fn is_free(&self, line: usize, done: u64) -> bool {
        self.requests.get(line).is_none_or(|&last| last <= done)
    }

    /// Where a line is.
    #[inline]
    pub(super) fn payload(&self, line: usize) -> Local {
        self.buffer
            .part((line * self.stride) as u64, self.line_bytes)
    }

    /// Gives a line the header of the frame that the next request shows.
    #[inline]
    pub(super) fn set_header(&mut self, line: usize, header: &Header, request: u64) {
        if let Some(last) = self.requests.get_mut(line) {
            *last = request;
            // The memory has this line.
            let _ = self
                .buffer
                .write(line * self.stride + self.pixel_bytes, header.as_bytes());
        }
    }
}
