//! Configuration of the destination of decisions.

use std::fmt;
use std::net::SocketAddrV4;

use anyhow::{Context, Result, ensure};
use pollux_emulator::config::EmulatorConfig;
use pollux_pmd::net::MacAddr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Destination of decisions. Default: the boards of `pollux-emulator` at their default address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerTo {
    /// IPv4 address and UDP port, as in `10.0.0.2:30100`; or `nobody`: decisions are only recorded
    /// and counted.
    #[schemars(with = "String")]
    pub to: Destination,
    /// UDP source port.
    #[serde(default = "default_port")]
    pub from_port: u16,
    /// MAC address of the neighbour for the address: the host itself, or the router to it. Default:
    /// it is resolved by ARP, and learnt from frames of that address.
    pub mac: Option<String>,
}

/// The destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Destination {
    None,
    To(SocketAddrV4),
}

/// The text for no destination.
const NOBODY: &str = "nobody";

impl TryFrom<String> for Destination {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == NOBODY {
            return Ok(Self::None);
        }
        let address = text.parse().map(Self::To);
        address.map_err(|error| format!("{error}: it must be ADDRESS:PORT, or `{NOBODY}`"))
    }
}

impl From<Destination> for String {
    fn from(to: Destination) -> Self {
        to.to_string()
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str(NOBODY),
            Self::To(address) => address.fmt(f),
        }
    }
}

const fn default_port() -> u16 {
    30_200
}

/// The emulator's boards.
impl Default for AnswerTo {
    fn default() -> Self {
        let peer = EmulatorConfig::default().addresses;
        let to = SocketAddrV4::new(*peer.boards().socket.ip(), peer.decision_port);
        Self {
            to: Destination::To(to),
            from_port: default_port(),
            mac: None,
        }
    }
}

impl AnswerTo {
    pub(super) fn validate(&self) -> Result<()> {
        if let Some(to) = self.address() {
            ensure!(to.port() != 0, "answer.to = {to}: the port is missing");
        }
        self.station().map(drop)
    }

    /// The address, unless there is no destination.
    pub fn address(&self) -> Option<SocketAddrV4> {
        match self.to {
            Destination::None => None,
            Destination::To(address) => Some(address),
        }
    }

    /// The neighbour's MAC address, if it is configured.
    pub fn station(&self) -> Result<Option<MacAddr>> {
        let parse = |mac: &String| {
            mac.parse::<MacAddr>()
                .with_context(|| format!("answer.mac = `{mac}`"))
        };
        self.mac.as_ref().map(parse).transpose()
    }
}
