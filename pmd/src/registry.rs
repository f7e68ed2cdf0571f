//! `Registry`: drivers by name.

use crate::driver::filter::{self, MULTICAST};
use crate::driver::{Description, Driver};
#[cfg(feature = "pci")]
use crate::drivers::pci::{self, PciDriver};
use crate::drivers::rps;
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

/// A spec that was checked, with its driver.
struct Found<'a> {
    /// Without the options that are for all drivers.
    spec: PortSpec,
    /// Receive queues in software.
    rps: Option<u16>,
    entry: &'a Entry,
}

/// Drivers that a program can open ports with. A program can add its own (for a simulated card, for
/// example) to the built-in ones.
pub struct Registry {
    entries: Vec<Entry>,
    /// Drivers that are not built in, with the feature that builds each.
    absent: Vec<(&'static str, &'static str)>,
    grant: Option<MemoryGrant>,
    /// Drivers of PCI devices from outside this crate.
    #[cfg(feature = "pci")]
    pci: Vec<PciDriver>,
}

impl Registry {
    /// A registry without drivers.
    pub(crate) fn empty() -> Self {
        Self {
            entries: Vec::new(),
            absent: Vec::new(),
            grant: None,
            #[cfg(feature = "pci")]
            pci: Vec::new(),
        }
    }

    /// Records a driver that this build does not contain.
    pub(crate) fn mark_absent(&mut self, driver: &'static str, feature: &'static str) {
        self.absent.push((driver, feature));
    }

    /// Grants packet memory to the devices and peers of all ports that this registry opens.
    #[must_use]
    pub fn granting(mut self, grant: MemoryGrant) -> Self {
        self.grant = Some(grant);
        self
    }

    /// Adds a driver, or replaces the one with that name. `open` receives only specs that have
    /// passed [`Description::check`].
    pub fn register(
        &mut self,
        description: Description,
        open: impl Fn(&PortSpec) -> Result<Box<dyn Driver>, PortError> + Send + Sync + 'static,
    ) {
        self.register_either(description, move |spec, _| open(spec));
    }

    /// Adds a driver whose device writes into packet memory, or replaces the one with that name.
    /// Its ports are refused ([`PortError::NoGrant`]) if the registry has no
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

    /// As above, for a driver that needs a grant for some of its ports.
    pub(crate) fn register_either(
        &mut self,
        description: Description,
        open: impl Fn(&PortSpec, Option<MemoryGrant>) -> Result<Box<dyn Driver>, PortError>
        + Send
        + Sync
        + 'static,
    ) {
        let name = description.name;
        let entry = Entry {
            description,
            open: Box::new(open),
        };
        let mut entries = self.entries.iter_mut();
        match entries.find(|known| known.description.name == name) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    /// Adds a driver to the table of `pci:ADDRESS`, in front of those for the same device. Also
    /// registers the driver `pci`, which replaces any other of that name.
    #[cfg(feature = "pci")]
    #[must_use]
    pub fn pci_driver(mut self, driver: PciDriver) -> Self {
        self.pci.insert(0, driver);
        let drivers = self.pci.clone();
        self.register_granted(pci::description(&drivers), move |spec, grant| {
            pci::open(&drivers, spec, grant)
        });
        self
    }

    /// Descriptions of the drivers.
    pub fn descriptions(&self) -> impl Iterator<Item = &Description> {
        self.entries.iter().map(|entry| &entry.description)
    }

    /// Usage texts, one line for each driver.
    pub fn usage(&self) -> impl Iterator<Item = String> {
        self.descriptions().map(Description::usage)
    }

    /// Parses a spec and checks it against its driver's description, without opening anything.
    fn find(&self, spec: &str) -> Result<Found<'_>, PortError> {
        self.find_spec(spec.parse()?)
    }

    /// As above, for a parsed spec.
    fn find_spec(&self, mut spec: PortSpec) -> Result<Found<'_>, PortError> {
        let rps = rps::take(&mut spec)?;
        let entry = self.entry(&spec)?;
        Ok(Found { spec, rps, entry })
    }

    /// Opens a port under the name of its whole spec.
    fn open_found(&self, name: String, found: &Found<'_>) -> Result<Port<Probed>, PortError> {
        let driver = (found.entry.open)(&found.spec, self.grant)?;
        let driver = match found.rps {
            None => driver,
            Some(queues) => rps::steer(driver, queues, name.clone())?,
        };
        Ok(Port::new(name, driver))
    }

    /// Finds the driver of a spec and checks the spec against its description.
    fn entry(&self, parsed: &PortSpec) -> Result<&Entry, PortError> {
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
        entry.description.check(parsed)?;
        Ok(entry)
    }

    /// Checks that a spec is well-formed, that its driver exists, and that the driver accepts all
    /// options and their values, without opening anything.
    ///
    /// # Errors
    /// The fault of the spec.
    pub fn check(&self, spec: &str) -> Result<(), PortError> {
        self.find(spec).map(drop)
    }

    /// Probes a port as far as that has no side effect: opens it if its driver [opens ports without
    /// side effects](Description::opening_only_looks), else returns `None`.
    ///
    /// # Errors
    /// An invalid spec, or a missing device.
    pub fn look(&self, spec: &str) -> Result<Option<Port<Probed>>, PortError> {
        let looks = self.find(spec)?.entry.description.opening_only_looks;
        looks.then(|| self.open(spec)).transpose()
    }

    /// Opens a port.
    ///
    /// # Errors
    /// An invalid spec, an unknown driver, or a fault that the driver has found.
    pub fn open(&self, spec: &str) -> Result<Port<Probed>, PortError> {
        self.open_for_groups(spec, &[])
    }

    /// Opens a port by a spec that a [builder](crate::builders) has made or that was parsed.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_spec(&self, spec: &PortSpec) -> Result<Port<Probed>, PortError> {
        self.open_found(spec.to_string(), &self.find_spec(spec.clone())?)
    }

    /// Opens a port that also receives frames for multicast groups, as if the spec's option
    /// `multicast` named them. A driver without that option has no address filter.
    ///
    /// # Errors
    /// As [`open`](Self::open), and more groups than the device can receive.
    pub fn open_for_groups(
        &self,
        spec: &str,
        groups: &[MacAddr],
    ) -> Result<Port<Probed>, PortError> {
        let mut found = self.find(spec)?;
        let options = found.entry.description.options;
        if options.iter().any(|option| option.key == MULTICAST.key) {
            filter::add_groups(&mut found.spec, groups);
        }
        self.open_found(spec.into(), &found)
    }

    /// Opens a port in promiscuous mode if it is a kernel interface and its spec does not set the
    /// mode. The port's name is the unchanged spec.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_promiscuous(&self, spec: &str) -> Result<Port<Probed>, PortError> {
        let mut found = self.find(spec)?;
        if found.entry.description.is_filtered_interface() {
            found.spec = found.spec.with_default(filter::PROMISC.key, "on");
        }
        self.open_found(spec.into(), &found)
    }

    /// Whether a spec names a kernel interface that is not in promiscuous mode; `promiscuous` is
    /// the mode of a spec that does not set it.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn filters(&self, spec: &str, promiscuous: bool) -> Result<bool, PortError> {
        let found = self.find(spec)?;
        let takes_all = found.spec.switch(filter::PROMISC.key, promiscuous)?;
        Ok(found.entry.description.is_filtered_interface() && !takes_all)
    }
}

/// Returns the grant that a port requires.
///
/// # Errors
/// The registry has no grant.
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
    fn a_driver_that_is_not_built_in_differs_from_an_unknown_one() {
        let mut registry = Registry::empty();
        registry.mark_absent("tap", "tap");
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
        // A registered driver of that name is available.
        registry.register(
            crate::drivers::null::DESCRIPTION,
            crate::drivers::null::open,
        );
        registry.mark_absent("null", "null");
        assert_eq!(said(&registry, "null"), None);
    }
}
