//! The packets of a module that are sent, and what receives them.

use anyhow::Result;
use pollux_images::formats::Header;
use zerocopy::IntoBytes as _;

/// Most packets in flight.
pub(super) const WINDOW: u64 = 256;
/// Packets that are sent or received at a time, on each side.
pub(super) const BURST: usize = 64;
/// Bytes of pixels in a packet.
pub(super) const PIXELS: usize = 8192;
/// Packets of an image.
pub(super) const PACKETS: usize = 128;
/// The UDP port of the module.
pub(super) const PORT: u16 = 50_001;

/// What is sent: image n shows frame n modulo their number.
pub(super) struct Images {
    pub(super) frames: Vec<Vec<u16>>,
    pub(super) header: Header,
}

impl Images {
    /// Header and pixels of packet `n`, counted over all images.
    pub(super) fn packet(&self, n: u64) -> (Header, &[u8]) {
        let (image, packet) = (n / PACKETS as u64, n as usize % PACKETS);
        let mut header = self.header;
        header.frame_number.set(image + 1);
        header.packet_number.set(packet as u32);
        let pixels = self.frame(image).as_bytes();
        (header, &pixels[packet * PIXELS..][..PIXELS])
    }

    /// The frame that an image shows.
    pub(super) fn frame(&self, image: u64) -> &[u16] {
        &self.frames[image as usize % self.frames.len()]
    }
}

/// Takes images; called with each one that is complete.
pub(super) type Take<'a> = &'a mut dyn FnMut(&[u8]) -> Result<()>;

/// Receives packets and places them in images.
pub(super) trait Receive {
    /// Takes the packets that are there; their number.
    fn poll(&mut self, take: Take) -> Result<usize>;
}
