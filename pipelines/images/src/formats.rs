//! UDP packets of SLS/PSI detectors (JUNGFRAU, EIGER, MOENCH), and the geometry of their modules
//! (docs/formats/sls.md).
//!
//! Layout of the header after the detectors' own software (slsDetectorPackage, `docs/src/udpheader.rst`
//! and `sls_detector_defs.h`), numbers and sizes of packets after its receiver (`GeneralData.h`). One
//! packet is one UDP payload: a header of 48 bytes and a fixed number of bytes of pixels, all
//! little-endian.
//!
//! ```
//! use pollux_images::formats::{Header, Layout, Packet, write_packet};
//!
//! let layout = Layout::jungfrau(1, 1)?;
//! let pixels = vec![7; layout.packet_bytes()];
//! let mut header = Header::new(layout.detector());
//! header.frame_number = 42.into();
//! header.packet_number = 127.into();
//!
//! let mut payload = vec![0; layout.payload_bytes()];
//! assert_eq!(write_packet(&header, &pixels, &mut payload)?, 8240);
//! let packet = Packet::parse(&payload, &layout)?;
//! assert_eq!((packet.header.frame_number.get(), packet.pixels), (42, &pixels[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod causes;
mod header;
mod layout;
#[cfg(test)]
mod tests;

pub use causes::PacketCauses;
pub use header::{Header, Packet, PacketError, WriteError, write_packet};
pub use layout::{Detector, EigerBits, EigerLink, HEADER_LEN, Layout, LayoutError};
