//! Drivers by name.

use crate::driver::{Description, Driver};
use crate::drivers;
use crate::port::{Port, PortError, Probed};
use crate::spec::PortSpec;

/// Opens the device that a spec names.
pub type Open = Box<dyn Fn(&PortSpec) -> Result<Box<dyn Driver>, PortError> + Send + Sync>;

struct Entry {
    description: Description,
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

    /// Adds a driver, or replaces the one of that name. `open` gets specs that have passed
    /// [`Description::check`].
    pub fn register(
        &mut self,
        description: Description,
        open: impl Fn(&PortSpec) -> Result<Box<dyn Driver>, PortError> + Send + Sync + 'static,
    ) {
        self.entries
            .retain(|entry| entry.description.name != description.name);
        self.entries.push(Entry {
            description,
            open: Box::new(open),
        });
    }

    /// What the drivers are.
    pub fn descriptions(&self) -> impl Iterator<Item = &Description> {
        self.entries.iter().map(|entry| &entry.description)
    }

    /// One line for each driver.
    pub fn usage(&self) -> impl Iterator<Item = String> {
        self.descriptions().map(Description::usage)
    }

    /// Reads a spec, finds its driver and has it checked, without opening anything.
    fn find(&self, spec: &str) -> Result<(PortSpec, &Entry), PortError> {
        let parsed: PortSpec = spec.parse()?;
        let Some(entry) = self
            .entries
            .iter()
            .find(|entry| entry.description.name == parsed.driver())
        else {
            let known: Vec<_> = self.descriptions().map(|known| known.name).collect();
            return Err(PortError::UnknownDriver {
                driver: parsed.driver().into(),
                known: known.join(", "),
            });
        };
        entry.description.check(&parsed)?;
        Ok((parsed, entry))
    }

    /// Checks that a spec can be read, that there is such a driver, and that it knows all the
    /// options and their values, without opening anything.
    ///
    /// # Errors
    /// What is wrong with the spec.
    pub fn check(&self, spec: &str) -> Result<(), PortError> {
        self.find(spec).map(drop)
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
