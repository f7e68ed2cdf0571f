//! What a port's spec says of a physical function.

use super::functions::VfConfig;
use super::registers::{LONGEST, POOLS};
use super::vlans::ENTRIES;
use crate::driver::SpecOption;
use crate::driver::filter::Filter;
use crate::driver::rss::Rss;
use crate::net::MacAddr;
use crate::spec::{PortSpec, SpecError};

/// Option `vlans`, of the virtual function's driver too.
pub(crate) const VLANS: SpecOption = SpecOption {
    key: "vlans",
    values: "ID+ID...",
    default: "none",
    text: "82576 with virtual functions, and the functions: VLANs whose tagged frames are \
           received; without virtual functions all are",
};

/// Options of the physical function alone.
pub(crate) const VFS: SpecOption = SpecOption {
    key: "vfs",
    values: "0-7",
    default: "0",
    text: "82576: number of virtual functions, each a device that a process or a virtual machine \
           can use",
};
pub(crate) const VF_MACS: SpecOption = SpecOption {
    key: "vf-macs",
    values: "MAC+MAC...",
    default: "derived from the port's",
    text: "82576: addresses of the virtual functions, which then cannot choose others",
};
pub(crate) const VF_VLANS: SpecOption = SpecOption {
    key: "vf-vlans",
    values: "ID+ID...",
    default: "none",
    text: "82576: the VLAN of each virtual function; the NIC tags and untags its frames",
};

/// Header and check sequence of a frame without a tag.
pub(crate) const OVERHEAD: u32 = 18;
/// Bytes of a VLAN tag.
pub(crate) const TAG: u32 = 4;

/// What a port is to be.
#[derive(Debug)]
pub(crate) struct Options {
    pub(super) mtu: u32,
    pub(super) filter: Filter,
    pub(super) vlans: Vec<u16>,
    pub(super) vfs: usize,
    vf_macs: Option<Vec<MacAddr>>,
    vf_vlans: Option<Vec<u16>>,
    pub(super) rss: Rss,
}

impl Options {
    /// Reads a spec.
    ///
    /// # Errors
    /// Values that cannot be, or that contradict each other.
    pub(super) fn parse(spec: &PortSpec) -> Result<Self, SpecError> {
        let mtu = mtu(spec)?;
        Ok(Self {
            mtu,
            ..Self::of_functions(spec)?
        })
    }

    /// Reads all but the MTU, of which each driver has a limit of its own.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub(crate) fn of_functions(spec: &PortSpec) -> Result<Self, SpecError> {
        let options = Self {
            mtu: 1500,
            filter: Filter::from_spec(spec)?,
            vlans: vlans(spec, VLANS.key)?.unwrap_or_default(),
            vfs: spec
                .number(VFS.key, 0..=usize::from(POOLS) - 1)?
                .unwrap_or(0),
            vf_macs: macs(spec)?,
            vf_vlans: vlans(spec, VF_VLANS.key)?,
            rss: Rss::from_spec(spec)?,
        };
        let counts = [
            (VF_MACS.key, options.vf_macs.as_ref().map(Vec::len)),
            (VF_VLANS.key, options.vf_vlans.as_ref().map(Vec::len)),
        ];
        for (key, count) in counts {
            if count.is_some_and(|count| count != options.vfs) {
                let value = spec.option(key).unwrap_or_default();
                let expected = format!("one for each of the {} virtual functions", options.vfs);
                return Err(spec.bad_value(key, value, &expected));
            }
        }
        if options.vf_vlans.is_some() && !options.vlans.is_empty() {
            // The NIC untags broadcasts for all pools, or for none.
            let value = spec.option(VLANS.key).unwrap_or_default();
            return Err(spec.bad_value(VLANS.key, value, "no VLANs where there are vf-vlans"));
        }
        Ok(options)
    }

    /// Longest frame with its check sequence, without a tag.
    pub(super) fn longest(&self) -> u32 {
        self.mtu + OVERHEAD
    }

    /// Configuration of each virtual function of a port with this address.
    pub(super) fn vf_configs(&self, own: MacAddr) -> Vec<VfConfig> {
        let mac = |vf: usize| match &self.vf_macs {
            Some(macs) => macs.get(vf).copied(),
            None => Some(made_mac(own, vf)),
        };
        let vlan = |vf| self.vf_vlans.as_ref()?.get(vf).copied();
        let one = |vf| {
            Some(VfConfig {
                mac: mac(vf)?,
                fixed: self.vf_macs.is_some(),
                vlan: vlan(vf),
            })
        };
        (0..self.vfs).filter_map(one).collect()
    }
}

/// A locally administered address (IEEE 802-2014 section 8.2.2) for a virtual function without a
/// configured one. It differs between the seven functions of a port, and from the port's own.
fn made_mac(MacAddr([first, rest @ ..]): MacAddr, vf: usize) -> MacAddr {
    let number = (vf as u8 + 1) & 7;
    let [b, c, d, e, f] = rest;
    MacAddr([(first & !1 | 2) ^ number << 4, b, c, d, e, f])
}

/// Reads the option `mtu`, which both drivers have.
pub(crate) fn mtu(spec: &PortSpec) -> Result<u32, SpecError> {
    let most = (LONGEST - OVERHEAD - TAG) as usize;
    Ok(spec.number("mtu", 68..=most)?.unwrap_or(1500) as u32)
}

/// Reads a list of VLANs.
pub(crate) fn vlans(spec: &PortSpec, key: &str) -> Result<Option<Vec<u16>>, SpecError> {
    let Some(text) = spec.option(key) else {
        return Ok(None);
    };
    // 0 is no VLAN, 4095 is reserved (IEEE 802.1Q-2018 section 9.6).
    let id = |text: &str| text.parse().ok().filter(|id| (1..=4094).contains(id));
    let ids: Option<Vec<_>> = text.split('+').map(id).collect();
    ids.filter(|ids| ids.len() <= ENTRIES / 2)
        .map(Some)
        .ok_or_else(|| {
            let expected = "up to 16 VLANs of 1 to 4094 with a + between, as in 100+200";
            spec.bad_value(key, text, expected)
        })
}

fn macs(spec: &PortSpec) -> Result<Option<Vec<MacAddr>>, SpecError> {
    let Some(text) = spec.option(VF_MACS.key) else {
        return Ok(None);
    };
    let one = |text: &str| text.parse().ok().filter(|mac: &MacAddr| mac.is_unicast());
    let macs: Option<Vec<MacAddr>> = text.split('+').map(one).collect();
    let differ = |macs: &Vec<MacAddr>| {
        let mut seen = macs.clone();
        seen.sort_unstable_by_key(|mac| mac.0);
        seen.dedup();
        seen.len() == macs.len()
    };
    macs.filter(differ).map(Some).ok_or_else(|| {
        let expected = "different addresses of stations with a + between, as in \
                        02:00:00:00:00:01+02:00:00:00:00:02";
        spec.bad_value(VF_MACS.key, text, expected)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(options: &str) -> Result<Options, String> {
        let spec: PortSpec = format!("pci:0000:01:00.0{options}").parse().unwrap();
        Options::parse(&spec).map_err(|error| error.to_string())
    }

    #[test]
    fn functions_are_configured_as_the_spec_says() {
        let own = MacAddr([0x52, 0x54, 0, 1, 2, 3]);
        assert_eq!(read("").unwrap().vf_configs(own), []);
        let made = read(",vfs=7").unwrap().vf_configs(own);
        let mut macs: Vec<_> = made.iter().map(|vf| vf.mac.0).collect();
        macs.push(own.0);
        macs.sort_unstable();
        macs.dedup();
        assert_eq!(macs.len(), 8, "all different");
        assert!(made.iter().all(|vf| vf.mac.is_unicast() && !vf.fixed));
        let two = ",vfs=2,vf-macs=02:00:00:00:00:01+02:00:00:00:00:02,vf-vlans=100+200";
        let config = |last, vlan| VfConfig {
            mac: MacAddr([2, 0, 0, 0, 0, last]),
            fixed: true,
            vlan: Some(vlan),
        };
        assert_eq!(
            read(two).unwrap().vf_configs(own),
            [config(1, 100), config(2, 200)]
        );
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (options, expected) in [
            (",vfs=8", "0 to 7"),
            (",vf-vlans=100", "one for each of the 0 virtual functions"),
            (
                ",vfs=2,vf-vlans=100",
                "one for each of the 2 virtual functions",
            ),
            (",vfs=1,vf-macs=01:00:00:00:00:01", "different addresses"),
            (
                ",vfs=2,vf-macs=02:00:00:00:00:01+02:00:00:00:00:01",
                "different addresses",
            ),
            (",vfs=1,vf-vlans=100,vlans=5", "no VLANs where"),
            (",vlans=0", "1 to 4094"),
            (",mtu=9707", "68 to 9706"),
        ] {
            let error = read(options).unwrap_err();
            assert!(error.contains(expected), "{options}: {error}");
        }
    }
}
