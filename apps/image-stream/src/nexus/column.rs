//! Extendible one-dimensional dataset, with groups, attributes and texts.

use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, Extent, Group, H5Type, Location, Result};

/// Items of a chunk on disk.
const CHUNK: usize = 8192;

/// A dataset, and the items to be appended to it.
pub(super) struct Column<T> {
    set: Dataset,
    waiting: Vec<T>,
}

impl<T: H5Type> Column<T> {
    /// An empty dataset in `group`. `units` may be empty.
    pub(super) fn create(group: &Group, name: &str, units: &str, what: &str) -> Result<Self> {
        let set = group
            .new_dataset::<T>()
            .chunk((CHUNK,))
            .shape(Extent::resizable(0))
            .create(name)?;
        describe(&set, units, what)?;
        Ok(Self {
            set,
            waiting: Vec::with_capacity(CHUNK),
        })
    }

    pub(super) fn push(&mut self, item: T) {
        self.waiting.push(item);
    }

    pub(super) fn extend(&mut self, items: impl Iterator<Item = T>) {
        self.waiting.extend(items);
    }

    /// Number of waiting items.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Appends the waiting items.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let start = self.set.size();
        let end = start + self.waiting.len();
        self.set.resize((end,))?;
        self.set.write_slice(&self.waiting, start..end)?;
        self.waiting.clear();
        Ok(())
    }
}

/// Unit and meaning of a dataset.
pub(super) fn describe(set: &Dataset, units: &str, what: &str) -> Result<()> {
    if !units.is_empty() {
        attribute(set, "units", units)?;
    }
    attribute(set, "long_name", what)
}

/// A group of a class of NeXus.
pub(super) fn group(parent: &Group, name: &str, class: &str) -> Result<Group> {
    let group = parent.create_group(name)?;
    attribute(&group, "NX_class", class)?;
    Ok(group)
}

/// A text as an attribute.
pub(super) fn attribute(of: &Location, name: &str, value: &str) -> Result<()> {
    let value = text(value);
    of.new_attr::<VarLenUnicode>()
        .create(name)?
        .write_scalar(&value)
}

/// A number as an attribute.
pub(super) fn number_attribute<T: H5Type + Copy>(
    of: &Location,
    name: &str,
    value: T,
) -> Result<()> {
    of.new_attr::<T>().create(name)?.write_scalar(&value)
}

/// A text as a dataset.
pub(super) fn text_set(group: &Group, name: &str, value: &str) -> Result<Dataset> {
    let set = group.new_dataset::<VarLenUnicode>().create(name)?;
    set.write_scalar(&text(value))?;
    Ok(set)
}

/// A number as a dataset. `units` may be empty.
pub(super) fn number_set<T: H5Type + Copy>(
    group: &Group,
    name: &str,
    value: T,
    units: &str,
) -> Result<()> {
    let set = group.new_dataset::<T>().create(name)?;
    set.write_scalar(&value)?;
    if units.is_empty() {
        return Ok(());
    }
    attribute(&set, "units", units)
}

/// A text as HDF5 stores it: a zero terminates it, so it contains none.
fn text(value: &str) -> VarLenUnicode {
    value.replace('\0', "").parse().unwrap_or_default()
}
