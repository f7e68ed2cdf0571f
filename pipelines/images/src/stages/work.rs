//! An image on its way through the stages, and what they found in it.

use std::cell::Cell;
use std::fmt;
use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::event::StackFacts;
use crate::peaks::Peak;
use crate::receive::{Image, Stored};

/// The pixels of an image as the outputs take them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// The image itself.
    #[default]
    Raw,
    /// A chunk of bitshuffle and LZ4, with its header: [`Findings::chunk`].
    BitshuffleLz4,
    /// Compressed sparse rows: [`Findings::row_offsets`], [`Findings::columns`] and
    /// [`Findings::values`].
    Sparse,
}

/// What the stages found in an image. Lists keep their memory from image to image.
#[derive(Debug)]
pub struct Findings<P> {
    /// No output takes the image.
    pub vetoed: bool,
    /// Number of pixels at or above the threshold of the veto; `None` without a veto.
    pub intense: Option<usize>,
    /// Bragg peaks, in the order of their first pixel.
    pub peaks: Vec<Peak>,
    /// Peaks beyond the capacity of the list.
    pub more_peaks: u32,
    /// Radial curve: mean of each bin, in photons; empty without an integration.
    pub curve: Vec<f32>,
    /// Standard error of each mean, in photons.
    pub sigma: Vec<f32>,
    /// How the outputs take the pixels.
    pub encoding: Encoding,
    /// Room for the longest chunk, and the length of that of this image.
    pub(super) room: Vec<u8>,
    pub(super) chunk_len: usize,
    /// Where the pixels of each row begin, and where those of the last one end; for
    /// [`Encoding::Sparse`], as the next two.
    pub row_offsets: Vec<u32>,
    /// Column of each stored pixel.
    pub columns: Vec<u16>,
    /// Value of each stored pixel.
    pub values: Vec<P>,
}

impl<P> Default for Findings<P> {
    fn default() -> Self {
        Self {
            vetoed: false,
            intense: None,
            peaks: Vec::new(),
            more_peaks: 0,
            curve: Vec::new(),
            sigma: Vec::new(),
            encoding: Encoding::Raw,
            room: Vec::new(),
            chunk_len: 0,
            row_offsets: Vec::new(),
            columns: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl<P> Findings<P> {
    fn with_capacity(capacity: &Capacity) -> Self {
        Self {
            peaks: Vec::with_capacity(capacity.peaks),
            curve: Vec::with_capacity(capacity.bins),
            sigma: Vec::with_capacity(capacity.bins),
            room: vec![0; capacity.chunk_bytes],
            row_offsets: Vec::with_capacity(capacity.rows),
            columns: Vec::with_capacity(capacity.sparse_pixels),
            values: Vec::with_capacity(capacity.sparse_pixels),
            ..Self::default()
        }
    }

    /// The compressed image, for [`Encoding::BitshuffleLz4`]; else it is empty.
    #[must_use]
    pub fn chunk(&self) -> &[u8] {
        self.room.get(..self.chunk_len).unwrap_or_default()
    }

    fn clear(&mut self) {
        (self.vetoed, self.intense, self.more_peaks) = (false, None, 0);
        self.chunk_len = 0;
        self.encoding = Encoding::Raw;
        self.peaks.clear();
        self.curve.clear();
        self.sigma.clear();
        self.row_offsets.clear();
        self.columns.clear();
        self.values.clear();
    }
}

/// An image and what the stages found in it. Dropping it, on any thread, gives the image back to the
/// receiver and the findings to the [`Desk`].
pub struct Work<P> {
    /// The image.
    pub image: Image<P>,
    /// What the stages found.
    pub findings: Findings<P>,
    /// The event that the image belongs to.
    pub stack: StackFacts,
    home: SyncSender<Findings<P>>,
}

impl<P> Drop for Work<P> {
    fn drop(&mut self) {
        let mut findings = mem::take(&mut self.findings);
        findings.clear();
        // There is a place for each; once the desk is gone, none is needed.
        let _ = self.home.try_send(findings);
    }
}

impl<P> fmt::Debug for Work<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("image", &self.image)
            .field("vetoed", &self.findings.vetoed)
            .field("peaks", &self.findings.peaks.len())
            .finish_non_exhaustive()
    }
}

/// Largest numbers of what stages find in an image. Each stage that the
/// [registry](super::image_stages) makes adds its own to the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capacity {
    /// Bragg peaks.
    pub peaks: usize,
    /// Bins of the curve.
    pub bins: usize,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// Rows of a sparse image.
    pub rows: usize,
    /// Stored pixels of a sparse image.
    pub sparse_pixels: usize,
}

/// Makes [`Work`] of images. The findings are recycled: their lists are allocated for the largest image
/// when the desk is made.
pub struct Desk<P> {
    /// Images so far.
    images: Cell<u64>,
    home: SyncSender<Findings<P>>,
    free: Receiver<Findings<P>>,
}

impl<P: Stored> Desk<P> {
    /// For so many images at a time, at most as many as the receiver has buffers, and what stages find
    /// in them.
    #[must_use]
    pub fn new(images: usize, capacity: &Capacity) -> Self {
        let (home, free) = sync_channel(images);
        for _ in 0..images {
            let _ = home.try_send(Findings::with_capacity(capacity));
        }
        let images = Cell::new(0);
        Self { images, home, free }
    }

    /// Begins the work on an image. An empty one is vetoed from the start.
    ///
    /// # Errors
    /// Gives the image back while there is work on the largest number of images.
    pub fn begin(&self, image: Image<P>) -> Result<Work<P>, Image<P>> {
        match self.free.try_recv() {
            Ok(mut findings) => {
                findings.vetoed = image.is_empty();
                let number = self.images.get();
                self.images.set(number + 1);
                let stack = StackFacts::of_image(number, &image);
                let home = self.home.clone();
                Ok(Work {
                    image,
                    findings,
                    stack,
                    home,
                })
            }
            Err(_) => Err(image),
        }
    }
}
