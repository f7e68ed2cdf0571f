//! Stacks of images in memory that a detector writes itself, by remote memory access
//! (`docs/formats/rdma-images.md`).
//!
//! A module has a ring of stack buffers at the receiver. A stack is a number of images, an image the lines of
//! the module one after another, with a stride. A line has the pixels of a packet of the detector, a whole
//! number of rows or a part of one, and behind them the packet's header.
//!
//! The header is the last part of a line's message: it is there if all pixels before it are. A receiver clears
//! the header of each line that it has taken, so that a line which did not come has none.

use crate::formats::{HEADER_LEN, Header, Layout};

/// Distance of lines is a multiple of this, so that each begins at a cache line.
const ALIGN: usize = 64;
/// Beginning of the names of stack buffers.
const NAME: &str = "stack ";

/// Name of the counter of stacks that the receiver has taken, in the sender's memory: 32 bits,
/// little-endian, which wrap.
pub const TAKEN: &str = "taken";

/// Name of a stack buffer in the exchange of a connection.
#[must_use]
pub fn stack_name(number: usize) -> String {
    format!("{NAME}{number}")
}

/// Geometry of the stacks of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackLayout {
    lines: usize,
    pixel_bytes: usize,
    stride: usize,
    images: usize,
}

impl StackLayout {
    /// Stacks of `images` images of a module.
    #[must_use]
    pub fn new(layout: &Layout, images: usize) -> Self {
        Self {
            lines: layout.module_packets(),
            pixel_bytes: layout.packet_bytes(),
            stride: layout.payload_bytes().next_multiple_of(ALIGN),
            images,
        }
    }

    /// Stacks of so many bytes of a module: the receiver says how many images they are by the length of its
    /// buffers. `None` if that is no whole number, or none.
    #[must_use]
    pub fn of_bytes(layout: &Layout, bytes: u64) -> Option<Self> {
        let one = Self::new(layout, 1);
        let images = usize::try_from(bytes).ok()? / one.image_bytes();
        let stack = Self { images, ..one };
        (images > 0 && stack.bytes() as u64 == bytes).then_some(stack)
    }

    /// Images of a stack.
    #[must_use]
    pub const fn images(&self) -> usize {
        self.images
    }

    /// Lines of an image.
    #[must_use]
    pub const fn lines(&self) -> usize {
        self.lines
    }

    /// Distance of a line from the one before it, in bytes.
    #[must_use]
    pub const fn stride(&self) -> usize {
        self.stride
    }

    /// Bytes of a line with its header.
    #[must_use]
    pub const fn line_bytes(&self) -> usize {
        self.pixel_bytes + HEADER_LEN
    }

    /// Bytes of pixels of a line: where its header is, from its first byte on.
    #[must_use]
    pub const fn pixel_bytes(&self) -> usize {
        self.pixel_bytes
    }

    /// Bytes of an image.
    #[must_use]
    pub const fn image_bytes(&self) -> usize {
        self.lines * self.stride
    }

    /// Bytes of a stack.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.images.saturating_mul(self.image_bytes())
    }

    /// First byte of a line in its stack. Both numbers are below their limits.
    #[must_use]
    #[inline]
    pub const fn offset(&self, image: usize, line: usize) -> usize {
        image * self.image_bytes() + line * self.stride
    }
}

/// Whether the header of a line is there: a receiver clears those of the lines that it has taken, and no
/// packet has the version 0.
#[must_use]
#[inline]
pub const fn is_written(header: &Header) -> bool {
    header.version != 0
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros as _;

    use super::*;
    use crate::formats::{EigerBits, EigerLink};

    #[test]
    fn lines_of_a_stack_neither_overlap_nor_leave_it() {
        let layouts = [
            Layout::jungfrau(3, 2).unwrap(),
            Layout::moench(1, 1).unwrap(),
            Layout::eiger(2, EigerBits::Eight, EigerLink::OneGigabit).unwrap(),
        ];
        for layout in layouts {
            let stack = StackLayout::new(&layout, 3);
            let mut next = 0;
            for image in 0..3 {
                for line in 0..layout.module_packets() {
                    let at = stack.offset(image, line);
                    assert!(at >= next && at.is_multiple_of(64));
                    next = at + layout.payload_bytes();
                }
            }
            assert!(next <= stack.bytes());
            assert_eq!(
                StackLayout::of_bytes(&layout, stack.bytes() as u64),
                Some(stack)
            );
            for bytes in [0, 1, stack.bytes() - 64, stack.bytes() + 64, usize::MAX] {
                assert_eq!(
                    StackLayout::of_bytes(&layout, bytes as u64),
                    None,
                    "{bytes}"
                );
            }
        }
    }

    #[test]
    fn a_line_that_was_cleared_is_not_written() {
        let layout = Layout::jungfrau(1, 1).unwrap();
        assert!(is_written(&Header::new(layout.detector())));
        assert!(!is_written(&Header::new_zeroed()));
    }
}
