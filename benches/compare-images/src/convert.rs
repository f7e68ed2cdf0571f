//! Rows of the conversion: alone, and with the veto's count and CSR in one pass over the packets.

use std::hint::black_box;
use std::rc::Rc;

use anyhow::{Result, bail, ensure};
use pollux_images::Pixel;
use pollux_images::calibration::{Calibration, Gain, Reading};
use pollux_images::convert::{Converter, Output};
use pollux_images::formats::Layout;
use pollux_images::sparse::{Compressed, CsrCompressor, CsrImage};
use pollux_images::veto::{Veto, VetoConfig};
use pollux_pipelines::simd::Simd;
use zerocopy::IntoBytes as _;

use crate::data::{Data, SHAPE};
use crate::peer::{Listed, Peer};
use crate::row::{Facts, Row, Turn, timed};

/// Photons of a pixel that the veto counts and CSR keeps.
const THRESHOLD: f32 = 10.0;

/// Photons by which the value of a pixel may be off, as `pollux_images::convert` has it; and what the
/// largest values may be off relative to themselves.
const TOLERANCE: (f64, f64) = (0.001, 1e-6);

/// Number of pixels in a packet.
fn packet() -> Result<usize> {
    Ok(Layout::jungfrau(1, 1)?.packet_pixels())
}

/// Images of both sides.
struct Images {
    data: Rc<Data>,
    ours: Vec<Vec<i16>>,
    peers: Vec<Vec<i16>>,
}

impl Images {
    fn new(data: &Rc<Data>) -> Self {
        let images = || vec![vec![0; SHAPE.pixels()]; data.frames.len()];
        Self {
            data: Rc::clone(data),
            ours: images(),
            peers: images(),
        }
    }

    /// Bytes of raw data.
    fn bytes(&self) -> usize {
        self.data.frames.len() * SHAPE.pixels() * size_of::<u16>()
    }

    /// Both images are the rounded photons, and codes are equal.
    fn check(&self) -> Result<()> {
        let images = self
            .data
            .frames
            .iter()
            .zip(self.ours.iter().zip(&self.peers));
        for (raw, (ours, peers)) in images {
            for pixel in 0..raw.len() {
                check_pixel(
                    &self.data.calibration,
                    raw[pixel],
                    pixel,
                    ours[pixel],
                    peers[pixel],
                )?;
            }
        }
        Ok(())
    }
}

fn check_pixel(
    calibration: &Calibration,
    raw: u16,
    pixel: usize,
    ours: i16,
    peer: i16,
) -> Result<()> {
    let is = |photons: i16| match Reading::from(raw) {
        _ if calibration.bad()[pixel] => photons == i16::BAD,
        Reading::Invalid => photons == i16::BAD,
        Reading::Saturated => photons == i16::SATURATED,
        Reading::Adu(gain, adu) => {
            let of =
                |maps: fn(&Calibration, Gain) -> &[f32]| f64::from(maps(calibration, gain)[pixel]);
            let exact = (f64::from(adu) - of(Calibration::pedestals)) / of(Calibration::gains);
            let within = exact.clamp(-f64::from(i16::MAX), f64::from(i16::MAX));
            let apart = (f64::from(photons) - within).abs();
            apart <= 0.5 + TOLERANCE.0 + TOLERANCE.1 * exact.abs()
        }
    };
    ensure!(
        is(ours) && is(peer),
        "pixel {pixel}, raw {raw:#06x}: {ours} here and {peer} in C are not both its photons"
    );
    Ok(())
}

/// Conversion alone.
pub(crate) struct Convert {
    name: &'static str,
    images: Images,
    converter: Converter,
    packet: usize,
    peer: Peer,
}

impl Convert {
    pub(crate) fn new(name: &'static str, data: &Rc<Data>, peer: Peer) -> Result<Self> {
        Ok(Self {
            name,
            images: Images::new(data),
            converter: Converter::new(&data.calibration),
            packet: packet()?,
            peer,
        })
    }
}

impl Row for Convert {
    fn facts(&self) -> Facts {
        Facts {
            name: self.name,
            unit: "GB/s of raw data",
            peer_name: Some(self.peer.name.clone()),
        }
    }

    fn ours(&mut self) -> Result<Turn> {
        let bytes = self.images.bytes();
        timed(bytes, || {
            for (raw, out) in self.images.data.frames.iter().zip(&mut self.images.ours) {
                let packets = raw.chunks(self.packet).zip(out.chunks_mut(self.packet));
                for (n, (raw, out)) in packets.enumerate() {
                    self.converter
                        .convert(n * self.packet, raw.as_bytes(), out)?;
                }
            }
            Ok(())
        })
    }

    fn peer(&mut self) -> Result<Turn> {
        let bytes = self.images.bytes();
        timed(bytes, || {
            for (raw, out) in self.images.data.frames.iter().zip(&mut self.images.peers) {
                self.peer.convert(raw, out)?;
            }
            Ok(())
        })
    }

    fn check(&mut self) -> Result<()> {
        self.ours()?;
        self.peer()?;
        self.images.check()
    }
}

/// Conversion, count and CSR of one image.
struct Fused {
    converter: Converter,
    packet: usize,
    veto: Veto,
    csr: CsrCompressor<i16>,
    marks: Vec<u64>,
    /// Pixels that are masked.
    bad: u32,
}

impl Fused {
    /// Converts packet by packet, and then lists the pixels by their marks.
    fn image(&mut self, raw: &[u16], out: &mut [i16]) -> Result<&CsrImage<i16, u16>> {
        let packets = raw.chunks(self.packet).zip(out.chunks_mut(self.packet));
        let marks = self.marks.chunks_mut(self.packet / 64);
        let (mut first, mut found) = (0, 0);
        for ((raw, out), marks) in packets.zip(marks) {
            let (raw, least) = (raw.as_bytes(), self.veto.min_photons());
            found += self
                .converter
                .convert_and_mark(first, raw, least, out, marks)?;
            first += self.packet;
        }
        ensure!(self.veto.accepts(found), "no pixel has {THRESHOLD} photons");
        match self.csr.compress_masked(out, &self.marks, self.bad)? {
            Compressed::Sparse(image) => Ok(image),
            Compressed::Dense => bail!("{found} pixels have {THRESHOLD} photons: not sparse"),
        }
    }
}

/// Conversion with the veto's count, and CSR.
pub(crate) struct ConvertVetoCsr {
    name: &'static str,
    images: Images,
    fused: Fused,
    peer: Peer,
    listed: Listed,
}

impl ConvertVetoCsr {
    pub(crate) fn new(name: &'static str, data: &Rc<Data>, peer: Peer) -> Result<Self> {
        let bad = data.calibration.bad().iter().filter(|&&bad| bad).count();
        let veto = VetoConfig {
            min_photons: THRESHOLD,
            min_pixels: 1,
        };
        Ok(Self {
            name,
            images: Images::new(data),
            fused: Fused {
                converter: Converter::new(&data.calibration),
                packet: packet()?,
                veto: Veto::new(veto)?,
                csr: CsrCompressor::new(Simd::best(), SHAPE, i16::threshold(THRESHOLD))?,
                marks: vec![0; SHAPE.pixels() / 64],
                bad: bad as u32,
            },
            peer,
            listed: Listed::new(SHAPE),
        })
    }
}

/// Whether the lists are the pixels of an image from the threshold on.
fn check_lists(image: &[i16], values: &[i16], columns: &[u32], starts: &[u32]) -> Result<()> {
    let threshold = i16::threshold(THRESHOLD);
    let mut listed = values.iter().zip(columns);
    for (row, pixels) in image.chunks(SHAPE.columns).enumerate() {
        let mut count = 0;
        for (column, pixel) in (0..).zip(pixels).filter(|&(_, &pixel)| pixel >= threshold) {
            let is_next = listed.next() == Some((pixel, &column));
            ensure!(is_next, "row {row}, column {column} is not listed");
            count += 1;
        }
        let counted = starts[row + 1] - starts[row];
        ensure!(
            counted == count,
            "row {row} has {count} pixels, not {counted}"
        );
    }
    ensure!(listed.next().is_none(), "more is listed than the image has");
    Ok(())
}

impl Row for ConvertVetoCsr {
    fn facts(&self) -> Facts {
        Facts {
            name: self.name,
            unit: "GB/s of raw data",
            peer_name: Some(self.peer.name.clone()),
        }
    }

    fn ours(&mut self) -> Result<Turn> {
        let bytes = self.images.bytes();
        timed(bytes, || {
            for (raw, out) in self.images.data.frames.iter().zip(&mut self.images.ours) {
                black_box(self.fused.image(raw, out)?);
            }
            Ok(())
        })
    }

    fn peer(&mut self) -> Result<Turn> {
        let (bytes, threshold) = (self.images.bytes(), i16::threshold(THRESHOLD));
        let listed = &mut self.listed;
        timed(bytes, || {
            for (raw, out) in self.images.data.frames.iter().zip(&mut self.images.peers) {
                black_box(self.peer.convert_veto_csr(raw, threshold, out, listed)?);
            }
            Ok(())
        })
    }

    fn check(&mut self) -> Result<()> {
        let images = &mut self.images;
        let images_of_both = images.ours.iter_mut().zip(&mut images.peers);
        for (raw, (ours, peers)) in images.data.frames.iter().zip(images_of_both) {
            let image = self.fused.image(raw, ours)?;
            let columns: Vec<u32> = image.columns().iter().copied().map(u32::from).collect();
            check_lists(ours, image.values(), &columns, image.row_offsets())?;
            let (threshold, listed) = (i16::threshold(THRESHOLD), &mut self.listed);
            let found = self.peer.convert_veto_csr(raw, threshold, peers, listed)?;
            let (values, columns) = (&listed.values[..found], &listed.columns[..found]);
            check_lists(peers, values, columns, &listed.starts)?;
        }
        self.images.check()
    }
}
