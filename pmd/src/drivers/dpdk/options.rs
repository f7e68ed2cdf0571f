//! Options of a spec.

use super::arguments;
use crate::driver::filter::Filter;
use crate::driver::flow::FlowRule;
use crate::spec::{PortSpec, SpecError};

/// Parsed options of a spec.
pub(super) struct Options {
    /// Devargs of the device.
    pub(super) devargs: String,
    /// Arguments of EAL.
    pub(super) eal: Option<Vec<String>>,
    pub(super) mtu: Option<u16>,
    pub(super) steer: Vec<FlowRule>,
    /// Received frames carry time stamps of the device.
    pub(super) hardware_stamps: bool,
    pub(super) filter: Filter,
}

impl Options {
    pub(super) fn parse(spec: &PortSpec) -> Result<Self, SpecError> {
        let target = spec.target().unwrap_or_default();
        let eal = spec
            .option("eal")
            .map(|text| arguments::parse(text).map_err(|why| spec.bad_value("eal", text, &why)));
        let mtu = match spec.parse_option("mtu", 0, "a number of 68 to 65535")? {
            0 if spec.option("mtu").is_none() => None,
            // The minimum MTU of an IPv4 link (RFC 791 section 3.2).
            bytes @ 68.. => Some(bytes),
            bytes => {
                return Err(spec.bad_value("mtu", &bytes.to_string(), "a number of 68 to 65535"));
            }
        };
        Ok(Self {
            devargs: target.replace(';', ","),
            eal: eal.transpose()?,
            mtu,
            steer: FlowRule::from_spec(spec)?,
            hardware_stamps: spec.choice("timestamps", [("none", false), ("hardware", true)])?,
            filter: Filter::from_spec(spec)?,
        })
    }

    /// The devargs, if they denote a device on the PCI bus: `0000:03:00.0` or `03:00.0`.
    pub(super) fn pci(&self) -> Option<&str> {
        let address = self.devargs.split(',').next().unwrap_or_default();
        let mut parts = address.rsplit(':');
        let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
        let slot = parts
            .next()?
            .split_once('.')
            .filter(|(slot, f)| is_hex(slot) && is_hex(f));
        let bus = parts.next().filter(|bus| is_hex(bus));
        let domain = parts.next().is_none_or(is_hex) && parts.next().is_none();
        (slot.is_some() && bus.is_some() && domain).then_some(&*self.devargs)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::drivers::dpdk::DESCRIPTION;

    fn read(spec: &str) -> Result<Options, String> {
        let spec: PortSpec = spec.parse().unwrap();
        DESCRIPTION
            .check(&spec)
            .map_err(|error| error.to_string())?;
        Options::parse(&spec).map_err(|error| error.to_string())
    }

    #[test]
    fn specs_are_read() {
        let options = read("dpdk:net_af_packet0;iface=eth0,mtu=9000,promisc").unwrap();
        assert_eq!(options.devargs, "net_af_packet0,iface=eth0");
        assert_eq!(
            (options.mtu, options.filter.promiscuous),
            (Some(9000), true)
        );
        for (device, on_pci) in [
            ("0000:03:00.0", true),
            ("03:00.1", true),
            ("0000:03:00.0;representor=[0;1]", true),
            ("net_null0", false),
            ("net_ring:x.0", false),
        ] {
            let options = read(&format!("dpdk:{device}")).unwrap();
            assert_eq!(options.pci().is_some(), on_pci, "{device}");
        }
    }

    #[test]
    fn mistakes_are_told_before_dpdk_is_touched() {
        for (spec, expected) in [
            ("dpdk", "needs a device of DPDK"),
            ("dpdk:net_null0,size=3", "has no option `size`"),
            ("dpdk:net_null0,mtu=12", "68 to 65535"),
            (
                "dpdk:net_null0,eal=--lcores=0-3",
                "cores and threads are the program's",
            ),
            (
                "dpdk:net_null0,eal=-l+0",
                "cores and threads are the program's",
            ),
            ("dpdk:net_null0,eal=--help", "no option `--help`"),
            ("dpdk:net_null0,eal=64", "follows no option"),
            ("dpdk:net_null0,steer=x", "5000:0"),
            ("dpdk:net_null0,timestamps=on", "none or hardware"),
        ] {
            let error = read(spec).err().unwrap();
            assert!(error.contains(expected), "{spec}: {error}");
        }
        let options = read("dpdk:net_null0,eal=--no-huge+-m+64+-a+0:1.0;x=1").unwrap();
        assert_eq!(
            options.eal.unwrap(),
            ["--no-huge", "-m", "64", "-a", "0:1.0,x=1"]
        );
    }
}
