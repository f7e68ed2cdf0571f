//! Which frames a port is to receive beside its own: the options that all drivers with an address
//! filter spell alike.

use super::SpecOption;
use crate::net::MacAddr;
use crate::spec::{PortSpec, SpecError};

/// Option `promisc`.
pub const PROMISC: SpecOption = SpecOption {
    key: "promisc",
    values: "on|off",
    default: "off",
    text: "receive frames for other stations too",
};

/// Option `multicast`.
pub const MULTICAST: SpecOption = SpecOption {
    key: "multicast",
    values: "MAC+MAC...|all",
    default: "none",
    text: "multicast addresses to receive beside those that the kernel listens to",
};

/// Frames that a port receives beside those for its own address and for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those for other stations too.
    pub promiscuous: bool,
    /// Those for groups of stations.
    pub multicast: Multicast,
}

/// Groups of stations whose frames are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Multicast {
    /// These.
    Listed(Vec<MacAddr>),
    /// All.
    All,
}

impl Default for Multicast {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl Filter {
    /// Reads [`PROMISC`] and [`MULTICAST`].
    ///
    /// # Errors
    /// A value that is neither `all` nor a list of group addresses.
    pub fn from_spec(spec: &PortSpec) -> Result<Self, SpecError> {
        let promiscuous = spec.switch(PROMISC.key, false)?;
        let multicast = match spec.option(MULTICAST.key) {
            None => Multicast::default(),
            Some("all") => Multicast::All,
            Some(list) => {
                let group = |text: &str| {
                    let mac: Option<MacAddr> = text.parse().ok();
                    // The first bit on the wire tells a group (IEEE 802-2014 section 8.2.2).
                    mac.filter(|mac| mac.0[0] & 1 == 1 && *mac != MacAddr::BROADCAST)
                        .ok_or_else(|| {
                            let expected = "all, or group addresses with a + between, \
                                            as in 01:00:5e:00:00:fb+33:33:00:00:00:fb";
                            spec.bad_value(MULTICAST.key, text, expected)
                        })
                };
                Multicast::Listed(list.split('+').map(group).collect::<Result<_, _>>()?)
            }
        };
        Ok(Self {
            promiscuous,
            multicast,
        })
    }
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
                error.contains("is no valid multicast: all, or group"),
                "{error}"
            );
        }
        assert!(read("promisc=yes").unwrap_err().contains("on or off"));
    }
}
