//! Stack buffers of a module.

use pollux_images::formats::{HEADER_LEN, Header};
use pollux_images::stack::{StackLayout, is_written};
use pollux_rdma::{Access, Buffer, Endpoint, Memory, RegisterError};
use zerocopy::{FromZeros as _, IntoBytes as _};

/// The header of a line that is not there.
const CLEARED: [u8; HEADER_LEN] = [0; HEADER_LEN];

/// Stack buffers of a module, one behind the other. The loop takes the lines in them. The thread of the sources
/// registers them for each source anew.
#[derive(Clone)]
pub struct Stacks {
    memory: Memory,
    /// First byte in the memory.
    start: usize,
    layout: StackLayout,
    count: usize,
}

impl Stacks {
    /// `count` buffers from byte `start` of the memory on, which has all of them.
    pub fn new(memory: &Memory, start: usize, layout: StackLayout, count: usize) -> Self {
        Self {
            memory: memory.clone(),
            start,
            layout,
            count,
        }
    }

    /// Geometry of a stack.
    pub const fn layout(&self) -> &StackLayout {
        &self.layout
    }

    /// Number of buffers.
    pub const fn count(&self) -> usize {
        self.count
    }

    fn at(&self, stack: usize, image: usize, line: usize) -> usize {
        self.start + stack * self.layout.bytes() + self.layout.offset(image, line)
    }

    /// The header of a line.
    #[inline]
    pub fn header(&self, stack: usize, image: usize, line: usize) -> Header {
        let mut header = Header::new_zeroed();
        let at = self.at(stack, image, line) + self.layout.pixel_bytes();
        // The memory has all lines of the layout.
        let _ = self.memory.read(at, header.as_mut_bytes());
        header
    }

    /// Copies the pixels of a line.
    #[inline]
    pub fn pixels(&self, stack: usize, image: usize, line: usize, to: &mut [u8]) {
        let at = self.at(stack, image, line);
        let _ = self.memory.read(at, to);
    }

    /// Clears the header of a line: it is not there any more.
    #[inline]
    pub fn clear(&self, stack: usize, image: usize, line: usize) {
        let at = self.at(stack, image, line) + self.layout.pixel_bytes();
        let _ = self.memory.write(at, &CLEARED);
    }

    fn lines(&self) -> impl Iterator<Item = (usize, usize)> {
        let lines = self.layout.lines();
        (0..self.layout.images()).flat_map(move |image| (0..lines).map(move |line| (image, line)))
    }

    /// Whether a line is in the buffer.
    pub fn has_lines(&self, stack: usize) -> bool {
        self.lines()
            .any(|(image, line)| is_written(&self.header(stack, image, line)))
    }

    /// Clears the headers of all lines.
    pub fn clear_all(&self) {
        for stack in 0..self.count {
            for (image, line) in self.lines() {
                self.clear(stack, image, line);
            }
        }
    }

    /// Registers the buffers for a source, under new keys, which end with what is returned.
    ///
    /// # Errors
    /// The endpoint has no room for them.
    pub fn register(&self, endpoint: &mut Endpoint) -> Result<Vec<Buffer>, RegisterError> {
        let buffer = |stack| {
            let from = self.at(stack, 0, 0);
            endpoint.register_buffer(
                &self.memory,
                from..from + self.layout.bytes(),
                Access::WRITE,
            )
        };
        (0..self.count).map(buffer).collect()
    }
}
