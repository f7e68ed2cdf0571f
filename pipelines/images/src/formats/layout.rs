//! Geometry: how the modules of a detector, and the packets of a module, make up an image.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Shape;

/// Length of a packet's header in bytes.
pub const HEADER_LEN: usize = 48;

/// Most modules of a detector.
const MAX_MODULES: usize = 1024;

/// Type of a detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Detector {
    /// EIGER: counts photons.
    Eiger,
    /// JUNGFRAU: integrates charge with three gains.
    Jungfrau,
    /// MOENCH: integrates charge, with small pixels.
    Moench,
}

impl Detector {
    /// The type in packet headers.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Self::Eiger => 1,
            Self::Jungfrau => 3,
            Self::Moench => 5,
        }
    }
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eiger => "EIGER (1)",
            Self::Jungfrau => "JUNGFRAU (3)",
            Self::Moench => "MOENCH (5)",
        })
    }
}

/// Bits of a pixel of EIGER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EigerBits {
    /// 4 bits: two pixels a byte, the first one in the low bits.
    Four,
    /// 8 bits.
    Eight,
    /// 16 bits.
    Sixteen,
    /// 32 bits.
    ThirtyTwo,
}

/// Network of EIGER, which sets the size of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EigerLink {
    /// 1 Gbit/s: 1024 B of pixels a packet.
    OneGigabit,
    /// 10 Gbit/s: 4096 B of pixels a packet.
    TenGigabit,
}

/// Why a layout is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The number of modules is wrong.
    #[error("{0} modules: a detector has 1 to {MAX_MODULES}")]
    Modules(usize),
    /// The number of UDP interfaces is wrong.
    #[error("{0} UDP interfaces a module: it has 1 or 2")]
    Interfaces(usize),
}

/// How packets make up the image of a detector.
///
/// The image is the modules one below the other, each `module` rows high; the packets of a module
/// follow each other without gaps, row by row. So the pixels of each packet are contiguous, in the
/// packet as in the image. A *sender* is one UDP interface of one module; with two interfaces, each
/// sends one half of the module's rows, and numbers its packets from 0.
///
/// | detector | module | pixel | packet | packets a module |
/// | --- | --- | --- | --- | --- |
/// | JUNGFRAU | 512 x 1024 | 16 bits | 8192 B, 4 rows | 128, from 1 or 2 interfaces |
/// | MOENCH | 400 x 400 | 16 bits | 6400 B, 8 rows | 50, from 1 or 2 interfaces |
/// | EIGER | 256 x 512 (one port) | 4, 8, 16, 32 bits | 4096 B (10 Gbit/s) or 1024 B (1 Gbit/s) | 16 to 512 |
///
/// A half module of EIGER has two ports side by side, each with an identifier and a column of its own:
/// each port is a module here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    detector: Detector,
    modules: usize,
    interfaces: usize,
    module: Shape,
    bits: usize,
    packet_bytes: usize,
    /// Packets of a frame from each sender.
    packets: usize,
}

impl Layout {
    /// A detector of JUNGFRAU modules, each with one or two UDP interfaces in use.
    ///
    /// # Errors
    /// A wrong number of modules or interfaces.
    pub fn jungfrau(modules: usize, interfaces: usize) -> Result<Self, LayoutError> {
        let shape = Shape::JUNGFRAU_MODULE;
        Self::new(Detector::Jungfrau, modules, interfaces, shape, 16, 8192)
    }

    /// A detector of MOENCH modules, each with one or two UDP interfaces in use.
    ///
    /// # Errors
    /// A wrong number of modules or interfaces.
    pub fn moench(modules: usize, interfaces: usize) -> Result<Self, LayoutError> {
        let shape = Shape {
            rows: 400,
            columns: 400,
        };
        Self::new(Detector::Moench, modules, interfaces, shape, 16, 6400)
    }

    /// A detector of EIGER half modules, of two ports each.
    ///
    /// # Errors
    /// A wrong number of ports.
    pub fn eiger(ports: usize, bits: EigerBits, link: EigerLink) -> Result<Self, LayoutError> {
        let shape = Shape {
            rows: 256,
            columns: 512,
        };
        let bits = match bits {
            EigerBits::Four => 4,
            EigerBits::Eight => 8,
            EigerBits::Sixteen => 16,
            EigerBits::ThirtyTwo => 32,
        };
        let packet_bytes = match link {
            EigerLink::OneGigabit => 1024,
            EigerLink::TenGigabit => 4096,
        };
        Self::new(Detector::Eiger, ports, 1, shape, bits, packet_bytes)
    }

    fn new(
        detector: Detector,
        modules: usize,
        interfaces: usize,
        module: Shape,
        bits: usize,
        packet_bytes: usize,
    ) -> Result<Self, LayoutError> {
        if !(1..=MAX_MODULES).contains(&modules) {
            return Err(LayoutError::Modules(modules));
        }
        if !(1..=2).contains(&interfaces) {
            return Err(LayoutError::Interfaces(interfaces));
        }
        let module_bytes = module.pixels() * bits / 8;
        Ok(Self {
            detector,
            modules,
            interfaces,
            module,
            bits,
            packet_bytes,
            packets: module_bytes / packet_bytes / interfaces,
        })
    }

    /// Type of the detector.
    #[must_use]
    #[inline]
    pub const fn detector(&self) -> Detector {
        self.detector
    }

    /// Number of modules.
    #[must_use]
    #[inline]
    pub const fn modules(&self) -> usize {
        self.modules
    }

    /// UDP interfaces of each module.
    #[must_use]
    #[inline]
    pub const fn interfaces(&self) -> usize {
        self.interfaces
    }

    /// Senders of packets: the interfaces of all modules. The sender of an interface is
    /// `module * interfaces + interface`.
    #[must_use]
    #[inline]
    pub const fn senders(&self) -> usize {
        self.modules * self.interfaces
    }

    /// Packets of a frame from each sender.
    #[must_use]
    #[inline]
    pub const fn packets(&self) -> usize {
        self.packets
    }

    /// Packets of a frame from each module.
    #[must_use]
    #[inline]
    pub const fn module_packets(&self) -> usize {
        self.packets * self.interfaces
    }

    /// Rows and columns of a module.
    #[must_use]
    #[inline]
    pub const fn module(&self) -> Shape {
        self.module
    }

    /// Rows and columns of the image.
    #[must_use]
    #[inline]
    pub const fn image(&self) -> Shape {
        Shape {
            rows: self.modules * self.module.rows,
            columns: self.module.columns,
        }
    }

    /// Bits of a raw pixel.
    #[must_use]
    #[inline]
    pub const fn bits(&self) -> usize {
        self.bits
    }

    /// Whether raw pixels are stored in numbers of so many bytes: of as many bits as the detector
    /// sends, or two of 4 bits in a byte.
    #[must_use]
    #[inline]
    pub const fn has_raw_pixels_of(&self, bytes: usize) -> bool {
        bytes == self.bits.div_ceil(8)
    }

    /// Bytes of pixels in a packet.
    #[must_use]
    #[inline]
    pub const fn packet_bytes(&self) -> usize {
        self.packet_bytes
    }

    /// Bytes of a packet: the length of its UDP payload.
    #[must_use]
    #[inline]
    pub const fn payload_bytes(&self) -> usize {
        HEADER_LEN + self.packet_bytes
    }

    /// Pixels in a packet.
    #[must_use]
    #[inline]
    pub const fn packet_pixels(&self) -> usize {
        self.packet_bytes * 8 / self.bits
    }

    /// Bytes of a module's raw pixels.
    #[must_use]
    #[inline]
    pub const fn module_bytes(&self) -> usize {
        self.module_packets() * self.packet_bytes
    }

    /// Bytes of an image's raw pixels.
    #[must_use]
    #[inline]
    pub const fn image_bytes(&self) -> usize {
        self.modules * self.module_bytes()
    }

    /// The bytes of a packet among those of its module's raw pixels. Both numbers are below their
    /// limits.
    #[must_use]
    #[inline]
    pub const fn packet_range(&self, interface: usize, packet: usize) -> Range<usize> {
        let start = (interface * self.packets + packet) * self.packet_bytes;
        start..start + self.packet_bytes
    }

    /// The rows of a module that have pixels of its packets `packets`, counted over both interfaces.
    #[must_use]
    #[inline]
    pub const fn packet_rows(&self, packets: Range<usize>) -> Range<usize> {
        let (pixels, columns) = (self.packet_pixels(), self.module.columns);
        packets.start * pixels / columns..(packets.end * pixels).div_ceil(columns)
    }
}
