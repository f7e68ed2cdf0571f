//! The images of a stack in memory, and their packets.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use pollux_images::formats::{HEADER_LEN, Header, Layout};
use pollux_mempool::time::Ns;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::net::Checksum;

use super::config::{ImagesConfig, MAX_STACK_BYTES};
use super::order::StackOrder;
use super::synthesis::Synthesis;
use crate::config::ConfigError;

/// Why there is no stack.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is not enough memory.
    #[error(
        "a stack of {images} images of {bytes} B: more than the memory or 64 GiB; use fewer images or modules"
    )]
    Memory {
        /// Images, dark ones included.
        images: usize,
        /// Bytes of an image.
        bytes: usize,
    },
    /// A file cannot be read.
    #[error("raw frames {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file has another length.
    #[error("raw frames {}: {len} B, which is not a multiple above 0 of the {module} B of a module frame: it needs raw pixels without a header, 16 bits little-endian", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        len: usize,
        /// Bytes of a frame of a module.
        module: usize,
    },
    /// The frames do not make whole images.
    #[error(
        "raw frames: {frames} module frames for images of {modules} modules: give a multiple of {modules}, all modules of the first image first"
    )]
    Modules {
        /// Frames in all files.
        frames: usize,
        /// Modules of the detector.
        modules: usize,
    },
    /// The stop flag was set meanwhile.
    #[error("stopped before the images were complete")]
    Stopped,
}

/// Bytes of a stack that are cleared or summed from one look at the stop flag to the next.
const STEP: usize = 1 << 26;

/// Raw pixels of all images of a stack, and what their packets need beside them.
#[derive(Debug)]
pub struct Stack {
    layout: Layout,
    order: StackOrder,
    /// Pixels of the packets in the order of sending, which a processor prefetches: images in the order
    /// of their places, in each the packets by their numbers, and of each number those of all senders.
    pixels: Vec<u8>,
    /// Internet checksum of the pixels of each packet.
    sums: Vec<u16>,
}

/// The place of a packet in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketPlace(usize);

impl PacketPlace {
    /// The place of this number, in the order of the stack.
    #[must_use]
    pub(super) const fn new(index: usize) -> Self {
        Self(index)
    }

    /// Its number, in the order of the stack.
    #[must_use]
    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0
    }
}

impl Stack {
    /// The synthetic images of a configuration.
    ///
    /// # Errors
    /// A stack that is too large for the memory; `stop` was set before all images were made.
    pub fn synthetic(synthesis: &Synthesis, stop: &StopFlag) -> Result<Self, StackError> {
        let layout = *synthesis.layout();
        let mut stack = Self::empty(layout, synthesis.order(), stop)?;
        let pixels = layout.module().pixels();
        let (mut photons, mut raw) = (vec![0; pixels], vec![0; pixels]);
        let mut bytes = vec![0; layout.module_bytes()];
        for module in 0..layout.modules() {
            let response = synthesis.response(module);
            for (place, image) in synthesis.order().all().enumerate() {
                go_on(stop)?;
                synthesis.module(image, module, &response, &mut photons, &mut raw);
                for (out, raw) in bytes.as_chunks_mut().0.iter_mut().zip(&raw) {
                    *out = raw.to_le_bytes();
                }
                stack.set_module(place, module, &bytes);
            }
        }
        stack.sum(stop)?;
        Ok(stack)
    }

    /// Raw frames of modules from files, each with one or more: all modules of the first image, then
    /// those of the second one. There are as many images as the files have; none is dark.
    ///
    /// # Errors
    /// A configuration that is not valid; files that cannot be read, or do not make whole images; `stop`
    /// was set before all were read.
    pub fn from_files(
        config: &ImagesConfig,
        files: &[PathBuf],
        stop: &StopFlag,
    ) -> Result<Self, StackError> {
        config.validate()?;
        let layout = config.layout()?;
        let (module, modules) = (layout.module_bytes(), layout.modules());
        let length = |path: &Path| {
            let found = fs::metadata(path);
            found
                .map(|found| found.len() as usize)
                .map_err(|source| StackError::Read {
                    path: path.into(),
                    source,
                })
        };
        let mut counts = Vec::with_capacity(files.len());
        for path in files {
            let len = length(path)?;
            if len == 0 || !len.is_multiple_of(module) {
                let path = path.clone();
                return Err(StackError::Length { path, len, module });
            }
            counts.push(len / module);
        }
        let frames: usize = counts.iter().sum();
        if frames == 0 || !frames.is_multiple_of(modules) {
            return Err(StackError::Modules { frames, modules });
        }
        let images = u32::try_from(frames / modules).unwrap_or(u32::MAX);
        let mut stack = Self::empty(layout, StackOrder::new(images, 0), stop)?;
        let (mut next, mut frame) = (0, vec![0; module]);
        for (path, count) in files.iter().zip(counts) {
            let read = |source| StackError::Read {
                path: path.clone(),
                source,
            };
            let mut file = File::open(path).map_err(read)?;
            for _ in 0..count {
                go_on(stop)?;
                file.read_exact(&mut frame).map_err(read)?;
                stack.set_module(next / modules, next % modules, &frame);
                next += 1;
            }
        }
        stack.sum(stop)?;
        Ok(stack)
    }

    fn empty(layout: Layout, order: StackOrder, stop: &StopFlag) -> Result<Self, StackError> {
        let (images, bytes) = (order.total(), layout.image_bytes());
        let refused = || StackError::Memory { images, bytes };
        let total = images.checked_mul(bytes).ok_or_else(refused)?;
        let mut pixels = Vec::new();
        if total as u64 > MAX_STACK_BYTES || pixels.try_reserve_exact(total).is_err() {
            return Err(refused());
        }
        while pixels.len() < total {
            go_on(stop)?;
            pixels.resize(total.min(pixels.len() + STEP), 0);
        }
        Ok(Self {
            layout,
            order,
            pixels,
            sums: Vec::new(),
        })
    }

    /// Stores the raw pixels of a module of an image.
    fn set_module(&mut self, image: usize, module: usize, bytes: &[u8]) {
        let layout = self.layout;
        for interface in 0..layout.interfaces() {
            for packet in 0..layout.packets() {
                let sender = module * layout.interfaces() + interface;
                let at = self.index(image, sender, packet) * layout.packet_bytes();
                let pixels = &bytes[layout.packet_range(interface, packet)];
                self.pixels[at..at + pixels.len()].copy_from_slice(pixels);
            }
        }
    }

    /// Number of a packet in the order of the pixels.
    #[inline]
    fn index(&self, image: usize, sender: usize, packet: usize) -> usize {
        (image * self.layout.packets() + packet) * self.layout.senders() + sender
    }

    fn sum(&mut self, stop: &StopFlag) -> Result<(), StackError> {
        let bytes = self.layout.packet_bytes();
        let sum = |pixels| {
            let mut sum = Checksum::new();
            sum.add(pixels);
            sum.partial()
        };
        self.sums.reserve_exact(self.pixels.len() / bytes);
        for pixels in self.pixels.chunks(STEP / bytes * bytes) {
            go_on(stop)?;
            self.sums.extend(pixels.chunks_exact(bytes).map(sum));
        }
        Ok(())
    }

    /// How packets make up the images.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The order of the images.
    #[must_use]
    pub fn order(&self) -> StackOrder {
        self.order
    }

    /// Packets of all images.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.sums.len()
    }

    /// Bytes of the images.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pixels.len()
    }

    /// Raw pixels of an image by its place in the stack, row by row, little-endian; `None` beyond the
    /// last one.
    #[must_use]
    pub fn image(&self, place: usize) -> Option<Vec<u8>> {
        let senders = 0..self.layout.senders();
        let packets = senders.flat_map(|sender| {
            let packets = 0..self.layout.packets();
            packets.map(move |packet| PacketPlace(self.index(place, sender, packet)))
        });
        let pixels = |place| self.pixels(place).iter().copied();
        (place < self.order.total()).then(|| packets.flat_map(pixels).collect())
    }

    /// The place of packet `packet` of sender `sender` in a frame. Both are below their limits.
    #[must_use]
    #[inline]
    pub fn place(&self, frame: u64, sender: usize, packet: usize) -> PacketPlace {
        PacketPlace(self.index(self.order.place(frame), sender, packet))
    }

    /// The pixels of a packet.
    #[must_use]
    #[inline]
    pub fn pixels(&self, place: PacketPlace) -> &[u8] {
        let bytes = self.layout.packet_bytes();
        &self.pixels[place.0 * bytes..][..bytes]
    }

    /// The Internet checksum of the pixels of a packet: the sum of their 16-bit words, big-endian, in
    /// ones' complement arithmetic, not inverted.
    #[must_use]
    #[inline]
    pub fn sum_of(&self, place: PacketPlace) -> u16 {
        self.sums[place.0]
    }
}

/// An error once the stop flag is set.
fn go_on(stop: &StopFlag) -> Result<(), StackError> {
    if stop.is_set() {
        return Err(StackError::Stopped);
    }
    Ok(())
}

/// The headers of all senders of a detector.
#[derive(Clone, Debug)]
pub struct Headers {
    senders: Vec<Header>,
    first_frame: u64,
    /// Time from frame to frame.
    period: Ns,
}

impl Headers {
    /// The headers of a configuration.
    #[must_use]
    pub fn new(config: &ImagesConfig, layout: &Layout) -> Self {
        let exposure = (config.exposure_us * 10.0).round() as u32;
        let sender = |sender| {
            let mut header = Header::new(config.detector);
            header.version = config.header_version;
            header.exposure = exposure.into();
            header.module_id = ((sender / layout.interfaces()) as u16).into();
            // Ports one below the other, as the image has them.
            header.row = (sender as u16).into();
            header
        };
        Self {
            senders: (0..layout.senders()).map(sender).collect(),
            first_frame: config.first_frame,
            period: config.period(),
        }
    }

    /// The header of a packet.
    #[must_use]
    #[inline]
    pub fn of(&self, frame: u64, sender: usize, packet: usize) -> Header {
        let mut header = self.senders[sender];
        // 2^48 frames take longer than 2^64 ns.
        let since = u128::from(frame.wrapping_sub(self.first_frame)) * u128::from(self.period.0);
        header.frame_number = frame.into();
        header.packet_number = (packet as u32).into();
        header.timestamp = ((since / 100) as u64).into();
        header
    }
}

const _: () = assert!(
    HEADER_LEN.is_multiple_of(2),
    "the sum of the pixels is at an even offset"
);
