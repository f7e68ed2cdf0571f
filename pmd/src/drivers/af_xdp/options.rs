//! Options of a port spec.

use std::ops::RangeInclusive;

use super::abi;
use crate::driver::SpecOption;
use crate::driver::filter::{self, Filter};
use crate::driver::flow::{FlowRule, STEER};
use crate::spec::{PortSpec, SpecError};

pub(super) const OPTIONS: &[SpecOption] = &[
    SpecOption {
        key: "queue",
        values: "N",
        default: "0",
        text: "first of the NIC's queues that the port uses. Ports of one program can use \
               different queues of one interface: they share the XDP program",
    },
    SpecOption {
        key: "ring",
        values: "FRAMES",
        default: "as configured",
        text: "frames in each ring, rounded up to a power of two",
    },
    SpecOption {
        key: "mode",
        values: "auto|copy|zerocopy",
        default: "auto",
        text: "whether the NIC accesses the pool's memory directly; `auto` if it can",
    },
    SpecOption {
        key: "attach",
        values: "auto|native|skb",
        default: "auto",
        text: "where the XDP program runs: in the NIC's driver, or behind it, which any NIC \
               supports; `auto`: in the driver if that supports it",
    },
    SpecOption {
        key: "other",
        values: "port|kernel|drop",
        default: "port",
        text: "destination of frames of other protocols than UDP over IPv4 and IPv6: the port, the \
               kernel, or dropped (counted)",
    },
    SpecOption {
        key: "ports",
        values: "LO-HI",
        default: "all",
        text: "UDP destination ports of the port; all others are `other`, which is then `kernel` \
               by default",
    },
    STEER,
    SpecOption {
        key: "wakeup",
        values: "on|off",
        default: "on",
        text: "enter the kernel only when it requests a wakeup",
    },
    SpecOption {
        key: "busy-poll",
        values: "USEC",
        default: "off",
        text: "the kernel polls the NIC in this program's calls, for this time each",
    },
    SpecOption {
        key: "checksums",
        values: "verify|trust",
        default: "verify",
        text: "`trust` marks all frames as verified: on a virtual link the sender leaves partial \
               checksums, and AF_XDP does not report it",
    },
    filter::PROMISC,
    filter::MULTICAST,
];

/// Handling of frames that are not the port's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    Port,
    Kernel,
    Drop,
}

pub(super) struct Options {
    pub(super) interface: String,
    /// The first of the port's queues, if it is specified.
    pub(super) queue: Option<u16>,
    pub(super) ring: Option<usize>,
    /// XDP_COPY, XDP_ZEROCOPY or neither.
    pub(super) mode: u16,
    /// XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE or neither.
    pub(super) attach: u32,
    pub(super) other: Other,
    pub(super) ports: Option<RangeInclusive<u16>>,
    pub(super) steer: Vec<FlowRule>,
    pub(super) need_wakeup: bool,
    pub(super) busy_poll: Option<u32>,
    pub(super) trust_checksums: bool,
    pub(super) filter: Filter,
}

impl Options {
    /// The first of the port's queues, by the NIC's numbers.
    pub(super) fn first_queue(&self) -> u16 {
        self.queue.unwrap_or(0)
    }

    pub(super) fn parse(spec: &PortSpec) -> Result<Self, SpecError> {
        let ports = spec.option("ports").map(|text| {
            range(text).ok_or_else(|| {
                spec.bad_value("ports", text, "one UDP port, or LO-HI as in 5000-5099")
            })
        });
        let ports = ports.transpose()?;
        let others = [
            ("port", Other::Port),
            ("kernel", Other::Kernel),
            ("drop", Other::Drop),
        ];
        let other = match (spec.option("other"), &ports) {
            (None, Some(_)) => Other::Kernel,
            (Some(text @ "port"), Some(_)) => {
                return Err(spec.bad_value("other", text, "kernel or drop, where ports= is given"));
            }
            _ => spec.choice("other", others)?,
        };
        let modes = [
            ("auto", 0),
            ("copy", libc::XDP_COPY),
            ("zerocopy", libc::XDP_ZEROCOPY),
        ];
        let places = [
            ("auto", 0),
            ("native", abi::XDP_FLAGS_DRV_MODE),
            ("skb", abi::XDP_FLAGS_SKB_MODE),
        ];
        let (mode, attach) = (spec.choice("mode", modes)?, spec.choice("attach", places)?);
        if mode == libc::XDP_ZEROCOPY && attach == abi::XDP_FLAGS_SKB_MODE {
            return Err(spec.bad_value("attach", "skb", "native, where mode=zerocopy is given"));
        }
        Ok(Self {
            interface: spec.target().unwrap_or_default().into(),
            queue: spec.number("queue", 0..=4095)?.map(|n| n as u16),
            ring: spec.number("ring", 2..=1 << 20)?,
            mode,
            attach,
            other,
            ports,
            steer: FlowRule::from_spec(spec)?,
            need_wakeup: spec.switch("wakeup", true)?,
            busy_poll: spec.number("busy-poll", 1..=1_000_000)?.map(|n| n as u32),
            trust_checksums: spec.choice("checksums", [("verify", false), ("trust", true)])?,
            filter: Filter::from_spec(spec)?,
        })
    }
}

/// `5000` or `5000-5099`.
fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    (low <= high).then_some(low..=high)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(spec: &str) -> Result<Options, String> {
        Options::parse(&spec.parse().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_ours_is_the_kernels_unless_said() {
        let options = parse("af_xdp:eth0").unwrap();
        assert_eq!((options.other, options.ports), (Other::Port, None));
        let options = parse("af_xdp:eth0,ports=5000-5099").unwrap();
        assert_eq!(options.other, Other::Kernel);
        assert_eq!(options.ports, Some(5000..=5099));
        let options = parse("af_xdp:eth0,ports=7,other=drop").unwrap();
        assert_eq!((options.other, options.ports), (Other::Drop, Some(7..=7)));
    }

    #[test]
    fn nonsense_is_named() {
        for (option, text) in [
            ("ports=9-8", "LO-HI"),
            ("ports=70000", "LO-HI"),
            ("ports=1,other=port", "kernel or drop"),
            ("other=x", "port, kernel or drop"),
            ("mode=fast", "auto, copy or zerocopy"),
            ("attach=hw", "auto, native or skb"),
            ("steer=5000", "5000:0+5001:1"),
            ("busy-poll=0", "a number of 1 to 1000000"),
            ("mode=zerocopy,attach=skb", "native, where"),
            ("queue=4096", "a number of 0 to 4095"),
            ("checksums=no", "verify or trust"),
        ] {
            let error = parse(&format!("af_xdp:eth0,{option}")).err().unwrap();
            assert!(error.contains(text), "{error}");
        }
    }
}
