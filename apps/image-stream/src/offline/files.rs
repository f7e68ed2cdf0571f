//! Image files without a header: one module or a stack of modules, little endian.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use pollux_app::{Failure, NamedFile, Output, Overwrite, expect_distinct};
use pollux_images::{Shape, read_regular};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The failure of a file that cannot be read: a directory or a pipe is a wrong option.
pub fn unreadable(kind: ErrorKind, error: anyhow::Error) -> Failure {
    match kind {
        ErrorKind::IsADirectory | ErrorKind::InvalidInput => Failure::Usage(error),
        _ => Failure::Run(error),
    }
}

/// Reads a file of exactly one image; `option` names the file in errors.
///
/// # Errors
/// The file cannot be read, or its size is not that of the image.
pub fn read<T: FromBytes + IntoBytes + Immutable + Copy>(
    option: &str,
    path: &Path,
    shape: Shape,
) -> Result<Vec<T>, Failure> {
    read_several(option, path, shape, 1)
}

/// Reads a file of so many images, one after another.
///
/// # Errors
/// As [`read`].
pub fn read_several<T: FromBytes + IntoBytes + Immutable + Copy>(
    option: &str,
    path: &Path,
    shape: Shape,
    images: usize,
) -> Result<Vec<T>, Failure> {
    let name = format!("{option} {}", path.display());
    let size = size_of::<T>();
    let expected = images * shape.pixels() * size;
    let (found, bytes) = match read_regular(path, expected) {
        Ok(read) => read,
        Err(error) => {
            return Err(unreadable(
                error.kind(),
                anyhow::Error::new(error).context(name),
            ));
        }
    };
    if found != expected as u64 || bytes.len() != expected {
        let what = match images {
            1 => "an image".into(),
            _ => format!("{images} maps"),
        };
        let error = anyhow!(
            "{name}: {found} B, not the {expected} B of {what} of {shape} with {size} B a pixel: check the \
             file, or give --shape"
        );
        return Err(Failure::Usage(error));
    }
    let values = bytes.chunks_exact(size).map(T::read_from_bytes);
    // Each chunk has the size of a value.
    Ok(values.filter_map(Result::ok).collect())
}

/// Parses `ROWSxCOLUMNS`.
///
/// # Errors
/// Another text, or an image without pixels.
pub fn shape(text: &str) -> Result<Shape, String> {
    let parts = text.split_once('x');
    let numbers = parts.and_then(|(rows, columns)| {
        let (rows, columns) = (rows.parse().ok()?, columns.parse().ok()?);
        let sides = 1..=usize::from(u16::MAX);
        (sides.contains(&rows) && sides.contains(&columns)).then_some(Shape { rows, columns })
    });
    numbers.ok_or_else(|| "must be ROWSxCOLUMNS, as 512x1024, each 1 to 65535".into())
}

/// Names the results of several files in one folder: the name of each file with another suffix.
/// Creates the folder. `read` is what the command reads beside them.
///
/// # Errors
/// Two files with one name, a result that exists and is not to be overwritten, a result that is a file
/// which is read, or a folder that cannot be created.
pub fn results(
    files: &[PathBuf],
    read: Vec<NamedFile>,
    folder: &Path,
    suffix: &str,
    overwrite: Overwrite,
) -> Result<Vec<Output>> {
    let mut names = HashSet::new();
    let mut outputs = Vec::new();
    for file in files {
        let name = file.file_stem().map(Path::new);
        let name = name.with_context(|| format!("{}: no file name", file.display()))?;
        ensure!(
            names.insert(name),
            "{}: two files are called {}, and so would their results: process them one at a time",
            file.display(),
            name.display()
        );
        let mut result = folder.join(name).into_os_string();
        result.push(OsStr::new(suffix));
        outputs.push(Output::new("--out", Path::new(&result), overwrite)?);
    }
    let images = files.iter().map(|path| NamedFile::read("image", path));
    let written = outputs.iter().map(Output::file);
    expect_distinct(
        &read
            .into_iter()
            .chain(images)
            .chain(written)
            .collect::<Vec<_>>(),
    )?;
    fs::create_dir_all(folder).with_context(|| format!("--out {}", folder.display()))?;
    Ok(outputs)
}
