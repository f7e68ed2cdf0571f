//! Placeholder for the HDF5 recording in builds without it.

use std::sync::Arc;

use anyhow::{Result, bail};
use pollux_app::Output;
use pollux_na62::l0::EventView;

use crate::counters::Counters;
use crate::outputs::Outputs;
use crate::record_queue::Store;

/// A file type without values.
pub enum Hdf5File {}

impl Hdf5File {
    pub fn create(_: &Outputs, _: &Output, _: String, _: &Arc<Counters>) -> Result<Self> {
        bail!(crate::plan::NO_HDF5)
    }
}

impl Store for Hdf5File {
    fn turns_at(&self, _: EventView<'_>) -> bool {
        match *self {}
    }

    fn push(&mut self, _: EventView<'_>) {
        match *self {}
    }

    fn flush(&mut self) -> Result<()> {
        match *self {}
    }

    fn complete(self, _: u64) -> Result<()> {
        match self {}
    }
}
