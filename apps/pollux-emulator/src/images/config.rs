//! Configuration of an emulated image detector: modules, frames, contents of the images, addresses
//! and faults.

use std::net::{Ipv4Addr, SocketAddrV4};

use pollux_images::formats::{Detector, EigerBits, EigerLink, Header, Layout, LayoutError};
use pollux_mempool::time::Ns;
use pollux_pmd::net::{MacAddr, UdpEndpoint};
use serde::{Deserialize, Serialize};

use super::order::StackOrder;
use crate::config::{ConfigError, Faults, in_range, is_host, text};

/// Most modules of a detector: twice those of a JUNGFRAU 16M.
pub const MAX_MODULES: u16 = 64;
/// Most images in the stack, and most dark images in it.
pub const MAX_STACK: u32 = 65_536;
/// Most bytes of the images of a stack: 64 GiB.
pub const MAX_STACK_BYTES: u64 = 64 << 30;
/// Highest frame rate in Hz, above that of any of the detectors.
pub const MAX_RATE: f64 = 100_000.0;
/// Highest frame number: 2^48 - 1, the range of the detectors' counters.
pub const MAX_FRAME_NUMBER: u64 = (1 << 48) - 1;
/// From frame to frame where the rate is 0, which is "as fast as possible": detector time then
/// passes as at 2 kHz.
const UNPACED_PERIOD: Ns = Ns(500_000);
/// Bit rate of a data interface of the detectors.
const LINK_GIGABITS: u64 = 10;
/// Bytes of a packet on the wire beside its payload: preamble, Ethernet, IPv4 and UDP headers, frame
/// check sequence, gap.
const WIRE_OVERHEAD: u64 = 66;

/// All that determines what an emulated detector sends. Equal configurations send equal bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImagesConfig {
    /// Seed of everything random: images, calibration and faults. 0 to 2^63 - 1.
    pub seed: u64,
    /// Type of the detector. EIGER sends 16 bits a pixel on a 10 Gb/s network.
    pub detector: Detector,
    /// Version of the packet header, 1 or 2.
    pub header_version: u8,
    /// Number of modules, 1 to [`MAX_MODULES`]; of EIGER, each port is a module.
    pub modules: u16,
    /// UDP interfaces of a module, 1 or 2; EIGER has 1.
    pub interfaces: u16,
    /// Frames to send; 0: until stopped.
    pub frames: u64,
    /// Frames a second, up to [`MAX_RATE`]; 0: as fast as possible.
    pub rate: f64,
    /// Number of the first frame. Detectors count from 1.
    pub first_frame: u64,
    /// Exposure time in microseconds, as it is written to the header.
    pub exposure_us: f64,
    /// Images in the stack, which is computed once and sent again and again.
    pub stack: u32,
    /// Every frame whose number is `dark_every - 1` modulo `dark_every` is taken while the chopper
    /// blocks the beam; 0: none.
    pub dark_every: u32,
    /// Contents of synthetic images.
    pub pattern: Pattern,
    /// Addresses of the detector and of the receiver.
    pub addresses: Endpoints,
    /// Probabilities of the faults of a packet.
    pub faults: Faults,
}

/// Contents of synthetic images.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pattern {
    /// Energy of a photon in keV. The gains in ADU/keV are those of the module.
    pub photon_kev: f64,
    /// Mean number of photons a pixel of the diffuse background.
    pub background: f64,
    /// Fraction of the images with Bragg peaks.
    pub hit_rate: f64,
    /// Number of Bragg peaks in such an image.
    pub peaks: u32,
    /// Mean number of photons of a Bragg peak. The distribution is exponential.
    pub peak_photons: f64,
    /// Radius of a Bragg peak: standard deviation in pixels.
    pub peak_sigma: f64,
    /// Number of powder rings.
    pub rings: u32,
    /// Mean number of photons a pixel on the crest of the innermost ring.
    pub ring_photons: f64,
    /// Width of a ring: standard deviation in pixels.
    pub ring_sigma: f64,
    /// Bad pixels of a module.
    pub bad_pixels: u32,
}

/// Addresses of the detector and of the receiver. Interface i of module m sends from
/// `src_port + m * interfaces + i` to `dst_port + m * interfaces + i`, as the ports of an slsReceiver
/// are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Endpoints {
    /// MAC address of the detector; where none is given, that of the interface, or
    /// 02:00:00:00:00:02.
    #[serde(with = "text")]
    pub src_mac: Option<MacAddr>,
    /// IP address of the detector; where none is given, 198.18.0.2 in frames, and the kernel's
    /// choice in sockets.
    pub src_ip: Option<Ipv4Addr>,
    /// Source port of the first interface.
    pub src_port: u16,
    /// MAC address of the receiver; where none is given, it is resolved by ARP on an interface,
    /// and is 02:00:00:00:00:01 elsewhere.
    #[serde(with = "text")]
    pub dst_mac: Option<MacAddr>,
    /// IP address of the receiver.
    pub dst_ip: Ipv4Addr,
    /// Destination port of the first interface.
    pub dst_port: u16,
}

impl Default for ImagesConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            detector: Detector::Jungfrau,
            header_version: Header::VERSION,
            modules: 1,
            interfaces: 1,
            frames: 1000,
            rate: 100.0,
            first_frame: 1,
            exposure_us: 10.0,
            stack: 10,
            dark_every: 0,
            pattern: Pattern::default(),
            addresses: Endpoints::default(),
            faults: Faults::default(),
        }
    }
}

impl Default for Pattern {
    fn default() -> Self {
        Self {
            photon_kev: 12.4,
            background: 0.05,
            hit_rate: 1.0,
            peaks: 40,
            peak_photons: 500.0,
            peak_sigma: 0.9,
            rings: 0,
            ring_photons: 1.0,
            ring_sigma: 3.0,
            bad_pixels: 100,
        }
    }
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            src_mac: None,
            src_ip: None,
            src_port: 32_410,
            dst_mac: None,
            dst_ip: Ipv4Addr::new(198, 18, 0, 1),
            dst_port: 50_001,
        }
    }
}

impl Endpoints {
    /// The detector, with the port of the first interface.
    #[must_use]
    pub fn detector(&self) -> UdpEndpoint {
        let ip = self.src_ip.unwrap_or(Ipv4Addr::new(198, 18, 0, 2));
        UdpEndpoint {
            mac: self.src_mac.unwrap_or(MacAddr([0x02, 0, 0, 0, 0, 0x02])),
            socket: SocketAddrV4::new(ip, self.src_port),
        }
    }

    /// The receiver, with the port for the first interface.
    #[must_use]
    pub fn receiver(&self) -> UdpEndpoint {
        UdpEndpoint {
            mac: self.dst_mac.unwrap_or(MacAddr([0x02, 0, 0, 0, 0, 0x01])),
            socket: SocketAddrV4::new(self.dst_ip, self.dst_port),
        }
    }

    fn validate(&self, senders: u16) -> Result<(), ConfigError> {
        let (src, dst) = (self.detector(), self.receiver());
        for (key, mac) in [("src_mac", src.mac), ("dst_mac", dst.mac)] {
            in_range(key, mac, mac.is_unicast(), "a unicast address")?;
        }
        for (key, ip) in [("src_ip", *src.socket.ip()), ("dst_ip", *dst.socket.ip())] {
            in_range(key, ip, is_host(ip), "the address of one host")?;
        }
        for (key, port) in [("src_port", self.src_port), ("dst_port", self.dst_port)] {
            let valid = port > 0 && port.checked_add(senders).is_some();
            let range = "above 0, with a port for every interface of every module below 65536";
            in_range(key, port, valid, range)?;
        }
        Ok(())
    }
}

impl Pattern {
    fn validate(&self) -> Result<(), ConfigError> {
        let within = |key, value: f64, range: std::ops::RangeInclusive<f64>, expected| {
            in_range(key, value, range.contains(&value), expected)
        };
        let photons = "0 to 10000 photons a pixel";
        within("photon_kev", self.photon_kev, 1.0..=100.0, "1 to 100 keV")?;
        within("background", self.background, 0.0..=1e4, photons)?;
        within("hit_rate", self.hit_rate, 0.0..=1.0, "a fraction, 0 to 1")?;
        let expected = "0 to 1000000 photons";
        within("peak_photons", self.peak_photons, 0.0..=1e6, expected)?;
        let width = "0.3 to 50 pixels";
        within("peak_sigma", self.peak_sigma, 0.3..=50.0, width)?;
        within("ring_photons", self.ring_photons, 0.0..=1e4, photons)?;
        within("ring_sigma", self.ring_sigma, 0.3..=50.0, width)?;
        let (peaks, rings) = (self.peaks, self.rings);
        in_range("peaks", peaks, peaks <= 100_000, "0 to 100000")?;
        in_range("rings", rings, rings <= 50, "0 to 50")
    }
}

impl ImagesConfig {
    /// Checks every value against its range.
    ///
    /// # Errors
    /// Names the first value outside, and the range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let seed_range = "0 to 2^63 - 1";
        in_range(
            "seed",
            self.seed,
            i64::try_from(self.seed).is_ok(),
            seed_range,
        )?;
        let (modules, version) = (self.modules, self.header_version);
        let valid = (1..=MAX_MODULES).contains(&modules);
        in_range("modules", modules, valid, "1 to 64")?;
        let layout = self.layout()?;
        let valid = (1..=Header::VERSION).contains(&version);
        in_range("header_version", version, valid, "1 or 2")?;
        let last = self.first_frame.saturating_add(self.frames);
        let (first, valid) = (self.first_frame, last <= MAX_FRAME_NUMBER);
        in_range(
            "first_frame",
            first,
            valid,
            "such that the last frame number is below 2^48",
        )?;
        let expected = "0 (as fast as possible), or 0.001 to 100000 frames a second";
        let valid = self.rate == 0.0 || (0.001..=MAX_RATE).contains(&self.rate);
        in_range("rate", self.rate, valid, expected)?;
        let valid = (0.0..=4e8).contains(&self.exposure_us);
        in_range("exposure_us", self.exposure_us, valid, "0 to 400000000")?;
        let valid = (1..=MAX_STACK).contains(&self.stack);
        in_range("stack", self.stack, valid, "1 to 65536 images")?;
        let images = StackOrder::new(self.stack, self.dark_every).total();
        let valid = images as u64 * layout.image_bytes() as u64 <= MAX_STACK_BYTES;
        let expected = "such that the images take at most 64 GiB";
        in_range("stack", self.stack, valid, expected)?;
        let (every, valid) = (self.dark_every, self.dark_every != 1);
        let expected = "0 (no dark frames), or at least 2, so that there are other frames";
        in_range("dark_every", every, valid, expected)?;
        self.pattern.validate()?;
        let bad = self.pattern.bad_pixels;
        let valid = (bad as usize) < layout.module().pixels();
        in_range("bad_pixels", bad, valid, "fewer than a module has pixels")?;
        self.addresses.validate(layout.senders() as u16)?;
        self.faults.validate()
    }

    /// How packets make up the images. The senders of the layout send from and to UDP ports of their
    /// own.
    ///
    /// # Errors
    /// A number of interfaces that the detector does not have.
    pub fn layout(&self) -> Result<Layout, ConfigError> {
        let (modules, interfaces) = (usize::from(self.modules), usize::from(self.interfaces));
        let layout = match self.detector {
            Detector::Eiger if interfaces == 1 => {
                Layout::eiger(modules, EigerBits::Sixteen, EigerLink::TenGigabit)
            }
            Detector::Jungfrau => Layout::jungfrau(modules, interfaces),
            Detector::Moench => Layout::moench(modules, interfaces),
            _ => Err(LayoutError::Interfaces(interfaces)),
        };
        layout.map_err(|_| ConfigError::Range {
            key: "interfaces",
            value: interfaces.to_string(),
            expected: "1 or 2 for JUNGFRAU and MOENCH, and 1 for EIGER",
        })
    }

    /// Time from frame to frame.
    #[must_use]
    pub fn period(&self) -> Ns {
        if self.rate == 0.0 {
            UNPACED_PERIOD
        } else {
            Ns((1e9 / self.rate).round() as u64)
        }
    }

    /// Time from packet to packet of a sender: that of a packet on its 10 Gb/s link, or shorter where
    /// the packets of a frame would take longer than the frame.
    #[must_use]
    pub fn packet_gap(&self, layout: &Layout) -> Ns {
        let link = (layout.payload_bytes() as u64 + WIRE_OVERHEAD) * 8 / LINK_GIGABITS;
        Ns(link.min(self.period().0 / layout.packets() as u64))
    }

    /// Frames of a run that is not stopped.
    #[must_use]
    pub fn frame_limit(&self) -> u64 {
        match self.frames {
            0 => MAX_FRAME_NUMBER - self.first_frame,
            frames => frames,
        }
    }

    /// Both endpoints of a sender's packets.
    #[must_use]
    pub fn endpoints(&self, sender: u16) -> (UdpEndpoint, UdpEndpoint) {
        let of_sender = |mut end: UdpEndpoint| {
            // `validate` has checked that every sender has a port.
            end.socket.set_port(end.socket.port().wrapping_add(sender));
            end
        };
        let addresses = &self.addresses;
        (
            of_sender(addresses.detector()),
            of_sender(addresses.receiver()),
        )
    }
}
