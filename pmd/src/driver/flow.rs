//! Flow rules: steer frames to receive queues by their headers.

use std::fmt;
use std::str::FromStr;

use super::SpecOption;
use crate::spec::{PortSpec, SpecError};

/// Option `steer`, for all drivers whose devices support rules.
pub const STEER: SpecOption = SpecOption {
    key: "steer",
    values: "PORT:QUEUE+...",
    default: "none",
    text: "UDP destination ports, each with the receive queue that the NIC directs it to, by rules \
           that are removed with the port; queues are counted from the port's first",
};

/// Match criteria of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlowMatch {
    /// UDP datagrams with this destination port.
    UdpPort(u16),
}

/// Steers matching frames to one receive queue. Written `PORT:QUEUE` in specs and texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FlowRule {
    /// Match criteria.
    pub matches: FlowMatch,
    /// Receive queue, counted from the port's first.
    pub queue: u16,
}

impl FlowRule {
    /// Steers UDP datagrams with a destination port to a queue.
    #[must_use]
    pub const fn udp_port(port: u16, queue: u16) -> Self {
        Self {
            matches: FlowMatch::UdpPort(port),
            queue,
        }
    }

    /// Reads [`STEER`]: `5000:0+5001:1`.
    ///
    /// # Errors
    /// A value that is not a list of ports and queues.
    pub fn from_spec(spec: &PortSpec) -> Result<Vec<Self>, SpecError> {
        let Some(text) = spec.option(STEER.key) else {
            return Ok(Vec::new());
        };
        let rules: Result<Vec<_>, _> = text.split('+').map(str::parse).collect();
        rules.map_err(|BadFlowRule| {
            let expected = "UDP ports with a queue each, as in 5000:0+5001:1";
            spec.bad_value(STEER.key, text, expected)
        })
    }

    /// Why these rules are invalid for so many receive queues: the request, and what the port
    /// offers.
    pub(crate) fn refusal(rules: &[Self], rx_queues: u16) -> Option<(String, String)> {
        let queue = rules.iter().map(|rule| rule.queue).max()?;
        (queue >= rx_queues).then(|| {
            let asked = format!("steering to queue {queue}");
            (
                asked,
                format!("queues 0 to {}", rx_queues.saturating_sub(1)),
            )
        })
    }
}

/// The error for a text that is not a flow rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a flow rule: write a UDP port and a receive queue, as in 5000:0")]
pub struct BadFlowRule;

impl FromStr for FlowRule {
    type Err = BadFlowRule;

    fn from_str(text: &str) -> Result<Self, BadFlowRule> {
        let rule = text.split_once(':').and_then(|(port, queue)| {
            Some(Self::udp_port(port.parse().ok()?, queue.parse().ok()?))
        });
        rule.ok_or(BadFlowRule)
    }
}

impl fmt::Display for FlowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FlowMatch::UdpPort(port) = self.matches;
        write!(f, "{port}:{}", self.queue)
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
            FlowRule::from_spec(&spec).map_err(|error| error.to_string())
        };
        assert_eq!(read(""), Ok(Vec::new()));
        let rules = vec![FlowRule::udp_port(5000, 0), FlowRule::udp_port(5001, 1)];
        let text: Vec<_> = rules.iter().map(FlowRule::to_string).collect();
        assert_eq!(text.join("+"), "5000:0+5001:1");
        assert_eq!(read(",steer=5000:0+5001:1"), Ok(rules));
        for bad in ["", "5000", "5000:", "70000:1", "5000:1+", "5000>1"] {
            let error = read(&format!(",steer={bad}")).unwrap_err();
            assert!(error.contains("5000:0+5001:1"), "{bad}: {error}");
        }
    }
}
