//! Item types of stages, compared and named.

use std::any::{TypeId, type_name};
use std::collections::HashMap;

use crate::env::without_path;

/// Why stages do not make a pipeline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// Two neighbours do not fit.
    #[error("stage `{stage}` takes {takes}, but {} {makes}", giver(before.as_deref()))]
    Mismatch {
        /// The stage that does not fit.
        stage: String,
        /// Its place: the first is number 1.
        number: usize,
        /// The kind that it takes.
        takes: &'static str,
        /// The stage before it; `None` where it is the first.
        before: Option<String>,
        /// The kind that it would be given.
        makes: &'static str,
    },
    /// The last stage makes something else than the pipeline must.
    #[error("the pipeline must make {wanted}, but its last stage, `{stage}`, makes {makes}")]
    End {
        /// The last stage.
        stage: String,
        /// Its place: the first is number 1.
        number: usize,
        /// The kind that it makes.
        makes: &'static str,
        /// The kind that is wanted.
        wanted: &'static str,
    },
    /// There is no stage.
    #[error("a pipeline needs at least one stage")]
    Empty,
}

impl PipelineError {
    /// The place of the stage that is wrong, if it is one: the first is number 1.
    #[must_use]
    pub fn number(&self) -> Option<usize> {
        match *self {
            Self::Mismatch { number, .. } | Self::End { number, .. } => Some(number),
            Self::Empty => None,
        }
    }
}

/// Who gives a stage what it does not take.
fn giver(before: Option<&str>) -> String {
    before.map_or_else(
        || "the pipeline is given".into(),
        |before| format!("stage `{before}` before it makes"),
    )
}

/// A type, to be compared and named.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) id: TypeId,
    name: &'static str,
}

impl Kind {
    pub(super) fn of<T: 'static>() -> Self {
        Self {
            id: TypeId::of::<T>(),
            name: without_path(type_name::<T>()),
        }
    }
}

/// What people call the items that flow between stages, by their types; the others have the names of
/// their types.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    names: HashMap<TypeId, &'static str>,
}

impl Kinds {
    /// Names the items of a type.
    pub fn name<T: 'static>(&mut self, name: &'static str) {
        self.names.insert(TypeId::of::<T>(), name);
    }

    pub(super) fn of(&self, kind: Kind) -> &'static str {
        self.names.get(&kind.id).copied().unwrap_or(kind.name)
    }
}
