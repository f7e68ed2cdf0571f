//! A value for each pixel of a module, in memory and in files.

use std::path::{Path, PathBuf};

use crate::{Shape, read_regular};

/// A value for each pixel, row by row, and the name that errors call it by.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    name: String,
    values: Vec<f32>,
}

/// A map cannot be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}: give a file of {bytes} bytes (f32 LE, {shape})")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
        /// Its right size.
        bytes: usize,
        /// Shape of the map.
        shape: Shape,
    },
    /// The file has another size.
    #[error(
        "{path} has {found} bytes instead of {bytes} (f32 LE, {shape}): give one number for each pixel, \
         module after module, without a header"
    )]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// Its right size.
        bytes: usize,
        /// Shape of the map.
        shape: Shape,
    },
}

impl Map {
    /// A map of given values.
    #[must_use]
    pub fn new(name: impl Into<String>, values: Vec<f32>) -> Self {
        Self {
            name: name.into(),
            values,
        }
    }

    /// Reads a map from a file: f32, little endian, row by row, without a header. Errors about its
    /// values name the file.
    ///
    /// # Errors
    /// The file cannot be read or is no regular one, or its size does not fit the shape.
    pub fn read(path: &Path, shape: Shape) -> Result<Self, MapError> {
        let bytes = shape.pixels() * size_of::<f32>();
        let read = read_regular(path, bytes);
        let (found, contents) = read.map_err(|error| MapError::Read {
            path: path.to_owned(),
            error,
            bytes,
            shape,
        })?;
        if found != bytes as u64 || contents.len() != bytes {
            return Err(MapError::Size {
                path: path.to_owned(),
                found,
                bytes,
                shape,
            });
        }
        let (values, _) = contents.as_chunks();
        let values = values.iter().map(|&value| f32::from_le_bytes(value));
        Ok(Self::new(path.display().to_string(), values.collect()))
    }

    /// The name in errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values, row by row.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The first pixel that is not bad and whose value is wrong.
    pub(super) fn find(&self, bad: &[bool], wrong: impl Fn(f32) -> bool) -> Option<(usize, f32)> {
        let values = self.values.iter().copied().zip(bad).enumerate();
        values
            .map(|(pixel, (value, &bad))| (pixel, value, bad))
            .find(|&(_, value, bad)| !bad && wrong(value))
            .map(|(pixel, value, _)| (pixel, value))
    }
}
