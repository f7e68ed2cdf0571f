//! What a driver is: its name, the options of its specs, what it can do. Help texts, the checks
//! of specs and docs/ports.md all come from here.

use std::fmt;

use super::filter::PROMISC;
use super::option::SpecOption;
use crate::spec::{PortSpec, SpecError};

/// A driver, as it is told to people. A constant of each driver.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// What stands in front of the colon of a spec.
    pub name: &'static str,
    /// What stands behind the colon without a key; `None` if nothing may.
    pub target: Option<Target>,
    /// The options that a spec may have.
    pub options: &'static [SpecOption],
    /// What the driver is, in a line.
    pub summary: &'static str,
    /// What it can do; what is not in the list it cannot.
    pub features: &'static [(Feature, Support)],
    /// Finds mistakes in the values of options, and in how they go together, without touching
    /// anything. Target and keys have been checked before.
    pub check: fn(&PortSpec) -> Result<(), SpecError>,
    /// Whether to open a port only looks: no device and no file is changed by it, up to its start, and
    /// nobody else is kept from it.
    pub opening_only_looks: bool,
}

/// What stands behind the colon of a spec without a key.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its place in the spec's form: `IF`.
    pub form: &'static str,
    /// What it is: `an interface`.
    pub what: &'static str,
    /// One that could be: `eth0`.
    pub example: &'static str,
}

/// Whether a driver has a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It has not.
    No,
    /// It has not, though one might expect it; why, in a few words.
    NotOffered(&'static str),
    /// It has.
    Yes,
    /// It has, with a limit or a condition; a few words.
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
        /// What a driver can have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Feature {
            $(#[doc = $text] $variant,)*
        }

        impl Feature {
            /// All features, in the order of the table.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant,)*];

            /// What it is, in a few words.
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
    /// A driver without target, options or features, to be completed by `..`.
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

    /// Whether its ports are interfaces of the kernel that can be opened promiscuous or not.
    pub(crate) fn is_filtered_interface(&self) -> bool {
        let has_option = self.options.iter().any(|option| option.key == PROMISC.key);
        let kernel_backed = (Feature::KernelBacked, Support::Yes);
        has_option && self.features.contains(&kernel_backed)
    }

    /// The form of its specs, without the options.
    #[must_use]
    pub fn form(&self) -> String {
        match self.target {
            None => self.name.into(),
            Some(target) => format!("{}:{}", self.name, target.form),
        }
    }

    /// One line for `--help`: form, what it is, options.
    #[must_use]
    pub fn usage(&self) -> String {
        let option = |option: &SpecOption| format!("{}={}", option.key, option.values);
        let options: Vec<_> = self.options.iter().map(option).collect();
        let between = if options.is_empty() { "" } else { "; " };
        let (form, summary) = (self.form(), self.summary);
        format!("{form:<18} {summary}{between}{}", options.join(", "))
    }

    /// Whether it has a feature.
    #[must_use]
    pub fn support(&self, feature: Feature) -> Support {
        self.features
            .iter()
            .find(|(has, _)| *has == feature)
            .map_or(Support::No, |&(_, support)| support)
    }

    /// Refuses a spec with a target too many or too few, with options that the driver does not
    /// have (so that a typo is not ignored), or with values that cannot be.
    ///
    /// # Errors
    /// Says what the driver has.
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
