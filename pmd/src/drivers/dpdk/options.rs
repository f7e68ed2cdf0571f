//! The options of a spec.

use super::arguments;
use crate::driver::filter::Filter;
use crate::spec::{PortSpec, SpecError};

/// What a spec asks for.
pub(super) struct Options {
    /// The device, as DPDK wants to have it named.
    pub(super) devargs: String,
    /// Arguments of EAL.
    pub(super) eal: Option<Vec<String>>,
    pub(super) mtu: Option<u16>,
    pub(super) rules: Vec<Rule>,
    pub(super) timestamps: bool,
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
            // The least that a link of IPv4 must carry (RFC 791 section 3.2).
            bytes @ 68.. => Some(bytes),
            bytes => {
                return Err(spec.bad_value("mtu", &bytes.to_string(), "a number of 68 to 65535"));
            }
        };
        Ok(Self {
            devargs: target.replace(';', ","),
            eal: eal.transpose()?,
            mtu,
            rules: rules(spec)?,
            timestamps: spec.switch("timestamps", false)?,
            filter: Filter::from_spec(spec)?,
        })
    }

    /// The devargs, if they name a device on the PCI bus: `0000:03:00.0` or `03:00.0`.
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

/// UDP destination port, and the receive queue that its datagrams come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) port: u16,
    pub(super) queue: u16,
}

/// Reads `PORT>QUEUE+PORT>QUEUE...`.
fn rules(spec: &PortSpec) -> Result<Vec<Rule>, SpecError> {
    let Some(text) = spec.option("steer") else {
        return Ok(Vec::new());
    };
    let rule = |text: &str| {
        let (port, queue) = text.split_once('>')?;
        Some(Rule {
            port: port.parse().ok()?,
            queue: queue.parse().ok()?,
        })
    };
    text.split('+')
        .map(rule)
        .collect::<Option<_>>()
        .ok_or_else(|| spec.bad_value("steer", text, "UDP ports and queues, as in 6006>0+6007>1"))
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
            ("dpdk:net_null0,steer=x", "6006>0"),
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

    #[test]
    fn rules_are_read() {
        let read = |value: &str| {
            let spec: PortSpec = format!("dpdk:net_tap0,steer={value}").parse().unwrap();
            rules(&spec).map_err(|error| error.to_string())
        };
        let expected = [(6006, 0), (6007, 1)].map(|(port, queue)| Rule { port, queue });
        assert_eq!(read("6006>0+6007>1").unwrap(), expected);
        for bad in ["", "6006", "6006>", "70000>1", "6006>1+"] {
            assert!(read(bad).unwrap_err().contains("6006>0+6007>1"), "{bad}");
        }
    }
}
