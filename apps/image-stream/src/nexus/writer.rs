//! Writer of one image file.

use std::path::Path;
use std::time::SystemTime;

use hdf5_metno::plist::DatasetCreate;
use hdf5_metno::plist::dataset_create::{AllocTime, FillTime};
use hdf5_metno::types::{FloatSize, IntSize, OwnedDynValue, TypeDescriptor};
use hdf5_metno::{Dataset, File, Group, Result};
use pollux_images::Pixel;

use super::chunk;
use super::column::{describe, group, number_set, text_set};
use super::error::FileError;
use super::facts::FactColumns;
use super::findings::Findings;
use super::info::{Compression, FileInfo, iso};
use super::sparse::SparseColumns;
use crate::detector::Detector;
use crate::image::{Dense, Found, ImageFacts, PixelType, Pixels};

/// The registered HDF5 filter bitshuffle.
const BITSHUFFLE: i32 = 32008;

/// An image file, open for writing.
pub struct Writer {
    path: String,
    file: File,
    data: Dataset,
    facts: FactColumns,
    sparse: SparseColumns,
    findings: Findings,
    detector: Detector,
    compression: Compression,
    images: u64,
}

impl Writer {
    /// Creates the file.
    ///
    /// # Errors
    /// A detector that cannot be described; a path that cannot be written; a file that is there,
    /// unless it is to be overwritten.
    pub fn create(path: &Path, overwrite: bool, info: &FileInfo) -> Result<Self, FileError> {
        info.detector.check()?;
        let path = path.display().to_string();
        Self::new(&path, overwrite, info).map_err(|error| FileError::Hdf5 { path, error })
    }

    fn new(path: &str, overwrite: bool, info: &FileInfo) -> Result<Self> {
        // SWMR needs the file format of HDF5 1.10.
        let options = || {
            File::with_options()
                .with_fapl(|access| access.libver_v110())
                .clone()
        };
        let file = if overwrite {
            options().create(path)
        } else {
            options().create_excl(path)
        }?;
        let detector = &info.detector;
        let entry = info.write_entry(&file, SystemTime::now())?;
        info.write_instrument(&entry)?;
        let at = group(&entry, "data", "NXdata")?;
        super::column::attribute(&at, "signal", "data")?;
        let data = create_data(&at, detector, info.compression)?;
        entry.link_hard("data/data", "instrument/detector/data")?;
        let facts = FactColumns::create(&entry, detector.loss)?;
        let sparse = SparseColumns::create(&entry, detector.pixel)?;
        let findings = Findings::create(&entry, &info.findings)?;
        file.flush()?;
        // From here on nothing is created, only extended and written.
        file.start_swmr()?;
        Ok(Self {
            path: path.into(),
            data,
            facts,
            sparse,
            findings,
            file,
            detector: detector.clone(),
            compression: info.compression,
            images: 0,
        })
    }

    /// Number of images.
    #[must_use]
    pub const fn images(&self) -> u64 {
        self.images
    }

    /// Writes an image, and what was found in it. Readers see it after the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// Pixels that do not fit, which leave the file as it is; a disk that fails, after which nothing
    /// more is to be expected of the file.
    pub fn write<B: AsRef<[u8]>>(
        &mut self,
        facts: &ImageFacts,
        pixels: &Pixels<B>,
        found: Option<&dyn Found>,
    ) -> Result<(), FileError> {
        self.check(pixels)?;
        let written = match pixels {
            Pixels::Dense(dense) => self.write_dense(dense),
            Pixels::Sparse(sparse) => self.sparse.push(self.images, sparse),
        };
        written
            .and_then(|()| self.findings.push(found))
            .map_err(|error| self.failed(error))?;
        self.facts.push(facts, matches!(pixels, Pixels::Sparse(_)));
        self.images += 1;
        Ok(())
    }

    fn check<B: AsRef<[u8]>>(&self, pixels: &Pixels<B>) -> Result<(), FileError> {
        let Detector { shape, pixel, .. } = self.detector;
        let (path, image) = (|| self.path.clone(), self.images);
        match pixels {
            Pixels::Dense(Dense::BitshuffleLz4(_)) if self.compression == Compression::None => {
                return Err(FileError::Compressed {
                    path: path(),
                    image,
                });
            }
            Pixels::Dense(dense) => dense.check(shape, pixel),
            Pixels::Sparse(sparse) => sparse.check(shape, pixel),
        }
        .map_err(|error| FileError::Pixels {
            path: path(),
            image,
            error,
        })
    }

    /// One image is one chunk.
    fn write_dense<B: AsRef<[u8]>>(&self, dense: &Dense<B>) -> Result<()> {
        self.extend_data(self.images + 1)?;
        let skipped = match (dense, self.compression) {
            (Dense::Raw(_), Compression::BitshuffleLz4) => chunk::NOT_FILTERED,
            (Dense::Raw(_), Compression::None) | (Dense::BitshuffleLz4(_), _) => chunk::FILTERED,
        };
        chunk::write(&self.data, [self.images, 0, 0], skipped, dense.bytes())
    }

    /// Images that have no chunk there read as bad pixels.
    fn extend_data(&self, images: u64) -> Result<()> {
        let shape = self.detector.shape;
        self.data
            .resize((images as usize, shape.rows, shape.columns))
    }

    /// Passes the images to the system, so that readers see them, and the file holds them if the
    /// process is killed.
    ///
    /// # Errors
    /// A disk that fails; nothing more is to be expected of the file.
    pub fn flush(&mut self) -> Result<(), FileError> {
        self.append().map_err(|error| self.failed(error))
    }

    /// Frame numbers are last: an image that has one is complete.
    fn append(&mut self) -> Result<()> {
        self.extend_data(self.images)?;
        self.sparse.flush()?;
        self.findings.flush()?;
        self.facts.flush()?;
        self.file.flush()?;
        self.facts.flush_frames()?;
        self.file.flush()
    }

    fn failed(&self, error: hdf5_metno::Error) -> FileError {
        FileError::Hdf5 {
            path: self.path.clone(),
            error,
        }
    }

    /// Completes the file with counts by name.
    ///
    /// # Errors
    /// A disk that fails.
    pub fn finish(mut self, counts: &[(String, u64)]) -> Result<(), FileError> {
        self.flush()?;
        let Self { path, file, .. } = self;
        // Objects can be created only outside of the SWMR mode.
        file.close()
            .and_then(|()| add_summary(&path, counts))
            .map_err(|error| FileError::Hdf5 { path, error })
    }
}

fn add_summary(path: &str, counts: &[(String, u64)]) -> Result<()> {
    let file = File::open_rw(path)?;
    let entry = file.group("entry")?;
    let summary = group(&entry, "summary", "NXcollection")?;
    for (name, count) in counts {
        number_set(&summary, name, *count, "")?;
    }
    // Last: it marks the file as complete.
    text_set(&entry, "end_time", &iso(SystemTime::now()))?;
    file.close()
}

/// The images: one chunk each.
fn create_data(at: &Group, detector: &Detector, compression: Compression) -> Result<Dataset> {
    let (rows, columns) = (detector.shape.rows, detector.shape.columns);
    let mut properties = DatasetCreate::build();
    properties
        .chunk((1, rows, columns))
        .alloc_time(Some(AllocTime::Incr))
        .fill_time(FillTime::IfSet)
        .fill_value(bad(detector.pixel));
    if compression == Compression::BitshuffleLz4 {
        // Version of the filter, size of an element, block size (0: the default), 2: LZ4. Readers
        // take the block size from each chunk.
        let element = detector.pixel.bytes() as u32;
        properties.add_filter(BITSHUFFLE, &[0, 4, element, 0, 2]);
    }
    let set = at
        .new_dataset_builder()
        .set_create_plist(&properties.finish()?)
        .empty_as(descriptor(detector.pixel))
        .chunk((1, rows, columns))
        .fill_time(FillTime::IfSet)
        .shape((0.., rows, columns))
        .create("data")?;
    let units = match detector.pixel {
        PixelType::U16 => "ADU",
        PixelType::U8 | PixelType::U32 => "counts",
        PixelType::I16 | PixelType::I32 | PixelType::F32 => "photons",
    };
    describe(&set, units, "Images")?;
    Ok(set)
}

const fn descriptor(pixel: PixelType) -> TypeDescriptor {
    match pixel {
        PixelType::U8 => TypeDescriptor::Unsigned(IntSize::U1),
        PixelType::U16 => TypeDescriptor::Unsigned(IntSize::U2),
        PixelType::U32 => TypeDescriptor::Unsigned(IntSize::U4),
        PixelType::I16 => TypeDescriptor::Integer(IntSize::U2),
        PixelType::I32 => TypeDescriptor::Integer(IntSize::U4),
        PixelType::F32 => TypeDescriptor::Float(FloatSize::U4),
    }
}

/// Code of a bad pixel.
fn bad(pixel: PixelType) -> OwnedDynValue {
    match pixel {
        // An error code of the detector.
        PixelType::U8 => u8::MAX.into(),
        PixelType::U16 => u16::MAX.into(),
        PixelType::U32 => u32::MAX.into(),
        PixelType::I16 => i16::BAD.into(),
        PixelType::I32 => i32::BAD.into(),
        PixelType::F32 => f32::BAD.into(),
    }
}
