//! Receive address filter: the options `promisc`, `multicast` and `unicast`, spelled alike by all
//! drivers with an address filter.

use super::option::SpecOption;
use crate::net::MacAddr;
use crate::spec::{PortSpec, SpecError};

/// Option `promisc`.
pub const PROMISC: SpecOption = SpecOption {
    key: "promisc",
    values: "on|off",
    default: "off",
    text: "also receive frames for other stations",
};

/// Option `multicast`.
pub const MULTICAST: SpecOption = SpecOption {
    key: "multicast",
    values: "MAC+MAC...|all",
    default: "none",
    text: "multicast addresses to receive in addition to those of the kernel",
};

/// Option `unicast`.
pub const UNICAST: SpecOption = SpecOption {
    key: "unicast",
    values: "MAC+MAC...",
    default: "none",
    text: "further unicast addresses to receive",
};

/// Frames that a port receives besides those for its own address and broadcast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Frames for other hosts too.
    pub promiscuous: bool,
    /// Frames for these hosts.
    pub unicast: Vec<MacAddr>,
    /// Frames for multicast groups.
    pub multicast: Multicast,
}

/// Multicast groups whose frames a port receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Multicast {
    /// These groups.
    Listed(Vec<MacAddr>),
    /// All groups.
    All,
}

impl Default for Multicast {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl Filter {
    /// Reads [`PROMISC`], [`UNICAST`] and [`MULTICAST`].
    ///
    /// # Errors
    /// A value that is not a list of addresses of the option's kind, nor `all` where that is
    /// allowed.
    pub fn from_spec(spec: &PortSpec) -> Result<Self, SpecError> {
        let expected = "addresses of stations with a + between, as in \
                        02:00:00:00:00:01+02:00:00:00:00:02";
        let unicast = spec.option(UNICAST.key).map_or(Ok(Vec::new()), |list| {
            let bad = |text: &str| spec.bad_value(UNICAST.key, text, expected);
            addresses(list, MacAddr::is_unicast, bad)
        });
        let multicast = match spec.option(MULTICAST.key) {
            None => Multicast::default(),
            Some("all") => Multicast::All,
            Some(list) => {
                // The first bit on the wire marks a group address (IEEE 802-2014 section 8.2.2).
                let is_group = |mac: MacAddr| mac.0[0] & 1 == 1 && mac != MacAddr::BROADCAST;
                let expected = "all, or group addresses with a + between, as in \
                                01:00:5e:00:00:fb+33:33:00:00:00:fb";
                let bad = |text: &str| spec.bad_value(MULTICAST.key, text, expected);
                Multicast::Listed(addresses(list, is_group, bad)?)
            }
        };
        Ok(Self {
            promiscuous: spec.switch(PROMISC.key, false)?,
            unicast: unicast?,
            multicast,
        })
    }
}

/// Adds multicast groups to those that a spec names.
pub(crate) fn add_groups(spec: &mut PortSpec, groups: &[MacAddr]) {
    let mut list = spec.option(MULTICAST.key).unwrap_or_default().to_owned();
    if list == "all" {
        return;
    }
    for group in groups {
        let group = group.to_string();
        if !list
            .split('+')
            .any(|known| known.eq_ignore_ascii_case(&group))
        {
            let between = if list.is_empty() { "" } else { "+" };
            list.extend([between, &group]);
        }
    }
    if !list.is_empty() {
        spec.set_option(MULTICAST.key, list);
    }
}

/// Addresses separated by `+`, each of which satisfies the predicate.
fn addresses(
    list: &str,
    is_such: impl Fn(MacAddr) -> bool,
    bad: impl Fn(&str) -> SpecError,
) -> Result<Vec<MacAddr>, SpecError> {
    let one = |text: &str| {
        let mac: Option<MacAddr> = text.parse().ok();
        mac.filter(|&mac| is_such(mac)).ok_or_else(|| bad(text))
    };
    list.split('+').map(one).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(options: &str) -> Result<Filter, String> {
        let spec: PortSpec = format!("tap:x,{options}").parse().unwrap();
        Filter::from_spec(&spec).map_err(|error| error.to_string())
    }

    #[test]
    fn stations_are_listed() {
        let two = read("unicast=02:00:00:00:00:01+52:54:00:00:00:01").unwrap();
        let stations = [[2, 0, 0, 0, 0, 1], [0x52, 0x54, 0, 0, 0, 1]];
        assert_eq!(two.unicast, stations.map(MacAddr));
        for bad in ["", "all", "01:00:5e:00:00:01", "02:00:00:00:00:01+"] {
            let error = read(&format!("unicast={bad}")).unwrap_err();
            assert!(error.contains("addresses of stations"), "{error}");
        }
    }

    #[test]
    fn groups_are_added_to_those_of_the_spec() {
        let groups = [[1, 0, 0x5e, 0, 0, 0xfb], [1, 0, 0x5e, 0, 0, 1]].map(MacAddr);
        let added = |text: &str, groups: &[MacAddr]| {
            let mut spec: PortSpec = text.parse().unwrap();
            add_groups(&mut spec, groups);
            spec.to_string()
        };
        let both = "multicast=01:00:5e:00:00:fb+01:00:5e:00:00:01";
        assert_eq!(added("tap:x", &groups), format!("tap:x,{both}"));
        assert_eq!(added("tap:x", &[]), "tap:x");
        assert_eq!(added("tap:x,multicast=all", &groups), "tap:x,multicast=all");
        assert_eq!(
            added("tap:x,multicast=01:00:5E:00:00:FB,promisc", &groups),
            "tap:x,multicast=01:00:5E:00:00:FB+01:00:5e:00:00:01,promisc=on"
        );
    }

    #[test]
    fn groups_are_listed_or_all() {
        assert_eq!(read(""), Ok(Filter::default()));
        let two = read("multicast=01:00:5e:00:00:fb+33:33:00:00:00:01,promisc").unwrap();
        assert!(two.promiscuous);
        let groups = [[1, 0, 0x5e, 0, 0, 0xfb], [0x33, 0x33, 0, 0, 0, 1]];
        assert_eq!(two.multicast, Multicast::Listed(groups.map(MacAddr).into()));
        assert_eq!(read("multicast=all").unwrap().multicast, Multicast::All);
        for bad in [
            "",
            "02:00:00:00:00:01",
            "ff:ff:ff:ff:ff:ff",
            "01:00:5e:00:00:01+",
        ] {
            let error = read(&format!("multicast={bad}")).unwrap_err();
            assert!(
                error.contains("is not a valid multicast: all, or group"),
                "{error}"
            );
        }
        assert!(read("promisc=yes").unwrap_err().contains("on or off"));
    }
}
