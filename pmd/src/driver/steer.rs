//! Which receive queue datagrams come to, by rules in the NIC: the option that all drivers with
//! such rules spell alike.

use super::SpecOption;
use crate::spec::{PortSpec, SpecError};

/// Option `steer`.
pub const STEER: SpecOption = SpecOption {
    key: "steer",
    values: "PORT:QUEUE+...",
    default: "none",
    text: "UDP destination ports, each with the receive queue that the NIC gives its datagrams to, \
           by rules that go with the port; queues are counted from the port's first",
};

/// Datagrams to one UDP port go to one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steer {
    /// UDP destination port.
    pub port: u16,
    /// Counted from the port's first queue.
    pub queue: u16,
}

impl Steer {
    /// Reads [`STEER`]: `5000:0+5001:1`.
    ///
    /// # Errors
    /// A value that is no list of ports and queues.
    pub fn from_spec(spec: &PortSpec) -> Result<Vec<Self>, SpecError> {
        let Some(text) = spec.option(STEER.key) else {
            return Ok(Vec::new());
        };
        let rule = |rule: &str| {
            let (port, queue) = rule.split_once(':')?;
            Some(Self {
                port: port.parse().ok()?,
                queue: queue.parse().ok()?,
            })
        };
        let rules: Option<Vec<_>> = text.split('+').map(rule).collect();
        rules.ok_or_else(|| {
            let expected = "UDP ports with a queue each, as in 5000:0+5001:1";
            spec.bad_value(STEER.key, text, expected)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rules_are_read() {
        let read = |options: &str| {
            let spec: PortSpec = format!("af_xdp:eth0{options}").parse().unwrap();
            Steer::from_spec(&spec).map_err(|error| error.to_string())
        };
        assert_eq!(read(""), Ok(Vec::new()));
        let rule = |port, queue| Steer { port, queue };
        let two = read(",steer=5000:0+5001:1");
        assert_eq!(two, Ok(vec![rule(5000, 0), rule(5001, 1)]));
        for bad in ["", "5000", "5000:", "70000:1", "5000:1+", "5000>1"] {
            let error = read(&format!(",steer={bad}")).unwrap_err();
            assert!(error.contains("5000:0+5001:1"), "{bad}: {error}");
        }
    }
}
