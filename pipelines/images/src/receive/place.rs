//! The side that receives: packets to their places in images.

use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use pollux_pipelines::Moment;
use pollux_pipelines::assemble::{AssembleConfig, Part, Placer, assembler};
use pollux_pmd::endpoint::StreamFrame;
use pollux_pmd::stream::StreamId;
use pollux_pmd::{Cause, CauseError, Tally, TallyView};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use super::config::{DiscardPolicy, ReceiveConfig, ReceiveError};
use super::image::Common;
use super::notes;
use super::reader::ImageReader;
use super::senders::{Senders, Stranger};
use super::stored::{Raw, Stored};
use crate::Pixel;
use crate::convert::{NoteConfig, Notes};
use crate::formats::{HEADER_LEN, Header, Layout, Packet, PacketCauses};

/// Drop causes of a receiver of images.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveCauses {
    /// Packets that belong to no frame of the detector.
    pub packet: PacketCauses,
    /// `unknown-module`: a packet of a module, or on a stream, that is not configured.
    pub unknown: Cause,
    /// `module-conflict`: two modules with one identifier or one stream.
    pub conflict: Cause,
}

impl ReceiveCauses {
    /// Declares the causes; a repeated declaration gives the same ones.
    ///
    /// # Errors
    /// The process has the maximum number of causes.
    pub fn declare() -> Result<Self, CauseError> {
        Ok(Self {
            packet: PacketCauses::declare()?,
            unknown: Cause::declare(
                "unknown-module",
                "a detector packet of a module, or on a stream, that is not configured",
            )?,
            conflict: Cause::declare(
                "module-conflict",
                "two modules of the detector have one identifier or one stream",
            )?,
        })
    }
}

/// Where the pixels of a packet are in the image.
#[derive(Debug)]
pub struct Placement<'a> {
    /// Number of the module.
    pub module: usize,
    /// Number of the packet's first pixel in its module.
    pub first_pixel: usize,
    /// Header of the packet.
    pub header: &'a Header,
    /// What is to be noted of its pixels: to be written, or cleared, as the pixels are.
    pub notes: Notes<'a>,
}

/// Places packets in images, in one receive loop, and counts them. Packets of the same images may be
/// placed by several loops, each with a placer of its own.
pub struct PacketPlacer<P> {
    layout: Layout,
    notes: NoteConfig,
    placer: Placer,
    senders: Arc<Senders>,
    causes: ReceiveCauses,
    tally: Tally,
    /// A payload in one piece, or pixels that are aligned. Words, for the alignment.
    scratch: Box<[u64]>,
    pixels: PhantomData<fn() -> P>,
}

impl<P: Stored> PacketPlacer<P> {
    fn new(
        placer: Placer,
        senders: Arc<Senders>,
        layout: &Layout,
        notes: NoteConfig,
    ) -> Result<Self, ReceiveError> {
        Ok(Self {
            layout: *layout,
            notes,
            placer,
            senders,
            causes: ReceiveCauses::declare()?,
            tally: Tally::new(),
            scratch: vec![0; layout.payload_bytes().div_ceil(8)].into(),
            pixels: PhantomData,
        })
    }

    /// The same for another loop.
    ///
    /// # Errors
    /// Too many loops.
    pub fn for_another_loop(&self) -> Result<Self, ReceiveError> {
        let placer = self.placer.for_another_loop()?;
        Self::new(placer, Arc::clone(&self.senders), &self.layout, self.notes)
    }

    /// The drop causes that are not of the core.
    #[must_use]
    pub fn causes(&self) -> &ReceiveCauses {
        &self.causes
    }

    /// The cause of packets for whose image there was no buffer: the reader is too slow.
    #[must_use]
    pub fn no_buffer(&self) -> Cause {
        self.placer.no_buffer()
    }

    /// What became of the packets, for the ledger: those delivered were placed.
    #[must_use]
    pub fn view(&self) -> TallyView {
        self.tally.view()
    }

    /// Checks the packet in a payload.
    #[inline]
    fn parse<'a>(&self, payload: &'a [u8]) -> Result<Packet<'a>, Cause> {
        Packet::parse(payload, &self.layout).map_err(|error| self.causes.packet.of(error))
    }

    /// The part of a frame that a checked packet is.
    #[inline]
    fn part<'a>(
        &self,
        stream: StreamId,
        header: &'a Header,
        at: Moment,
        data: &'a [u8],
    ) -> Result<Part<'a>, Cause> {
        let sender = match self.senders.find(stream, header) {
            Ok(sender) => sender,
            Err(Stranger::Unknown) => return Err(self.causes.unknown),
            Err(Stranger::Conflict) => return Err(self.causes.conflict),
        };
        Ok(Part {
            key: header.frame_number.get(),
            sender,
            packet: header.packet_number.get() as usize,
            at,
            header: header.as_bytes(),
            data,
        })
    }

    #[inline]
    fn count(&mut self, placed: Result<(), Cause>) -> Result<(), Cause> {
        match placed {
            Ok(()) => self.tally.count_delivered(1),
            Err(cause) => self.tally.count_dropped(cause, 1),
        }
        placed
    }
}

/// The payload of a frame, if it is in one segment.
#[inline]
fn payload(frame: &StreamFrame) -> Option<&[u8]> {
    let start = usize::from(frame.offset);
    frame.mbuf.data().get(start..start + usize::from(frame.len))
}

/// Pixels that are not aligned, copied to where they are.
#[cold]
fn aligned<'a, R: FromBytes + Immutable>(pixels: &[u8], scratch: &'a mut [u64]) -> Option<&'a [R]> {
    let to = scratch.as_mut_bytes().get_mut(..pixels.len())?;
    to.copy_from_slice(pixels);
    <[R]>::ref_from_bytes(to).ok()
}

impl<P: Raw> PacketPlacer<P> {
    /// Copies a packet, a whole UDP payload, to its place.
    ///
    /// # Errors
    /// The cause for which it was not; it has been counted.
    #[inline]
    pub fn place(&mut self, stream: StreamId, payload: &[u8], at: Moment) -> Result<(), Cause> {
        let placed = self.copy(stream, payload, at);
        self.count(placed)
    }

    #[inline]
    fn copy(&mut self, stream: StreamId, payload: &[u8], at: Moment) -> Result<(), Cause> {
        let Packet { header, pixels } = self.parse(payload)?;
        let part = self.part(stream, header, at, pixels)?;
        self.placer.place(&part)
    }

    /// Copies the packet in a frame of a stream to its place, from one segment or several.
    ///
    /// # Errors
    /// As [`place`](Self::place).
    #[inline]
    pub fn receive(&mut self, frame: &StreamFrame, at: Moment) -> Result<(), Cause> {
        if let Some(payload) = payload(frame) {
            return self.place(frame.stream, payload, at);
        }
        let placed = self.gather(frame, at);
        self.count(placed)
    }

    /// Copies a packet from several segments.
    fn gather(&mut self, frame: &StreamFrame, at: Moment) -> Result<(), Cause> {
        let mut header = Header::new_zeroed();
        let (start, len) = (usize::from(frame.offset), usize::from(frame.len));
        frame.mbuf.copy_to(start, header.as_mut_bytes());
        if frame.mbuf.total_len() < start + len {
            return Err(self.causes.packet.size);
        }
        let checked = header.check(len, &self.layout);
        checked.map_err(|error| self.causes.packet.of(error))?;
        let part = self.part(frame.stream, &header, at, &[])?;
        self.placer.place_with(&part, |to| {
            frame.mbuf.copy_to(start + HEADER_LEN, to);
        })
    }
}

impl<P: Pixel + Stored> PacketPlacer<P> {
    /// Has `convert` convert a packet, a whole UDP payload, while it is in the cache: from raw pixels,
    /// of the type that the detector sends, to those of the image at its place. It is called for
    /// packets that are placed, and has to write all pixels, and their notes.
    ///
    /// # Errors
    /// The cause for which the packet was not placed; it has been counted. `packet-size` if the raw
    /// pixels are of another type.
    #[inline]
    pub fn place_with<R: FromBytes + Immutable>(
        &mut self,
        stream: StreamId,
        payload: &[u8],
        at: Moment,
        convert: impl FnOnce(Placement<'_>, &[R], &mut [P]),
    ) -> Result<(), Cause> {
        let placed = self.convert(stream, payload, at, convert);
        self.count(placed)
    }

    #[inline]
    fn convert<R: FromBytes + Immutable>(
        &mut self,
        stream: StreamId,
        payload: &[u8],
        at: Moment,
        convert: impl FnOnce(Placement<'_>, &[R], &mut [P]),
    ) -> Result<(), Cause> {
        let Packet { header, pixels } = self.parse(payload)?;
        let part = self.part(stream, header, at, &[])?;
        if !self.layout.has_raw_pixels_of(size_of::<R>()) {
            return Err(self.causes.packet.size);
        }
        let interfaces = self.layout.interfaces();
        let first = part.sender % interfaces * self.layout.packets() + part.packet;
        let module = part.sender / interfaces;
        let first_pixel = first * self.layout.packet_pixels();
        let config = self.notes;
        let pixels = match <[R]>::ref_from_bytes(pixels) {
            Ok(pixels) => pixels,
            Err(_) => aligned(pixels, &mut self.scratch).ok_or(self.causes.packet.size)?,
        };
        self.placer.place_noted(&part, |to, notes| {
            let placement = Placement {
                module,
                first_pixel,
                header,
                notes: notes::of_packet(config, notes),
            };
            // A part begins at a pixel of a frame, which begins at a cache line.
            if let Ok(to) = <[P]>::mut_from_bytes(to) {
                convert(placement, pixels, to);
            }
        })
    }

    /// Converts the packet in a frame of a stream, as [`place_with`](Self::place_with) does. One of
    /// several segments is copied into one piece first.
    ///
    /// # Errors
    /// As [`place_with`](Self::place_with).
    #[inline]
    pub fn receive_with<R: FromBytes + Immutable>(
        &mut self,
        frame: &StreamFrame,
        at: Moment,
        convert: impl FnOnce(Placement<'_>, &[R], &mut [P]),
    ) -> Result<(), Cause> {
        if let Some(payload) = payload(frame) {
            return self.place_with(frame.stream, payload, at, convert);
        }
        let mut scratch = mem::take(&mut self.scratch);
        let piece = scratch.as_mut_bytes().get_mut(..usize::from(frame.len));
        let copied = piece.map_or(0, |piece| {
            frame.mbuf.copy_to(usize::from(frame.offset), piece)
        });
        // Pixels behind a header of 48 bytes are aligned here. A payload that is longer than a packet,
        // of which nothing was copied, has a wrong size as it has here.
        let placed = self.place_with(frame.stream, &scratch.as_bytes()[..copied], at, convert);
        self.scratch = scratch;
        placed
    }
}

/// Makes a receiver of images with pixels of type `P`: its receiving side, for one loop or several, and
/// its reader.
///
/// # Errors
/// A route that does not fit the layout, a raw type of another number of bits than the detector sends,
/// numbers out of their limits, or memory that cannot be had.
pub fn images<P: Stored>(
    config: &ReceiveConfig,
) -> Result<(PacketPlacer<P>, ImageReader<P>), ReceiveError> {
    let layout = config.layout;
    if P::IS_RAW && !layout.has_raw_pixels_of(size_of::<P>()) {
        let (stored, sent) = (size_of::<P>() * 8, layout.bits());
        return Err(ReceiveError::Bits { stored, sent });
    }
    let packet_bytes = if P::IS_RAW {
        layout.packet_bytes()
    } else {
        layout.packet_pixels() * size_of::<P>()
    };
    let notes = if P::IS_RAW {
        NoteConfig::default()
    } else {
        config.notes
    };
    let missing = P::MISSING;
    let missing = missing.as_bytes();
    let senders = Arc::new(Senders::new(&layout, &config.route)?);
    let assemble = AssembleConfig {
        // Half of the images is under way, and half with their consumers.
        buffers: (config.buffers / 2).max(2),
        spares: config.buffers - (config.buffers / 2).max(2),
        senders: layout.senders(),
        packets: layout.packets(),
        packet_bytes,
        header_bytes: HEADER_LEN,
        note_bytes: notes.bytes(layout.packet_pixels()),
        fill: std::array::from_fn(|n| missing[n % missing.len()]),
        timeout: config.timeout,
        jump: config.jump,
        horizon: config.horizon,
        memory: config.memory,
    };
    let pixels = assemble.frame_bytes() / size_of::<P>();
    let (placer, reader) = assembler(assemble)?;
    let empty = match config.policy {
        DiscardPolicy::Nothing => vec![P::MISSING; pixels].into(),
        DiscardPolicy::Empty | DiscardPolicy::Partial => Box::default(),
    };
    let common = Arc::new(Common {
        layout,
        empty,
        notes,
    });
    let placer = PacketPlacer::new(placer, Arc::clone(&senders), &layout, notes)?;
    Ok((placer, ImageReader::new(reader, senders, common, config)))
}
