//! Drivers by name.

use crate::driver::Driver;
use crate::drivers;
use crate::port::{Port, PortError, Probed};
use crate::spec::{PortSpec, SpecError};

/// Judges a spec by itself: opens, reads and asks for nothing.
pub type Check = fn(&PortSpec) -> Result<(), SpecError>;

/// Opens the device that a spec names.
pub type Open = Box<dyn Fn(&PortSpec) -> Result<Box<dyn Driver>, PortError> + Send + Sync>;

struct Entry {
    name: &'static str,
    usage: &'static str,
    check: Check,
    open: Open,
}

/// The drivers that a program can open ports with. A program adds its own (a simulated card, say)
/// beside the built-in ones.
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// The drivers of this crate.
    #[must_use]
    pub fn builtin() -> Self {
        let mut registry = Self {
            entries: Vec::new(),
        };
        drivers::register(&mut registry);
        registry
    }

    /// Adds a driver. `usage` is one line for `--help`: the spec's form, then what it is. `check`
    /// finds every mistake that a spec shows by itself, so that one is told before any device is
    /// touched.
    pub fn register(
        &mut self,
        name: &'static str,
        usage: &'static str,
        check: Check,
        open: impl Fn(&PortSpec) -> Result<Box<dyn Driver>, PortError> + Send + Sync + 'static,
    ) {
        self.entries.retain(|entry| entry.name != name);
        self.entries.push(Entry {
            name,
            usage,
            check,
            open: Box::new(open),
        });
    }

    /// One line for each driver.
    pub fn usage(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().map(|entry| entry.usage)
    }

    /// Reads a spec and finds its driver, without opening anything.
    fn find(&self, spec: &str) -> Result<(PortSpec, &Entry), PortError> {
        let parsed: PortSpec = spec.parse()?;
        let Some(entry) = self
            .entries
            .iter()
            .find(|entry| entry.name == parsed.driver())
        else {
            let known: Vec<_> = self.entries.iter().map(|entry| entry.name).collect();
            return Err(PortError::UnknownDriver {
                driver: parsed.driver().into(),
                known: known.join(", "),
            });
        };
        Ok((parsed, entry))
    }

    /// Checks that a spec can be read, that there is such a driver, and that it knows all the
    /// options and their values, without opening anything.
    ///
    /// # Errors
    /// What is wrong with the spec.
    pub fn check(&self, spec: &str) -> Result<(), PortError> {
        let (parsed, entry) = self.find(spec)?;
        Ok((entry.check)(&parsed)?)
    }

    /// Opens a port.
    ///
    /// # Errors
    /// A spec that cannot be read, an unknown driver, or what the driver found wrong.
    pub fn open(&self, spec: &str) -> Result<Port<Probed>, PortError> {
        let (parsed, entry) = self.find(spec)?;
        Ok(Port::new(spec, (entry.open)(&parsed)?))
    }
}
