//! The buffer that a stage is filling with fragments.

use pollux_mempool::PoolCache;
use pollux_pipelines::StageEnv;
use pollux_pipelines::sink::Output;

use crate::l0::{Fragments, make_fragments};

/// Bytes of fragments that are handed on without waiting for more: so few that they are still in
/// the first cache when events are built of them.
pub(super) const ENOUGH: usize = 12 << 10;

/// Fills buffers with the fragments of several frames.
pub(super) struct Filling {
    buffers: PoolCache,
    current: Option<Fragments>,
}

impl Filling {
    /// Makes a pool of buffers.
    ///
    /// # Errors
    /// Memory that cannot be had.
    pub(super) fn new(env: &StageEnv) -> Result<Self, String> {
        Ok(Self {
            buffers: make_fragments(env).map_err(|error| error.to_string())?,
            current: None,
        })
    }

    /// A buffer with room for so many fragments with so many hits in all; the one before goes to
    /// `out`. `None` if there is no other, or if they need more than one.
    pub(super) fn with_room(
        &mut self,
        fragments: usize,
        hits: usize,
        out: &mut impl Output<Fragments>,
    ) -> Option<&mut Fragments> {
        let has_room = |filling: &Fragments| filling.has_room(fragments, hits);
        if !self.current.as_ref().is_some_and(has_room) {
            let next = Fragments::new(&mut self.buffers).filter(has_room)?;
            if let Some(full) = self.current.replace(next).filter(|full| !full.is_empty()) {
                out.push(full);
            }
        }
        self.current.as_mut()
    }

    /// The buffer that is being filled.
    pub(super) fn current(&mut self) -> Option<&mut Fragments> {
        self.current.as_mut()
    }

    /// Hands the buffer on if it has enough fragments.
    pub(super) fn flush_if_enough(&mut self, out: &mut impl Output<Fragments>) {
        if let Some(filled) = self.current.take_if(|filling| filling.used() >= ENOUGH) {
            out.push(filled);
        }
    }

    /// Hands the buffer on; one without fragments is kept.
    pub(super) fn flush(&mut self, out: &mut impl Output<Fragments>) {
        if let Some(filled) = self.current.take_if(|filling| !filling.is_empty()) {
            out.push(filled);
        }
    }
}
