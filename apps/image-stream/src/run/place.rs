//! Packets to their places in images: raw, or converted to photons on the way.

use std::sync::Arc;

use anyhow::Result;
use arc_swap::ArcSwap;
use pollux_images::convert::Converter;
use pollux_images::receive::{PacketPlacer, Placement, Raw};
use pollux_images::stages::StagePixel;
use pollux_pipelines::Moment;
use pollux_pmd::endpoint::StreamFrame;
use pollux_pmd::stream::StreamId;
use pollux_pmd::{Cause, TallyView};
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::little_endian::U16;

use crate::config::DarkConfig;

/// Places the packets of one receive loop.
pub trait Place: Sized + Send + 'static {
    /// Prepares the thread that will place packets: what is allocated for a thread is allocated here.
    fn prepare(&self) {}
    /// Places a packet; it is counted.
    fn place(&mut self, frame: &StreamFrame, at: Moment);
    /// Places a packet that is in one piece, as its sender has made it; it is counted.
    fn place_payload(&mut self, stream: StreamId, payload: &[u8], at: Moment);
    /// The same for another receive loop.
    ///
    /// # Errors
    /// Too many loops.
    fn for_another_loop(&self) -> Result<Self>;
    /// The counter of the packets, for the ledger.
    fn view(&self) -> TallyView;
    /// The cause of packets for whose image there was no buffer.
    fn no_buffer(&self) -> Cause;
}

/// Copies raw pixels.
pub struct PlaceRaw<P>(pub PacketPlacer<P>);

impl<P: Raw> Place for PlaceRaw<P> {
    #[inline]
    fn place(&mut self, frame: &StreamFrame, at: Moment) {
        // The placer counts what it refuses.
        let _ = self.0.receive(frame, at);
    }

    #[inline]
    fn place_payload(&mut self, stream: StreamId, payload: &[u8], at: Moment) {
        // The placer counts what it refuses.
        let _ = self.0.place(stream, payload, at);
    }

    fn for_another_loop(&self) -> Result<Self> {
        Ok(Self(self.0.for_another_loop()?))
    }

    fn view(&self) -> TallyView {
        self.0.view()
    }

    fn no_buffer(&self) -> Cause {
        self.0.no_buffer()
    }
}

/// The converter of each module. Pedestals change while loops convert: a new converter replaces the
/// old one, which the last loop that used it gives back.
pub type Converters = Arc<[ArcSwap<Converter>]>;

/// Converts pixels while their packet is in the cache. Dark frames stay raw.
pub struct PlaceConverted<P> {
    pub placer: PacketPlacer<P>,
    pub converters: Converters,
    pub dark: Option<DarkConfig>,
}

impl<P: StagePixel> Place for PlaceConverted<P> {
    fn prepare(&self) {
        // The first use in a thread allocates its list of converters in use.
        for converter in &*self.converters {
            drop(converter.load());
        }
    }

    #[inline]
    fn place(&mut self, frame: &StreamFrame, at: Moment) {
        let (converters, dark) = (&self.converters, &self.dark);
        // The placer counts what it refuses.
        let _ = self
            .placer
            .receive_with(frame, at, |to, raw: &[U16], pixels| {
                place_pixels(converters, dark.as_ref(), to, raw, pixels);
            });
    }

    #[inline]
    fn place_payload(&mut self, stream: StreamId, payload: &[u8], at: Moment) {
        let (converters, dark) = (&self.converters, &self.dark);
        // The placer counts what it refuses.
        let _ = self
            .placer
            .place_with(stream, payload, at, |to, raw: &[U16], pixels| {
                place_pixels(converters, dark.as_ref(), to, raw, pixels);
            });
    }

    fn for_another_loop(&self) -> Result<Self> {
        Ok(Self {
            placer: self.placer.for_another_loop()?,
            converters: Arc::clone(&self.converters),
            dark: self.dark.clone(),
        })
    }

    fn view(&self) -> TallyView {
        self.placer.view()
    }

    fn no_buffer(&self) -> Cause {
        self.placer.no_buffer()
    }
}

#[inline]
fn place_pixels<P: StagePixel>(
    converters: &[ArcSwap<Converter>],
    dark: Option<&DarkConfig>,
    mut to: Placement<'_>,
    raw: &[U16],
    pixels: &mut [P],
) {
    if dark.is_some_and(|dark| dark.is_dark(to.header.frame_number.get())) {
        // As many bytes: dark frames need pixels of 16 bits.
        to.notes.clear();
        let (raw, pixels) = (raw.as_bytes(), pixels.as_mut_bytes());
        if raw.len() == pixels.len() {
            pixels.copy_from_slice(raw);
        }
        return;
    }
    // A packet begins at a multiple of 64 pixels, and ends in its module.
    let converted = converters.get(to.module).map(|converter| {
        converter
            .load()
            .convert_and_note(to.first_pixel, raw.as_bytes(), pixels, &mut to.notes)
    });
    if !matches!(converted, Some(Ok(()))) {
        to.notes.clear();
        pixels.fill(P::BAD);
    }
}
