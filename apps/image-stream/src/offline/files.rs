//! Image files without a header: one module or a stack of modules, little endian.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use pollux_app::{Output, Overwrite};
use pollux_images::Shape;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Reads a file of exactly one image.
///
/// # Errors
/// The file cannot be read, or its size is not that of the image.
pub fn read<T: FromBytes + IntoBytes + Immutable + Copy>(
    path: &Path,
    shape: Shape,
) -> Result<Vec<T>> {
    let name = || path.display().to_string();
    let size = size_of::<T>();
    let expected = shape.pixels() * size;
    let file = File::open(path).with_context(name)?;
    let found = file.metadata().with_context(name)?;
    let mut bytes = Vec::new();
    // A pipe or a device may have no end.
    let read = file.take(expected as u64 + 1).read_to_end(&mut bytes);
    let found = match read.with_context(name)? {
        len if len <= expected => len.to_string(),
        _ if found.is_file() => found.len().to_string(),
        _ => format!("more than {expected}"),
    };
    ensure!(
        bytes.len() == expected,
        "{}: {found} B, not the {expected} B of an image of {shape} with {size} B a pixel: check the file, or give --shape",
        path.display()
    );
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
/// Creates the folder.
///
/// # Errors
/// Two files with one name, a result that exists and is not to be overwritten, or a folder that
/// cannot be created.
pub fn results(
    files: &[PathBuf],
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
    fs::create_dir_all(folder).with_context(|| format!("--out {}", folder.display()))?;
    Ok(outputs)
}

/// Writes a result.
///
/// # Errors
/// The file cannot be written.
pub fn write(output: &Output, bytes: &[u8]) -> Result<()> {
    fs::write(output.path(), bytes).with_context(|| output.name())
}
