//! What the card's specs say.

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
    text: "Pollux's card: IPv4 addresses of its ports, for which it answers ARP and pings by \
           itself, and passes on nothing for others; without them a port passes on all packets",
};

/// Option `mac`.
pub(in super::super) const MAC: SpecOption = SpecOption {
    key: "mac",
    values: "MAC",
    default: "made from the device's name",
    text: "Pollux's card: address of its ports; as streams, of port 0, and those behind it count up",
};

/// Option `loop`.
pub(in super::super) const LOOP: SpecOption = SpecOption {
    key: "loop",
    values: "on|off",
    default: "off",
    text: "Pollux's card: ports 0 and 1, and 2 and 3, are connected to each other behind their MACs, \
           and not to their wires",
};

/// Option `hold`.
pub(in super::super) const HOLD: SpecOption = SpecOption {
    key: "hold",
    values: "NS",
    default: "2000",
    text: "Pollux's card: how long a frame waits at most for others, to be announced with them",
};

/// Option `wake-events`.
pub(in super::super) const WAKE_EVENTS: SpecOption = SpecOption {
    key: "wake-events",
    values: "N",
    default: "1",
    text: "Pollux's card: a loop that sleeps is woken when so many buffers of frames have been \
           announced",
};

/// Option `wake-hold`.
pub(in super::super) const WAKE_HOLD: SpecOption = SpecOption {
    key: "wake-hold",
    values: "NS",
    default: "0",
    text: "Pollux's card: ... or so long after the first of them, whichever comes first",
};

/// Option `clock`.
pub(in super::super) const CLOCK: SpecOption = SpecOption {
    key: "clock",
    values: "NS",
    default: "its own",
    text: "Pollux's card: period of the clock at its timing input, by which its time goes, as in \
           24.95",
};

/// Option `clock-tolerance`.
pub(in super::super) const CLOCK_TOLERANCE: SpecOption = SpecOption {
    key: "clock-tolerance",
    values: "NS",
    default: "nobody looks",
    text: "Pollux's card: how much sooner or later that clock may come; else it counts as early or \
           lost (`timing_early`, `timing_lost`)",
};

/// Option `preset`.
pub(in super::super) const PRESET: SpecOption = SpecOption {
    key: "preset",
    values: "NS",
    default: "none",
    text: "Pollux's card: the time that a start of burst at its timing input sets, from which on \
           frames carry stamps",
};

/// The options that its specs have.
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

/// Longest that frames and loops may be held back, in nanoseconds: a second.
const MOST_HELD: usize = 1_000_000_000;

/// Longest packet: what is left of the largest frame of 9600 bytes without header, a tag of a VLAN
/// and FCS.
const MAX_MTU: usize = 9578;

/// Bytes of an Ethernet header, and of a VLAN's tag.
pub(super) const ETHERNET: usize = 14;
pub(super) const TAG: usize = 4;

/// What a port is to be.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) mtu: usize,
    pub(super) mac: MacAddr,
    /// By port.
    pub(super) ips: Vec<Ipv4Addr>,
    pub(super) promiscuous: bool,
    pub(super) multicast: bool,
    /// Each port hears the other of its pair.
    pub(super) looped: bool,
    /// How long a frame waits at most for others to share its buffer with.
    pub(super) hold: Ns,
    /// When a loop that sleeps is woken.
    pub(super) wake: Wake,
    /// How the card tells the time.
    pub(super) timing: TimingConfig,
}

impl Options {
    /// Reads a spec of a card that is called `device`.
    ///
    /// # Errors
    /// A value that cannot be, or that the card does not offer.
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

    /// The station of a port that is one by itself: each has an address of its own, counted up from
    /// that of port 0.
    pub(super) fn station(&self, port: usize) -> MacAddr {
        let mut station = self.mac;
        let [.., last] = &mut station.0;
        *last = last.wrapping_add(port as u8);
        station
    }

    /// Bytes of the longest frame, a tag included.
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
        // Nobody takes them: a port passes on frames.
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
