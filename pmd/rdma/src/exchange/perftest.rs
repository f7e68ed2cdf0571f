//! The exchange of perftest 4.5 (its programs' version 6.06, as in Debian 12).
//!
//! Over TCP, port 18515, in steps in which the client sends first and the server answers with a message
//! of the same length: the version (16 B), the bytes of a cycle of buffers and of a cache line (4 B
//! each), the MTU (2 B of text), then several times the keys (108 B), of which all but the first are a
//! barrier. At the end `*_bw` of WRITE and READ exchange a report of five numbers (8 B each), and most
//! programs the keys again and `done`. How often the keys go to and fro is in [`Test`]. The kind of the
//! queue pair, the size of a message and their number are options of the tools, and are not exchanged.

use std::str::FromStr;

use super::pingpong::DONE;
use super::text::Fields;
use super::{Channel, ExchangeError, Stream};
use crate::access::{Key, RemoteBuffer};
use crate::address::{Mtu, Psn, QpAddress, QpNumber, gid_of, ip_of};
use crate::endpoint::ConnectError;

/// The tools' port.
pub const PORT: u16 = 18515;
/// Bytes of a message with keys.
pub const KEYS_BYTES: usize = 108;

/// The version of the programs, as text.
const VERSION: &[u8] = b"6.06";
/// Oldest version with this exchange, in hundredths.
const OLDEST: u32 = 570;
/// A page, and a cache line.
const CYCLE: u32 = 4096;
const CACHE_LINE: u32 = 64;
/// Most that a peer may ask for: a page of 2 MiB.
const MOST_CYCLE: u32 = 2 << 20;
const STEP: &str = "perftest's exchange";

/// A program of perftest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// `ib_send_bw`
    SendBw,
    /// `ib_send_lat`
    SendLat,
    /// `ib_write_bw`
    WriteBw,
    /// `ib_write_lat`
    WriteLat,
    /// `ib_read_bw`
    ReadBw,
    /// `ib_read_lat`
    ReadLat,
}

/// What a program does at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It closes the stream.
    Close,
    /// It waits for the peer, and says `done`.
    Done,
    /// It waits for the peer, exchanges reports, waits again, and says `done`.
    Report,
}

impl Test {
    /// All, with the names of their programs.
    pub const ALL: [(&'static str, Self); 6] = [
        ("ib_send_bw", Self::SendBw),
        ("ib_send_lat", Self::SendLat),
        ("ib_write_bw", Self::WriteBw),
        ("ib_write_lat", Self::WriteLat),
        ("ib_read_bw", Self::ReadBw),
        ("ib_read_lat", Self::ReadLat),
    ];

    /// How often keys are exchanged before the queue pairs are connected.
    const fn before(self) -> usize {
        match self {
            Self::WriteLat | Self::ReadLat => 2,
            _ => 1,
        }
    }

    /// How often after that, until the first packet.
    const fn after(self) -> usize {
        match self {
            Self::SendBw | Self::SendLat => 3,
            _ => 2,
        }
    }

    const fn end(self) -> End {
        match self {
            Self::WriteBw | Self::ReadBw => End::Report,
            Self::WriteLat => End::Close,
            _ => End::Done,
        }
    }
}

impl FromStr for Test {
    type Err = ExchangeError;

    fn from_str(text: &str) -> Result<Self, ExchangeError> {
        let expected = "one of ib_send_bw, ib_send_lat, ib_write_bw, ib_write_lat, ib_read_bw and \
                        ib_read_lat";
        let test = Self::ALL.into_iter().find(|(name, _)| *name == text);
        test.map(|(_, test)| test)
            .ok_or_else(|| ExchangeError::malformed("choosing a test", text.as_bytes(), expected))
    }
}

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It connects, and sends requests.
    Client,
    /// It listens.
    Server,
}

/// What an end tells of its queue pair and buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Address of the queue pair.
    pub qp: QpAddress,
    /// READs that it takes at a time.
    pub reads: u8,
    /// Its buffer, for WRITE and READ.
    pub buffer: RemoteBuffer,
}

impl Keys {
    /// The keys as the tools write them.
    #[must_use]
    pub fn to_text(&self) -> [u8; KEYS_BYTES] {
        let (qp, buffer) = (&self.qp, &self.buffer);
        let mut text = format!(
            "0000:{:04x}:{}:{:06x}:{}:{:016x}:",
            self.reads,
            qp.number,
            qp.psn.get(),
            buffer.key,
            buffer.address
        );
        for byte in gid_of(qp.ip) {
            text += &format!("{byte:02x}:");
        }
        text += "00000000:\0";
        let mut bytes = [0; KEYS_BYTES];
        for (to, from) in bytes.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        bytes
    }

    /// The keys of a peer.
    ///
    /// # Errors
    /// It is not such a text, or not that of a queue pair at an IPv4 address.
    pub fn from_text(text: &[u8; KEYS_BYTES]) -> Result<Self, ExchangeError> {
        let expected = "keys of a queue pair with the GID of an IPv4 address: see option -x";
        let raw = Raw::from_text(text)?;
        let fields = Fields::new(text, STEP, expected);
        let keys = || {
            Some(Self {
                qp: QpAddress {
                    number: QpNumber::connectable(raw.number as u32)?,
                    psn: Psn::new(raw.psn as u32),
                    ip: ip_of(raw.gid)?,
                    mac: None,
                },
                reads: u8::try_from(raw.reads).ok()?,
                buffer: RemoteBuffer {
                    address: raw.address,
                    key: Key(raw.key as u32),
                },
            })
        };
        keys().ok_or_else(|| fields.error())
    }
}

/// The fields of a message with keys. Before the connection manager has connected (option -R) they are 0.
struct Raw {
    reads: u64,
    number: u64,
    psn: u64,
    key: u64,
    address: u64,
    gid: [u8; 16],
}

impl Raw {
    fn from_text(text: &[u8; KEYS_BYTES]) -> Result<Self, ExchangeError> {
        let expected = "`LID:READS:QPN:PSN:KEY:ADDRESS:GID:SRQN:` of 4, 4, 6, 6, 8, 16, 16 times 2 and 8 \
                        hexadecimal digits (an end without a GID sends fewer: see option -x)";
        let mut fields = Fields::new(text, STEP, expected);
        let mut next = |digits| {
            let number = fields.hex(digits)?;
            fields.mark(b':').map(|()| number)
        };
        next(4)?;
        let mut raw = Self {
            reads: next(4)?,
            number: next(6)?,
            psn: next(6)?,
            key: next(8)?,
            address: next(16)?,
            gid: [0; 16],
        };
        for byte in &mut raw.gid {
            *byte = next(2)? as u8;
        }
        next(8)?;
        Ok(raw)
    }
}

/// What both ends use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// The smaller MTU.
    pub mtu: Mtu,
    /// Bytes of the buffers through which requests go round, if those are shorter: the larger of both
    /// ends. The buffer has as many at least.
    pub cycle: u32,
    /// Requests shorter than this are as far apart.
    pub cache_line: u32,
}

/// What the client measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Bytes of a message.
    pub bytes: u64,
    /// Messages.
    pub messages: u64,
    /// Highest rate in MiB/s (or Gb/s, as the tools' option says).
    pub peak: f64,
    /// Mean rate, in the same unit.
    pub mean: f64,
    /// Millions of messages a second.
    pub message_rate: f64,
}

/// An exchange with a program of perftest.
#[derive(Debug)]
pub struct Session<S> {
    channel: Channel<S>,
    test: Test,
    role: Role,
    own: [u8; KEYS_BYTES],
    peer: Option<Keys>,
}

impl<S: Stream> Session<S> {
    /// Begins the exchange: versions, sizes, and the MTU.
    ///
    /// # Errors
    /// The peer is late, goes away, sends something else, or is too old.
    pub fn open(
        channel: Channel<S>,
        test: Test,
        role: Role,
        mtu: Mtu,
    ) -> Result<(Self, Common), ExchangeError> {
        let mut session = Self {
            channel,
            test,
            role,
            own: [0; KEYS_BYTES],
            peer: None,
        };
        let mut version = [0; 16];
        version[..VERSION.len()].copy_from_slice(VERSION);
        check_version(&session.swap(&version)?)?;
        let cycle = session.larger(CYCLE)?;
        let cache_line = session.larger(CACHE_LINE)?;
        let theirs = session.swap(&[b'0' + mtu.code(), 0])?;
        let common = Common {
            mtu: mtu.min(mtu_of(theirs)?),
            cycle,
            cache_line,
        };
        Ok((session, common))
    }

    /// Waits for the peer on both sides of a connection by the connection manager (the tools' option -R),
    /// which `connect` makes: its port is the same as that of the exchange.
    ///
    /// # Errors
    /// The peer is late, goes away, or sends something else; or `connect` fails.
    pub fn around(
        &mut self,
        connect: impl FnOnce() -> Result<(), ConnectError>,
    ) -> Result<(), ExchangeError> {
        let nothing = Keys::nothing();
        Raw::from_text(&self.swap(&nothing)?)?;
        connect()?;
        Raw::from_text(&self.swap(&nothing)?)?;
        Ok(())
    }

    /// Exchanges keys. `connect` connects the queue pair with those that it is given, and posts receives.
    /// When this returns the peer is ready.
    ///
    /// # Errors
    /// The peer is late, goes away, or sends something else; or `connect` fails.
    pub fn connect(
        &mut self,
        own: &Keys,
        connect: impl FnOnce(&Keys) -> Result<(), ConnectError>,
    ) -> Result<Keys, ExchangeError> {
        self.own = own.to_text();
        let peer = Keys::from_text(&self.swap(&self.own.clone())?)?;
        self.peer = Some(peer);
        for _ in 1..self.test.before() {
            self.barrier()?;
        }
        connect(&peer)?;
        for _ in 0..self.test.after() {
            self.barrier()?;
        }
        Ok(peer)
    }

    /// Ends the exchange, after the client's last request is done; a server waits for that here. The
    /// result is what the peer reports. [`Channel::within`] comes before: the deadline is that of the run.
    ///
    /// # Errors
    /// The peer is late, goes away, or sends something else.
    pub fn finish(mut self, report: &Report) -> Result<Option<Report>, ExchangeError> {
        let end = self.test.end();
        let mut theirs = None;
        if end == End::Report {
            self.barrier()?;
            theirs = Some(self.report(report)?);
        }
        if end != End::Close {
            self.barrier()?;
            self.channel.send(DONE, STEP)?;
            self.channel.drain(STEP)?;
        }
        Ok(theirs)
    }

    /// The channel, for another deadline.
    pub fn channel(&mut self) -> &mut Channel<S> {
        &mut self.channel
    }

    fn report(&mut self, own: &Report) -> Result<Report, ExchangeError> {
        let mut number = |own: u64| self.swap(&own.to_be_bytes()).map(u64::from_be_bytes);
        Ok(Report {
            bytes: number(own.bytes)?,
            messages: number(own.messages)?,
            peak: f64::from_bits(number(own.peak.to_bits())?),
            mean: f64::from_bits(number(own.mean.to_bits())?),
            message_rate: f64::from_bits(number(own.message_rate.to_bits())?),
        })
    }

    /// Sends a message and takes one of the same length, in the order of the role.
    fn swap<const N: usize>(&mut self, own: &[u8; N]) -> Result<[u8; N], ExchangeError> {
        if self.role == Role::Client {
            self.channel.send(own, STEP)?;
            self.channel.read(STEP)
        } else {
            let theirs = self.channel.read(STEP)?;
            self.channel.send(own, STEP)?;
            Ok(theirs)
        }
    }

    /// Keys for the second time: they are the same.
    fn barrier(&mut self) -> Result<(), ExchangeError> {
        let text = self.swap(&self.own.clone())?;
        if Some(Keys::from_text(&text)?) == self.peer {
            Ok(())
        } else {
            let expected = "the keys that it sent before";
            Err(ExchangeError::malformed(STEP, &text, expected))
        }
    }

    /// The larger one of both ends' numbers.
    fn larger(&mut self, own: u32) -> Result<u32, ExchangeError> {
        let theirs = self.swap(&own.to_be_bytes())?;
        match u32::from_be_bytes(theirs) {
            number @ 1..=MOST_CYCLE => Ok(number.max(own)),
            _ => {
                let expected = "bytes of a page or cache line, up to 2 MiB";
                Err(ExchangeError::malformed(STEP, &theirs, expected))
            }
        }
    }
}

impl Keys {
    /// What the tools send while they have no queue pair.
    fn nothing() -> [u8; KEYS_BYTES] {
        let mut text = [b'0'; KEYS_BYTES];
        for colon in [4, 9, 16, 23, 32, 49, 106] {
            text[colon] = b':';
        }
        for byte in 0..16 {
            text[52 + 3 * byte] = b':';
        }
        text[107] = 0;
        text
    }
}

/// Checks the version of the peer: text, with zeros behind it.
fn check_version(text: &[u8; 16]) -> Result<(), ExchangeError> {
    let expected = "a version of perftest's programs, 5.70 or later";
    let error = || ExchangeError::malformed(STEP, text, expected);
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = str::from_utf8(text).map_err(|_| error())?;
    let (major, minor) = text.split_once('.').ok_or_else(error)?;
    let minor: String = minor.chars().chain(['0', '0']).take(2).collect();
    let hundredths = format!("{major}{minor}");
    let is_number = hundredths.len() < 8 && hundredths.bytes().all(|byte| byte.is_ascii_digit());
    let version = is_number.then(|| hundredths.parse().ok()).flatten();
    match version {
        Some(OLDEST..) => Ok(()),
        _ => Err(error()),
    }
}

/// The MTU in a message: a digit, and a zero byte.
fn mtu_of(text: [u8; 2]) -> Result<Mtu, ExchangeError> {
    let expected = "the number of an MTU: 1 to 5, for 256 to 4096 B";
    Some(text)
        .filter(|text| text[1] == 0)
        .and_then(|text| Mtu::from_code(text[0].wrapping_sub(b'0')))
        .ok_or_else(|| ExchangeError::malformed(STEP, &text, expected))
}
