//! Drivers by name.

use crate::driver::filter::{self, MULTICAST};
use crate::driver::{Description, Driver};
use crate::grant::MemoryGrant;
use crate::net::MacAddr;
use crate::port::{Port, PortError, Probed};
use crate::spec::PortSpec;

/// Opens the device that a spec names, with the grant of the registry.
type Open =
    Box<dyn Fn(&PortSpec, Option<MemoryGrant>) -> Result<Box<dyn Driver>, PortError> + Send + Sync>;

struct Entry {
    description: Description,
    open: Open,
}

/// The drivers that a program can open ports with. A program adds its own (a simulated card, say)
/// beside the built-in ones.
pub struct Registry {
    entries: Vec<Entry>,
    /// Drivers that are not built in, and the feature that has each built.
    absent: Vec<(&'static str, &'static str)>,
    grant: Option<MemoryGrant>,
}

impl Registry {
    /// No drivers.
    pub(crate) fn empty() -> Self {
        Self {
            entries: Vec::new(),
            absent: Vec::new(),
            grant: None,
        }
    }

    /// There is such a driver, but this build has it not.
    pub(crate) fn lacks(&mut self, driver: &'static str, feature: &'static str) {
        self.absent.push((driver, feature));
    }

    /// Grants packet memory to the devices and peers of all ports that are opened by this registry.
    #[must_use]
    pub fn granting(mut self, grant: MemoryGrant) -> Self {
        self.grant = Some(grant);
        self
    }

    /// Adds a driver, or replaces the one of that name. `open` gets specs that have passed
    /// [`Description::check`].
    pub fn register(
        &mut self,
        description: Description,
        open: impl Fn(&PortSpec) -> Result<Box<dyn Driver>, PortError> + Send + Sync + 'static,
    ) {
        self.register_either(description, move |spec, _| open(spec));
    }

    /// Adds a driver, or replaces the one of that name, whose device writes into packet memory by
    /// itself. Its ports are refused ([`PortError::NoGrant`]) where the registry has no
    /// [grant](Self::granting).
    pub fn register_granted(
        &mut self,
        description: Description,
        open: impl Fn(&PortSpec, MemoryGrant) -> Result<Box<dyn Driver>, PortError>
        + Send
        + Sync
        + 'static,
    ) {
        self.register_either(description, move |spec, grant| {
            open(spec, required(spec, grant)?)
        });
    }

    /// The same for a driver that needs a grant for some of its ports.
    pub(crate) fn register_either(
        &mut self,
        description: Description,
        open: impl Fn(&PortSpec, Option<MemoryGrant>) -> Result<Box<dyn Driver>, PortError>
        + Send
        + Sync
        + 'static,
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
            let mut absent = self.absent.iter();
            if let Some((driver, feature)) = absent.find(|(name, _)| *name == parsed.driver()) {
                return Err(PortError::NotBuiltIn { driver, feature });
            }
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

    /// Looks at a port as far as that is possible without opening it: the port, of which nothing has
    /// been touched, where its driver can [tell so much](Description::opening_only_looks), else `None`.
    ///
    /// # Errors
    /// A spec that is wrong, or what is not there.
    pub fn look(&self, spec: &str) -> Result<Option<Port<Probed>>, PortError> {
        let (_, entry) = self.find(spec)?;
        let looks = entry.description.opening_only_looks;
        looks.then(|| self.open(spec)).transpose()
    }

    /// Opens a port.
    ///
    /// # Errors
    /// A spec that cannot be read, an unknown driver, or what the driver found wrong.
    pub fn open(&self, spec: &str) -> Result<Port<Probed>, PortError> {
        self.open_for_groups(spec, &[])
    }

    /// Opens a port that receives the frames for groups of stations, too, as if they stood in the
    /// spec's option `multicast`. A driver without that option filters nothing.
    ///
    /// # Errors
    /// As [`open`](Self::open), and where the device cannot receive so many groups.
    pub fn open_for_groups(
        &self,
        spec: &str,
        groups: &[MacAddr],
    ) -> Result<Port<Probed>, PortError> {
        let (mut parsed, entry) = self.find(spec)?;
        let options = entry.description.options;
        if options.iter().any(|option| option.key == MULTICAST.key) {
            filter::add_groups(&mut parsed, groups);
        }
        Ok(Port::new(spec, (entry.open)(&parsed, self.grant)?))
    }

    /// Opens a port that receives frames for other stations too, where it is an interface of the
    /// kernel whose spec does not say otherwise. Its name is the spec as it was given.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_promiscuous(&self, spec: &str) -> Result<Port<Probed>, PortError> {
        let (mut parsed, entry) = self.find(spec)?;
        if entry.description.is_filtered_interface() {
            parsed = parsed.with_default(filter::PROMISC.key, "on");
        }
        Ok(Port::new(spec, (entry.open)(&parsed, self.grant)?))
    }

    /// Whether a spec names an interface of the kernel that receives what is addressed to it alone,
    /// where `promiscuous` is what holds without a word of it in the spec.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn filters(&self, spec: &str, promiscuous: bool) -> Result<bool, PortError> {
        let (parsed, entry) = self.find(spec)?;
        let takes_all = parsed.switch(filter::PROMISC.key, promiscuous)?;
        Ok(entry.description.is_filtered_interface() && !takes_all)
    }
}

/// The grant that a port cannot do without.
///
/// # Errors
/// There is none.
pub(crate) fn required(
    spec: &PortSpec,
    grant: Option<MemoryGrant>,
) -> Result<MemoryGrant, PortError> {
    grant.ok_or_else(|| PortError::NoGrant {
        port: spec.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_not_built_in_is_told_from_none() {
        let mut registry = Registry::empty();
        registry.lacks("tap", "tap");
        let said = |registry: &Registry, spec| {
            let checked = registry.check(spec);
            checked.err().map(|error| error.to_string())
        };
        assert_eq!(
            said(&registry, "tap:pol0").as_deref(),
            Some("driver `tap` is not built in: build with the feature tap")
        );
        assert_eq!(
            said(&registry, "tab:pol0").as_deref(),
            Some("no driver `tab`; there are: ")
        );
        // Whoever brings a driver of that name has it.
        registry.register(
            crate::drivers::null::DESCRIPTION,
            crate::drivers::null::open,
        );
        registry.lacks("null", "null");
        assert_eq!(said(&registry, "null"), None);
    }
}
