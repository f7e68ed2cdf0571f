//! Driver descriptions: name, spec options and features of each driver. Help texts, the validation
//! of specs and docs/ports.md are generated from them.

use std::fmt;

use super::filter::PROMISC;
use super::option::SpecOption;
use crate::spec::{PortSpec, SpecError};

/// Description of a driver; each driver has one as a constant.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Name in front of the colon of a spec.
    pub name: &'static str,
    /// Argument behind the colon that has no key; `None` if the driver takes none.
    pub target: Option<Target>,
    /// Options that a spec accepts.
    pub options: &'static [SpecOption],
    /// One-line summary of the driver.
    pub summary: &'static str,
    /// Features that the driver has; a feature that is not listed is absent.
    pub features: &'static [(Feature, Support)],
    /// Validates the values of options and their combinations without side effects. Target and keys
    /// have been checked before.
    pub check: fn(&PortSpec) -> Result<(), SpecError>,
    /// Whether opening a port has no side effect: up to its start, no device and no file changes,
    /// and no other program is kept from the device.
    pub opening_only_looks: bool,
}

/// Argument of a spec behind the colon, without a key.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its placeholder in the spec's syntax: `IF`.
    pub form: &'static str,
    /// Description: `an interface`.
    pub what: &'static str,
    /// An example value: `eth0`.
    pub example: &'static str,
}

/// Support of a feature by a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Not supported.
    No,
    /// Not supported although users may expect it; the text says why.
    NotOffered(&'static str),
    /// Supported.
    Yes,
    /// Supported with a limit or a condition; the text names it.
    Partly(&'static str),
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No => f.write_str("-"),
            Self::NotOffered(why) => write!(f, "not offered: {why}"),
            Self::Yes => f.write_str("yes"),
            Self::Partly(words) => f.write_str(words),
        }
    }
}

macro_rules! features {
    ($($variant:ident $text:literal,)*) => {
        /// Features of drivers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Feature {
            $(#[doc = $text] $variant,)*
        }

        impl Feature {
            /// All features, in the order of the table.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant,)*];

            /// Short description.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Feature::$variant => $text,)* }
            }
        }
    };
}

features! {
    Receive "receive",
    Send "send",
    MultiQueue "several queues",
    Steering "flows shared out to receive queues",
    Link "link state and its changes",
    Speed "link speed",
    Mtu "MTU set by option",
    Jumbo "frames longer than a buffer, as chains",
    Promiscuous "promiscuous mode",
    Multicast "chosen multicast addresses",
    Statistics "statistics of the device or the kernel",
    KernelStamps "receive stamps of the kernel",
    HardwareStamps "receive stamps of the NIC",
    ChecksumOffload "checksums finished by the device that sends",
    ZeroCopyRx "receive without a copy",
    ZeroCopyTx "send without a copy",
    KernelBacked "enters the kernel to receive or to send",
    Needs "needs",
}

impl Description {
    /// A driver without target, options or features, for struct update syntax (`..`).
    #[must_use]
    pub const fn new(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            target: None,
            options: &[],
            summary,
            features: &[],
            check: |_| Ok(()),
            opening_only_looks: false,
        }
    }

    /// Whether its ports are kernel interfaces with selectable promiscuous mode.
    pub(crate) fn is_filtered_interface(&self) -> bool {
        let has_option = self.options.iter().any(|option| option.key == PROMISC.key);
        let kernel_backed = (Feature::KernelBacked, Support::Yes);
        has_option && self.features.contains(&kernel_backed)
    }

    /// Syntax of its specs, without the options.
    #[must_use]
    pub fn form(&self) -> String {
        match self.target {
            None => self.name.into(),
            Some(target) => format!("{}:{}", self.name, target.form),
        }
    }

    /// One line for `--help`: syntax, summary, options.
    #[must_use]
    pub fn usage(&self) -> String {
        let option = |option: &SpecOption| format!("{}={}", option.key, option.values);
        let options: Vec<_> = self.options.iter().map(option).collect();
        let between = if options.is_empty() { "" } else { "; " };
        let (form, summary) = (self.form(), self.summary);
        format!("{form:<18} {summary}{between}{}", options.join(", "))
    }

    /// Support of a feature.
    #[must_use]
    pub fn support(&self, feature: Feature) -> Support {
        self.features
            .iter()
            .find(|(has, _)| *has == feature)
            .map_or(Support::No, |&(_, support)| support)
    }

    /// Refuses a spec with a missing or extra target, with options that the driver does not have
    /// (so that a typo is not ignored), or with invalid values.
    ///
    /// # Errors
    /// Names what the driver accepts.
    pub fn check(&self, spec: &PortSpec) -> Result<(), SpecError> {
        let wrong_target = |what: String| SpecError::Target {
            spec: spec.to_string(),
            what,
        };
        match (self.target, spec.target()) {
            (None, Some(given)) => {
                let what = format!("{} takes no `{given}`, only key=value", self.name);
                return Err(wrong_target(what));
            }
            (Some(Target { what, example, .. }), None) => {
                let name = self.name;
                let what = format!("{name} needs {what}, as in {name}:{example}");
                return Err(wrong_target(what));
            }
            _ => {}
        }
        let known: Vec<_> = self.options.iter().map(|option| option.key).collect();
        spec.expect_options(&known)?;
        (self.check)(spec)
    }
}
