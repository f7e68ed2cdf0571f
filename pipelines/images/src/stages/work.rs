//! An image on its way through the stages, and what they found in it.

use std::fmt;
use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

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

/// Makes [`Work`] of images. The findings are recycled: their lists grow to what the largest image
/// needs, and are allocated no more.
pub struct Desk<P> {
    home: SyncSender<Findings<P>>,
    free: Receiver<Findings<P>>,
}

impl<P: Stored> Desk<P> {
    /// For so many images at a time: as many as the receiver has buffers.
    #[must_use]
    pub fn new(images: usize) -> Self {
        let (home, free) = sync_channel(images);
        for _ in 0..images {
            let _ = home.try_send(Findings::default());
        }
        Self { home, free }
    }

    /// Begins the work on an image. An empty one is vetoed from the start.
    ///
    /// # Errors
    /// Gives the image back while there is work on the largest number of images.
    pub fn begin(&self, image: Image<P>) -> Result<Work<P>, Image<P>> {
        match self.free.try_recv() {
            Ok(mut findings) => {
                findings.vetoed = image.is_empty();
                let home = self.home.clone();
                Ok(Work {
                    image,
                    findings,
                    home,
                })
            }
            Err(_) => Err(image),
        }
    }
}
