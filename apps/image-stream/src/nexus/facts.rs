//! Facts about each image of a file: one item of each dataset for an image.

use hdf5_metno::{Dataset, Group, Result};
use ndarray::ArrayView3;

use super::column::{Column, describe, group, number_attribute};
use crate::detector::LossLayout;
use crate::image::ImageFacts;

/// Items of a chunk of loss maps.
const LOSS_CHUNK: usize = 512;

/// The group `images`.
pub(super) struct FactColumns {
    /// Its length is the number of images in the file.
    frame: Column<u64>,
    timestamp: Column<u64>,
    exposure: Column<u32>,
    bunch: Column<u64>,
    peaks: Column<u32>,
    kept: Column<u8>,
    sparse: Column<u8>,
    loss: LossColumn,
    stack: Column<u64>,
    stack_images: Column<u32>,
    stack_incomplete: Column<u32>,
    stack_missing: Column<u32>,
}

impl FactColumns {
    pub(super) fn create(entry: &Group, loss: LossLayout) -> Result<Self> {
        let at = &group(entry, "images", "NXcollection")?;
        Ok(Self {
            frame: Column::create(at, "frame_number", "", "Frame number of the detector")?,
            timestamp: Column::create(at, "timestamp", "100 ns", "Time of the detector")?,
            exposure: Column::create(at, "exposure", "100 ns", "Exposure time")?,
            bunch: Column::create(at, "bunch_id", "", "Number of the bunch")?,
            peaks: Column::create(at, "peak_count", "", "Number of Bragg peaks")?,
            kept: Column::create(at, "kept", "", "0 vetoed, 1 kept by the veto")?,
            sparse: Column::create(at, "is_sparse", "", "0 in data, 1 in sparse")?,
            loss: LossColumn::create(at, loss)?,
            stack: Column::create(at, "stack", "", "Number of the event of its stack")?,
            stack_images: Column::create(at, "stack_images", "", "Images of the stack")?,
            stack_incomplete: Column::create(
                at,
                "stack_incomplete",
                "",
                "Images of the stack of which packets are missing",
            )?,
            stack_missing: Column::create(
                at,
                "stack_packets_missing",
                "",
                "Packets that are missing in the stack",
            )?,
        })
    }

    pub(super) fn push(&mut self, facts: &ImageFacts, sparse: bool) {
        self.frame.push(facts.frame);
        self.timestamp.push(facts.timestamp);
        self.exposure.push(facts.exposure);
        self.bunch.push(facts.bunch);
        self.peaks.push(facts.peaks);
        self.kept.push(facts.kept.into());
        self.sparse.push(sparse.into());
        self.loss.push(facts);
        self.stack.push(facts.stack.number);
        self.stack_images.push(facts.stack.images);
        self.stack_incomplete.push(facts.stack.incomplete);
        self.stack_missing.push(facts.stack.missing);
    }

    /// Appends everything but the frame numbers.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.timestamp.flush()?;
        self.exposure.flush()?;
        self.bunch.flush()?;
        self.peaks.flush()?;
        self.kept.flush()?;
        self.sparse.flush()?;
        self.stack.flush()?;
        self.stack_images.flush()?;
        self.stack_incomplete.flush()?;
        self.stack_missing.flush()?;
        self.loss.flush()
    }

    /// Appends the frame numbers.
    pub(super) fn flush_frames(&mut self) -> Result<()> {
        self.frame.flush()
    }
}

/// Loss maps: images x modules x words.
struct LossColumn {
    set: Dataset,
    layout: LossLayout,
    waiting: Vec<u64>,
}

impl LossColumn {
    fn create(at: &Group, layout: LossLayout) -> Result<Self> {
        let (modules, words) = (layout.modules, layout.module_words());
        let set = at
            .new_dataset::<u64>()
            .chunk((LOSS_CHUNK, modules, words))
            .shape((0.., modules, words))
            .create("packets_missing")?;
        describe(
            &set,
            "",
            "By module, bit p % 64 of word p / 64: packet p is missing",
        )?;
        number_attribute(&set, "packets_per_module", layout.packets as u64)?;
        number_attribute(&set, "rows_per_packet", layout.rows as u64)?;
        Ok(Self {
            set,
            layout,
            waiting: Vec::with_capacity(LOSS_CHUNK * layout.words()),
        })
    }

    fn push(&mut self, facts: &ImageFacts) {
        self.waiting
            .extend_from_slice(facts.loss.words(self.layout.words()));
    }

    fn flush(&mut self) -> Result<()> {
        let (modules, words) = (self.layout.modules, self.layout.module_words());
        let images = self.waiting.len() / self.layout.words();
        if images == 0 {
            return Ok(());
        }
        let start = self.set.shape().first().copied().unwrap_or_default();
        let end = start + images;
        self.set.resize((end, modules, words))?;
        let maps = ArrayView3::from_shape((images, modules, words), &self.waiting)?;
        self.set.write_slice(maps, (start..end, .., ..))?;
        self.waiting.clear();
        Ok(())
    }
}
