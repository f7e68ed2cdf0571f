//! Options of the card's specs.

use std::net::Ipv4Addr;

use pollux_mempool::time::{Ns, WireTime};

use super::events::Wake;
use super::nic::MAX_PORTS;
use super::timing::{ExternalClock, TimingConfig};
use crate::driver::SpecOption;
use crate::driver::filter::{Filter, Multicast};
use crate::net::MacAddr;
use crate::port::PortError;
use crate::spec::PortSpec;

/// Option `ip`.
pub(in super::super) const IP: SpecOption = SpecOption {
    key: "ip",
    values: "IP+IP...",
    default: "none",
    text: "Pollux's card: IPv4 addresses of its ports: it answers ARP and pings for them, and \
           drops packets for others; without them a port passes all packets",
};

/// Option `mac`.
pub(in super::super) const MAC: SpecOption = SpecOption {
    key: "mac",
    values: "MAC",
    default: "derived from the device's name",
    text: "Pollux's card: address of its ports; as streams, of port 0, with the following ports \
           counting up",
};

/// Option `loop`.
pub(in super::super) const LOOP: SpecOption = SpecOption {
    key: "loop",
    values: "on|off",
    default: "off",
    text: "Pollux's card: connects ports 0 and 1, and 2 and 3, behind their MACs instead of to \
           their wires",
};

/// Option `hold`.
pub(in super::super) const HOLD: SpecOption = SpecOption {
    key: "hold",
    values: "NS",
    default: "2000",
    text: "Pollux's card: longest time that a frame waits for others, to be announced with them",
};

/// Option `wake-events`.
pub(in super::super) const WAKE_EVENTS: SpecOption = SpecOption {
    key: "wake-events",
    values: "N",
    default: "1",
    text: "Pollux's card: number of announced buffers that wakes a sleeping loop",
};

/// Option `wake-hold`.
pub(in super::super) const WAKE_HOLD: SpecOption = SpecOption {
    key: "wake-hold",
    values: "NS",
    default: "0",
    text: "Pollux's card: ... or the time after the first of them, whichever is first",
};

/// Option `clock`.
pub(in super::super) const CLOCK: SpecOption = SpecOption {
    key: "clock",
    values: "NS",
    default: "internal",
    text: "Pollux's card: period of the clock at its timing input, which drives its time, as in \
           24.95",
};

/// Option `clock-tolerance`.
pub(in super::super) const CLOCK_TOLERANCE: SpecOption = SpecOption {
    key: "clock-tolerance",
    values: "NS",
    default: "not checked",
    text: "Pollux's card: how much earlier or later an edge of that clock may be; beyond it counts \
           as early or lost (`timing_early`, `timing_lost`)",
};

/// Option `preset`.
pub(in super::super) const PRESET: SpecOption = SpecOption {
    key: "preset",
    values: "NS",
    default: "none",
    text: "Pollux's card: the time that a start of burst at its timing input sets; frames carry \
           stamps from then on",
};

/// All options of the specs.
pub(in super::super) const OPTIONS: &[&str] = &[
    "mtu",
    "promisc",
    "multicast",
    IP.key,
    MAC.key,
    LOOP.key,
    HOLD.key,
    WAKE_EVENTS.key,
    WAKE_HOLD.key,
    CLOCK.key,
    CLOCK_TOLERANCE.key,
    PRESET.key,
];

/// Maximum time for which frames and interrupts may be held back, in nanoseconds: a second.
const MOST_HELD: usize = 1_000_000_000;

/// Longest packet: the largest frame of 9600 bytes without header, VLAN tag and FCS.
const MAX_MTU: usize = 9578;

/// Length of an Ethernet header, and of a VLAN tag, in bytes.
pub(super) const ETHERNET: usize = 14;
pub(super) const TAG: usize = 4;

/// Parsed options.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) mtu: usize,
    pub(super) mac: MacAddr,
    /// By port.
    pub(super) ips: Vec<Ipv4Addr>,
    pub(super) promiscuous: bool,
    pub(super) multicast: bool,
    /// Each port is looped back to the other of its pair.
    pub(super) looped: bool,
    /// Maximum time for which a frame waits for others in its buffer.
    pub(super) hold: Ns,
    /// Interrupt moderation for a sleeping loop.
    pub(super) wake: Wake,
    /// Time source of the card.
    pub(super) timing: TimingConfig,
}

impl Options {
    /// Parses a spec of a card with the name `device`.
    ///
    /// # Errors
    /// A value that is invalid, or that the card does not support.
    pub(super) fn read(spec: &PortSpec, device: &str) -> Result<Self, PortError> {
        let filter = Filter::from_spec(spec)?;
        let multicast = match filter.multicast {
            Multicast::All => true,
            Multicast::Listed(groups) if groups.is_empty() => false,
            Multicast::Listed(_) => {
                return Err(PortError::Unsupported {
                    port: spec.to_string(),
                    asked: "chosen multicast addresses".into(),
                    offered: "none, or multicast=all".into(),
                });
            }
        };
        let made = MacAddr::made_of(device.as_bytes(), 0);
        let station = "the address of a station, as in 02:00:00:00:00:01";
        let mac = spec.parse_option(MAC.key, made, station)?;
        if !mac.is_unicast() {
            return Err(spec.bad_value(MAC.key, &mac.to_string(), station).into());
        }
        Ok(Self {
            mtu: spec.number("mtu", 68..=MAX_MTU)?.unwrap_or(1500),
            mac,
            ips: ips(spec)?,
            promiscuous: filter.promiscuous,
            multicast,
            looped: spec.switch(LOOP.key, false)?,
            hold: held(spec, HOLD.key, 2_000)?,
            wake: Wake {
                events: spec.number(WAKE_EVENTS.key, 1..=0xffff)?.unwrap_or(1) as u16,
                hold: held(spec, WAKE_HOLD.key, 0)?,
            },
            timing: timing(spec)?,
        })
    }

    /// Station address of a port with an IPv4 address: each has its own, counted up from that of
    /// port 0.
    pub(super) fn station(&self, port: usize) -> MacAddr {
        let mut station = self.mac;
        let [.., last] = &mut station.0;
        *last = last.wrapping_add(port as u8);
        station
    }

    /// Length of the longest frame in bytes, including a tag.
    pub(super) fn longest(&self) -> usize {
        self.mtu + ETHERNET + TAG
    }
}

fn held(spec: &PortSpec, key: &str, default: usize) -> Result<Ns, PortError> {
    let ns = spec.number(key, 0..=MOST_HELD)?.unwrap_or(default);
    Ok(Ns(ns as u64))
}

fn timing(spec: &PortSpec) -> Result<TimingConfig, PortError> {
    let tolerance = spec.number(CLOCK_TOLERANCE.key, 0..=MOST_HELD)?;
    let clock = match spec.option(CLOCK.key) {
        Some(text) => Some(ExternalClock {
            period: period(text)
                .ok_or_else(|| spec.bad_value(CLOCK.key, text, "nanoseconds, below 65536"))?,
            tolerance: tolerance.map(|ns| Ns(ns as u64)),
        }),
        None if tolerance.is_some() => {
            return Err(PortError::Unsupported {
                port: spec.to_string(),
                asked: format!("{} without a {}", CLOCK_TOLERANCE.key, CLOCK.key),
                offered: format!("both, as in {}=25,{}=3", CLOCK.key, CLOCK_TOLERANCE.key),
            });
        }
        None => None,
    };
    let preset = spec.option(PRESET.key);
    let preset = preset.map(|_| spec.parse_option(PRESET.key, 0, "nanoseconds"));
    Ok(TimingConfig {
        clock,
        preset: preset.transpose()?.map(WireTime),
        // No events of edges: a port only passes on frames.
        events: 0,
    })
}

/// A period in ns / 65536.
fn period(ns: &str) -> Option<u32> {
    let parts = (ns.parse::<f64>().ok()? * 65536.0).round();
    (1.0..=f64::from(u32::MAX))
        .contains(&parts)
        .then_some(parts as u32)
}

fn ips(spec: &PortSpec) -> Result<Vec<Ipv4Addr>, PortError> {
    let Some(list) = spec.option(IP.key) else {
        return Ok(Vec::new());
    };
    let expected = "up to four IPv4 addresses with a + between, as in 10.0.0.1+10.0.1.1";
    let found: Result<Vec<Ipv4Addr>, _> = list.split('+').map(str::parse).collect();
    found
        .ok()
        .filter(|ips| ips.len() <= MAX_PORTS && !ips.iter().any(Ipv4Addr::is_unspecified))
        .ok_or_else(|| spec.bad_value(IP.key, list, expected).into())
}
