//! What is emulated: a TOML file, the flags of the program, or the defaults of the demonstration.

use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use pollux_faults::FaultRates;
use pollux_mempool::time::Ns;
use pollux_pmd::net::{MacAddr, UdpEndpoint};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use pollux_na62::physics::model::{EventModel, ModelConfig, ModelError};

/// Slots of 25 ns in a second.
pub const SLOTS_PER_SECOND: u64 = 40_000_000;
/// Nanoseconds of a slot.
pub const SLOT_NS: u64 = 25;
/// Slots from one event to the next where the rate is 0, which is "as fast as possible":
/// detector time then passes as at 100 kHz.
pub const UNPACED_SPACING: u64 = 400;
/// Most events of a run: with the widest spacing (one second), a timestamp stays below 2^62, and
/// at 100 kHz they last for a week.
pub const MAX_EVENTS: u64 = 1 << 36;
/// Most readout boards.
pub const MAX_BOARDS: u8 = 16;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The text is not TOML, or has a key or a value that does not belong there.
    #[error("emulator configuration: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A value is outside its range.
    #[error("emulator configuration: {key} = {value}: must be {expected}")]
    Range {
        /// The key, with its table.
        key: &'static str,
        /// The value that was given.
        value: String,
        /// What would be valid.
        expected: &'static str,
    },
    /// The events cannot be made like this.
    #[error("emulator configuration: [physics]: {0}")]
    Physics(#[from] ModelError),
}

/// How events follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// As a Poisson process: gaps are exponential, behind one slot of 25 ns that is dead, so that a
    /// slot has one event at most.
    #[default]
    Poisson,
    /// At equal distances.
    Regular,
}

impl FromStr for Arrival {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "poisson" => Ok(Self::Poisson),
            "regular" => Ok(Self::Regular),
            _ => Err("must be poisson or regular"),
        }
    }
}

/// The beam comes in spills: so long with events, so long without. The time stamps begin again at
/// `first_timestamp` in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spill {
    /// Milliseconds of a spill; 0: the beam is always there.
    pub length_ms: u32,
    /// Milliseconds from the end of a spill to the next.
    pub gap_ms: u32,
    /// Whether the numbers of the frames begin again at 0 in each spill as well.
    pub restart_sequence: bool,
}

impl Spill {
    fn validate(self) -> Result<(), ConfigError> {
        let Self {
            length_ms, gap_ms, ..
        } = self;
        let range = "0 (no spills) to 100000, so that 32 bits of time stamp are unique in a spill";
        in_range("spill.length_ms", length_ms, length_ms <= 100_000, range)?;
        let range = "0 to 100000, and 0 where spill.length_ms is";
        let valid = gap_ms <= 100_000 && (length_ms > 0 || gap_ms == 0);
        in_range("spill.gap_ms", gap_ms, valid, range)
    }
}

/// All that determines what the boards send, and to whom. Equal configurations send equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmulatorConfig {
    /// Seed of everything random: events and faults. 0 to 2^63 - 1, as TOML has no larger number.
    pub seed: u64,
    /// Readout boards, 1 to 16: each reads an equal range of photomultipliers.
    pub boards: u8,
    /// Events to send; 0: until stopped.
    pub events: u64,
    /// Events a second, up to 40 000 000; 0: as fast as possible. The spacing of the events is a
    /// whole number of 25 ns slots, so that the true rate is the nearest that this allows.
    pub rate: u64,
    /// How events follow each other.
    pub arrival: Arrival,
    /// Events in each frame, as far as they fit: a frame goes out when its last event has
    /// happened.
    pub events_per_frame: u16,
    /// Time stamp of the first slot of the run, and of each spill, in slots of 25 ns.
    pub first_timestamp: u64,
    /// The spills of the beam.
    pub spill: Spill,
    /// What happens in the detector.
    pub physics: ModelConfig,
    /// Who sends to whom.
    pub addresses: Addresses,
    /// What goes wrong on the way.
    pub faults: Faults,
}

/// Who sends to whom. Board b sends from `src_port + b` to `trigger_port + b`.
///
/// The default addresses are from the range that RFC 2544 reserves for benchmarks, and the
/// default ports are below those that Linux gives to clients, except for the trigger's: 58913 is
/// where the experiment's farm expects level-0 data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Addresses {
    /// Station of the boards; where none is given, that of the interface, or 02:00:00:00:00:02.
    #[serde(with = "text")]
    pub src_mac: Option<MacAddr>,
    /// Address of the boards; where none is given, 198.18.0.2 in frames, and whatever the kernel
    /// takes in sockets.
    pub src_ip: Option<Ipv4Addr>,
    /// Source port of board 0.
    pub src_port: u16,
    /// Station of the trigger; where none is given, it is asked for by ARP on an interface, and
    /// is 02:00:00:00:00:01 elsewhere.
    #[serde(with = "text")]
    pub trigger_mac: Option<MacAddr>,
    /// Address of the trigger.
    pub trigger_ip: Ipv4Addr,
    /// The port at which the trigger receives board 0.
    pub trigger_port: u16,
    /// The port of the boards to which the trigger sends its decisions.
    pub decision_port: u16,
}

impl Addresses {
    /// Where the boards are, with the port of board 0.
    #[must_use]
    pub fn boards(&self) -> UdpEndpoint {
        let ip = self.src_ip.unwrap_or(Ipv4Addr::new(198, 18, 0, 2));
        UdpEndpoint {
            mac: self.src_mac.unwrap_or(MacAddr([0x02, 0, 0, 0, 0, 0x02])),
            socket: SocketAddrV4::new(ip, self.src_port),
        }
    }

    /// Where the trigger is, with the port for board 0.
    #[must_use]
    pub fn trigger(&self) -> UdpEndpoint {
        UdpEndpoint {
            mac: self
                .trigger_mac
                .unwrap_or(MacAddr([0x02, 0, 0, 0, 0, 0x01])),
            socket: SocketAddrV4::new(self.trigger_ip, self.trigger_port),
        }
    }
}

/// What goes wrong on the way: the probability of each fault, for each frame. A frame has at
/// most one fault, so that each has exactly one consequence in the trigger's books.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Never sent.
    pub lost: f64,
    /// Sent `late_us` after its time.
    pub late: f64,
    /// Delay of late frames in microseconds, up to one second.
    pub late_us: u32,
    /// Sent twice.
    pub duplicated: f64,
    /// Sent behind the next frame of the same board.
    pub reordered: f64,
    /// Sent with one byte changed.
    pub corrupted: f64,
}

impl Default for EmulatorConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            boards: 4,
            events: 1_000_000,
            rate: 100_000,
            arrival: Arrival::default(),
            events_per_frame: 32,
            first_timestamp: 1_000_000,
            spill: Spill::default(),
            physics: ModelConfig::default(),
            addresses: Addresses::default(),
            faults: Faults::default(),
        }
    }
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            src_mac: None,
            src_ip: None,
            src_port: 30_000,
            trigger_mac: None,
            trigger_ip: Ipv4Addr::new(198, 18, 0, 1),
            trigger_port: 58_913,
            decision_port: 30_100,
        }
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            lost: 0.0,
            late: 0.0,
            late_us: 2_000,
            duplicated: 0.0,
            reordered: 0.0,
            corrupted: 0.0,
        }
    }
}

impl Faults {
    /// Checks every value against its range.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let Faults {
            lost,
            late,
            late_us,
            duplicated,
            reordered,
            corrupted,
        } = *self;
        let probabilities = [
            ("faults.lost", lost),
            ("faults.late", late),
            ("faults.duplicated", duplicated),
            ("faults.reordered", reordered),
            ("faults.corrupted", corrupted),
        ];
        for (key, p) in probabilities {
            in_range(key, p, (0.0..=1.0).contains(&p), "a probability, 0 to 1")?;
        }
        let sum = probabilities.iter().map(|(_, p)| p).sum::<f64>();
        in_range(
            "the sum of all faults",
            sum,
            sum <= 1.0,
            "at most 1: a frame has one fault at most",
        )?;
        in_range(
            "faults.late_us",
            late_us,
            (1..=1_000_000).contains(&late_us),
            "1 to 1000000",
        )
    }

    /// The rates as the injector takes them.
    pub(crate) fn rates(&self) -> FaultRates {
        let late_by = Ns(u64::from(self.late_us) * 1000);
        FaultRates {
            loss: self.lost,
            delay: self.late,
            delay_by: (late_by, late_by),
            duplicate: self.duplicated,
            reorder: self.reordered,
            corrupt: self.corrupted,
        }
    }
}

impl EmulatorConfig {
    /// Reads and checks a configuration; what it does not mention is as in the demonstration.
    ///
    /// # Errors
    /// A key that does not exist, a value of another type, or one outside its range.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text)?;
        config.validate()?;
        Ok(config)
    }

    /// The whole configuration as text that [`from_toml`](Self::from_toml) reads back.
    ///
    /// # Errors
    /// A number above 2^63 - 1, which TOML does not have: a configuration that is not valid.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// Checks every value against its range.
    ///
    /// # Errors
    /// Names the first value outside, and the range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const TOML_MAX: u64 = i64::MAX as u64;
        let boards = u16::from(self.boards);
        let ports = |first: u16| first > 0 && first.checked_add(boards).is_some();
        in_range("seed", self.seed, self.seed <= TOML_MAX, "0 to 2^63 - 1")?;
        in_range(
            "boards",
            boards,
            (1..=MAX_BOARDS).contains(&self.boards),
            "1 to 16",
        )?;
        in_range(
            "events",
            self.events,
            self.events <= MAX_EVENTS,
            "0 (until stopped) to 2^36",
        )?;
        let rate = "0 (as fast as possible) to 40000000 events a second";
        in_range("rate", self.rate, self.rate <= SLOTS_PER_SECOND, rate)?;
        let per_frame = self.events_per_frame;
        in_range(
            "events_per_frame",
            per_frame,
            (1..=512).contains(&per_frame),
            "1 to 512",
        )?;
        let first = self.first_timestamp;
        in_range(
            "first_timestamp",
            first,
            first <= 1 << 56,
            "0 to 2^56 slots of 25 ns",
        )?;

        self.spill.validate()?;
        EventModel::new(self.physics)?;

        let (src, trigger) = (self.addresses.boards(), self.addresses.trigger());
        let (src_port, trigger_port) = (src.socket.port(), trigger.socket.port());
        for (key, mac) in [
            ("addresses.src_mac", src.mac),
            ("addresses.trigger_mac", trigger.mac),
        ] {
            in_range(key, mac, mac.is_unicast(), "the address of one station")?;
        }
        for (key, socket) in [
            ("addresses.src_ip", src.socket),
            ("addresses.trigger_ip", trigger.socket),
        ] {
            in_range(
                key,
                socket.ip(),
                is_host(*socket.ip()),
                "the address of one host",
            )?;
        }
        let range = "above 0, with a port for every board below 65536";
        in_range("addresses.src_port", src_port, ports(src_port), range)?;
        in_range(
            "addresses.trigger_port",
            trigger_port,
            ports(trigger_port),
            range,
        )?;
        let decision = self.addresses.decision_port;
        in_range("addresses.decision_port", decision, decision > 0, "above 0")?;

        self.faults.validate()
    }

    /// Slots of 25 ns from one event to the next, on average.
    #[must_use]
    pub fn spacing(&self) -> u64 {
        match self.rate {
            0 => UNPACED_SPACING,
            rate => ((SLOTS_PER_SECOND + rate / 2) / rate).max(1),
        }
    }

    /// Events of a run that is not stopped: with `events` = 0, so many that none gets there.
    #[must_use]
    pub fn event_limit(&self) -> u64 {
        match self.events {
            0 => MAX_EVENTS,
            events => events,
        }
    }

    /// Both ends of the stream of a board.
    #[must_use]
    pub fn endpoints(&self, board: u8) -> (UdpEndpoint, UdpEndpoint) {
        let of_board = |mut end: UdpEndpoint| {
            // `validate` saw to it that every board has a port.
            let port = end.socket.port().wrapping_add(board.into());
            end.socket.set_port(port);
            end
        };
        (
            of_board(self.addresses.boards()),
            of_board(self.addresses.trigger()),
        )
    }
}

pub(crate) fn is_host(ip: Ipv4Addr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast()
}

pub(crate) fn in_range(
    key: &'static str,
    value: impl Display,
    valid: bool,
    expected: &'static str,
) -> Result<(), ConfigError> {
    if valid {
        return Ok(());
    }
    Err(ConfigError::Range {
        key,
        value: value.to_string(),
        expected,
    })
}

/// Optional values that are text in a file.
pub(crate) mod text {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer};

    #[allow(clippy::ref_option)] // serde passes the field by reference
    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.collect_str(value),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(serde::de::Error::custom))
            .transpose()
    }
}

#[cfg(test)]
mod tests;
