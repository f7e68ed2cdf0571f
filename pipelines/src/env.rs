//! The environment in which stages are constructed.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;

use pollux_mempool::PoolConfig;
use pollux_pmd::Ledger;

use crate::fan_out::{FanOutOptions, Worker};
use crate::metrics::Metrics;

/// Inputs for the constructor of a stage, and its outputs to the program or to later stages.
///
/// Values that only some stages use are typed extensions: the program [inserts](Self::insert) one
/// before it makes the pipeline, or a stage does for the stages behind it.
///
/// ```
/// use pollux_pipelines::StageEnv;
///
/// struct Sources(usize);
///
/// let mut env = StageEnv::new();
/// assert!(env.get::<Sources>().is_err());
/// env.insert(Sources(4));
/// assert_eq!(env.get::<Sources>()?.0, 4);
/// # Ok::<(), pollux_pipelines::MissingExtension>(())
/// ```
#[derive(Default)]
pub struct StageEnv {
    /// Ledger to which a stage that delivers or drops frames adds its tally.
    pub ledger: Ledger,
    /// Metrics of the stages.
    pub metrics: Metrics,
    /// Page size, NUMA node and lock of the memory for items.
    pub memory: PoolConfig,
    /// Most items that the program holds after the pipeline: in rings to other loops, in queues of
    /// recorders, and as free buffers in each cache into which it frees them.
    pub under_way: usize,
    /// Fan-out of the costly stages.
    pub fan_out: FanOutOptions,
    /// Workers of the stages with fan-out, to be run by the program's worker loops.
    pub worker_pool: Vec<Worker>,
    /// Warnings about options that are valid but probably not intended.
    pub warnings: Vec<String>,
    extensions: HashMap<TypeId, Box<dyn Any + Send>>,
}

/// A stage needs an extension that is not in its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no `{name}` in the environment of the stages: insert it before the pipeline is made")]
pub struct MissingExtension {
    name: &'static str,
}

/// For stages, whose errors are texts.
impl From<MissingExtension> for String {
    fn from(missing: MissingExtension) -> Self {
        missing.to_string()
    }
}

impl MissingExtension {
    fn of<T>() -> Self {
        Self {
            name: without_path(type_name::<T>()),
        }
    }
}

impl StageEnv {
    /// An environment without extensions, of a program that holds nothing and has no workers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an extension; returns the one of its type that was there before.
    pub fn insert<T: Send + 'static>(&mut self, extension: T) -> Option<T> {
        let before = self
            .extensions
            .insert(TypeId::of::<T>(), Box::new(extension));
        before.and_then(|before| before.downcast().ok().map(|before| *before))
    }

    /// The extension of a type.
    ///
    /// # Errors
    /// There is none.
    pub fn get<T: 'static>(&self) -> Result<&T, MissingExtension> {
        let extension = self.extensions.get(&TypeId::of::<T>());
        let extension = extension.and_then(|extension| extension.downcast_ref());
        extension.ok_or_else(MissingExtension::of::<T>)
    }

    /// The extension of a type, to be changed.
    ///
    /// # Errors
    /// There is none.
    pub fn get_mut<T: 'static>(&mut self) -> Result<&mut T, MissingExtension> {
        let extension = self.extensions.get_mut(&TypeId::of::<T>());
        let extension = extension.and_then(|extension| extension.downcast_mut());
        extension.ok_or_else(MissingExtension::of::<T>)
    }

    /// Takes the extension of a type out.
    ///
    /// # Errors
    /// There is none.
    pub fn take<T: 'static>(&mut self) -> Result<T, MissingExtension> {
        let extension = self.extensions.remove(&TypeId::of::<T>());
        let extension = extension.and_then(|extension| extension.downcast().ok());
        extension
            .map(|extension| *extension)
            .ok_or_else(MissingExtension::of::<T>)
    }
}

/// The name of a type without the modules that it is in.
pub(crate) fn without_path(name: &str) -> &str {
    match name.rsplit_once("::") {
        // Parameters have paths of their own.
        Some((_, last)) if !name.contains('<') => last,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Width(u32);
    #[derive(Debug, PartialEq)]
    struct Height(u32);

    #[test]
    fn extensions_are_told_apart_by_their_types() {
        let mut env = StageEnv::new();
        assert_eq!(env.insert(Width(1)), None);
        assert_eq!(env.insert(Height(2)), None);
        assert_eq!(env.insert(Width(3)), Some(Width(1)));
        if let Ok(width) = env.get_mut::<Width>() {
            width.0 += 1;
        }
        assert_eq!(env.get(), Ok(&Width(4)));
        assert_eq!(env.take(), Ok(Height(2)));
        assert_eq!(env.take::<Height>(), Err(MissingExtension::of::<Height>()));
        assert_eq!(env.take(), Ok(Width(4)));
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = StageEnv::new().get::<Width>().err().map(String::from);
        assert_eq!(
            missing.as_deref(),
            Some(
                "no `Width` in the environment of the stages: insert it before the pipeline is made"
            )
        );
    }
}
