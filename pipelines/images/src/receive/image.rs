//! An image: its pixels, what its packets say of it, and what it lacks.

use std::fmt;
use std::sync::Arc;

use pollux_pipelines::Moment;
use pollux_pipelines::assemble::Frame;
use zerocopy::FromBytes;

use super::loss::{Loss, PacketMask};
use super::notes;
use super::stored::Stored;
use crate::convert::NoteConfig;
use crate::formats::{Header, Layout};

/// What all images of a receiver share.
pub(super) struct Common<P> {
    pub(super) layout: Layout,
    /// Pixels of an empty image; none where those are discarded.
    pub(super) empty: Box<[P]>,
    pub(super) notes: NoteConfig,
}

/// An image of a detector. It owns the memory of its pixels on any thread; dropping it gives the
/// memory back to the receiver.
pub struct Image<P> {
    common: Arc<Common<P>>,
    number: u64,
    /// None for an empty image.
    frame: Option<Frame>,
}

impl<P: Stored> Image<P> {
    pub(super) fn new(common: &Arc<Common<P>>, number: u64, frame: Option<Frame>) -> Self {
        Self {
            common: Arc::clone(common),
            number,
            frame,
        }
    }

    /// Its frame number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Geometry of the detector.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.common.layout
    }

    /// When its first packet came; `None` for an empty image.
    #[must_use]
    pub fn opened(&self) -> Option<Moment> {
        self.frame.as_ref().map(Frame::opened)
    }

    /// The pixels: modules one below the other, each row by row ([`Layout`]). Those of missing packets
    /// are [`Stored::MISSING`].
    #[must_use]
    #[inline]
    pub fn pixels(&self) -> &[P] {
        match &self.frame {
            // A frame begins at a cache line and has whole pixels.
            Some(frame) => <[P]>::ref_from_bytes(frame.data()).unwrap_or_default(),
            None => &self.common.empty,
        }
    }

    /// Number of pixels of at least so many photons, if the conversion counted them
    /// ([`NoteConfig::count`]).
    #[must_use]
    pub fn count_from(&self, photons: f32) -> Option<usize> {
        let noted = self.common.notes.count == Some(photons);
        noted.then(|| self.frame.as_ref().map_or(0, notes::count))
    }

    /// Marks of the pixels of at least so many photons, if the conversion made them
    /// ([`NoteConfig::mark`]): bit n of word w is that of pixel 64 w + n. An empty image has none.
    #[must_use]
    pub fn marks_from(&self, photons: f32) -> Option<&[u64]> {
        let noted = self.common.notes.mark == Some(photons);
        self.frame.as_ref().filter(|_| noted).map(notes::marks)
    }

    /// The pixels of a module; none if there is no such module.
    #[must_use]
    pub fn module_pixels(&self, module: usize) -> &[P] {
        let pixels = self.pixels();
        let len = pixels.len() / self.common.layout.modules();
        let start = module.saturating_mul(len);
        pixels
            .get(start..start.saturating_add(len))
            .unwrap_or_default()
    }

    /// Whether no packet is missing.
    #[must_use]
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.frame.as_ref().is_some_and(Frame::is_complete)
    }

    /// Whether all packets are missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frame.is_none()
    }

    /// The header of the first packet that a module has, of the lowest number.
    #[must_use]
    pub fn header(&self, module: usize) -> Option<&Header> {
        let layout = &self.common.layout;
        let frame = self.frame.as_ref()?;
        let first = module.checked_mul(layout.interfaces())?;
        let senders = first..first + layout.interfaces();
        let mut all = senders.flat_map(|s| (0..layout.packets()).map(move |p| (s, p)));
        let header = all.find_map(|(sender, packet)| frame.header(sender, packet))?;
        Header::ref_from_bytes(header).ok()
    }

    /// The header of the first module that has one: what it says of the exposure.
    fn any_header(&self) -> Option<&Header> {
        let mut modules = 0..self.common.layout.modules();
        modules.find_map(|module| self.header(module))
    }

    /// Start of the exposure since the start of the measurement, in units of 100 ns, as the first
    /// module that is there has it; `None` for an empty image.
    #[must_use]
    pub fn timestamp(&self) -> Option<u64> {
        self.any_header().map(|header| header.timestamp.get())
    }

    /// Exposure time in units of 100 ns (EIGER: number of the subframe), as for the
    /// [`timestamp`](Self::timestamp).
    #[must_use]
    pub fn exposure(&self) -> Option<u32> {
        self.any_header().map(|header| header.exposure.get())
    }

    /// Bunch identifier (JUNGFRAU), as for the [`timestamp`](Self::timestamp).
    #[must_use]
    pub fn bunch_id(&self) -> Option<u64> {
        self.any_header().map(|header| header.bunch_id.get())
    }

    /// The identifier of a module, if any of its packets came.
    #[must_use]
    pub fn module_id(&self, module: usize) -> Option<u16> {
        self.header(module).map(|header| header.module_id.get())
    }

    /// Whether a packet of a module came, counted over both interfaces.
    #[must_use]
    pub fn has(&self, module: usize, packet: usize) -> bool {
        let layout = &self.common.layout;
        let index = |frame: &Frame| {
            let of_module = packet < layout.module_packets();
            let first = module.saturating_mul(layout.interfaces());
            let sender = first.saturating_add(packet / layout.packets());
            of_module && frame.has(sender, packet % layout.packets())
        };
        self.frame.as_ref().is_some_and(index)
    }

    /// Which packets of a module came.
    #[must_use]
    pub fn mask(&self, module: usize) -> PacketMask {
        let packets = 0..self.common.layout.module_packets();
        PacketMask::new(packets.filter(|&packet| self.has(module, packet)))
    }

    /// Number of packets that are missing.
    #[must_use]
    pub fn missing_packets(&self) -> usize {
        match &self.frame {
            Some(frame) if frame.is_complete() => 0,
            Some(frame) => frame.missing().count(),
            None => self.common.layout.senders() * self.common.layout.packets(),
        }
    }

    /// The loss map: rows that packets are missing of, by module and ascending.
    pub fn losses(&self) -> impl Iterator<Item = Loss> + '_ {
        let layout = &self.common.layout;
        let modules = if self.is_complete() {
            0..0
        } else {
            0..layout.modules()
        };
        modules.flat_map(move |module| {
            let mut next = 0;
            std::iter::from_fn(move || {
                let packets = next..layout.module_packets();
                let first = packets.clone().find(|&packet| !self.has(module, packet))?;
                let after = first..packets.end;
                let end = after.clone().find(|&packet| self.has(module, packet));
                next = end.unwrap_or(after.end);
                let rows = layout.packet_rows(first..next);
                Some(Loss { module, rows })
            })
        })
    }
}

impl<P> fmt::Debug for Image<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("number", &self.number)
            .field("frame", &self.frame)
            .finish_non_exhaustive()
    }
}
