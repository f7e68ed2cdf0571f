//! The exchange of perftest 4.5 (its programs' version 6.06, as in Debian 12).
//!
//! Over TCP, port 18515, in steps in which the client sends first and the server answers with a message
//! of the same length: the version (16 B), the bytes of a cycle of buffers and of a cache line (4 B
//! each), the MTU (2 B of text), then several times the keys (108 B), of which all but the first are a
//! barrier. At the end `*_bw` of WRITE and READ exchange a report of five numbers (8 B each), and most
//! programs the keys again and `done`. How often the keys go to and fro is in [`Test`]. The kind of the
//! queue pair, the size of a message and their number are options of the tools, and are not exchanged.
//!
//! With the tools' option -R there is no TCP. The connection manager connects a queue pair for the
//! exchange, over which each message is a SEND; the keys are [packed](Keys::to_packed) (56 B), and there is
//! no `done`. It connects the queue pairs of the test between the first two rounds of keys.

mod keys;

use std::str::FromStr;
use std::time::Duration;

use super::pingpong::DONE;
use super::{Channel, ExchangeError, Stream};
use crate::address::Mtu;
use crate::endpoint::ConnectError;

use keys::STEP;
pub use keys::{KEYS_BYTES, Keys, PACKED_KEYS_BYTES};

/// The tools' port.
pub const PORT: u16 = 18515;

/// The version of the programs, as text.
const VERSION: &[u8] = b"6.06";
/// Where the note is behind it.
const NOTE_AT: usize = 16 - NOTE;
/// Oldest version with this exchange, in hundredths.
const OLDEST: u32 = 570;
/// A page, and a cache line.
const CYCLE: u32 = 4096;
const CACHE_LINE: u32 = 64;
/// Most that a peer may ask for: a page of 2 MiB.
const MOST_CYCLE: u32 = 2 << 20;

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

/// How the messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Over TCP.
    Tcp,
    /// Over a queue pair that the connection manager has connected: each message is a SEND. The stream is
    /// [`Messages`](super::Messages).
    QueuePair,
}

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It connects, and sends requests.
    Client,
    /// It listens.
    Server,
}

/// Bytes of a [`Hello::note`].
pub const NOTE: usize = 8;

/// What an end begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The largest MTU.
    pub mtu: Mtu,
    /// What it tells an end of its own kind: the message of the version has room for it, where perftest has
    /// zeros, and does not look.
    pub note: [u8; NOTE],
}

impl From<Mtu> for Hello {
    /// Without a note, as perftest.
    fn from(mtu: Mtu) -> Self {
        let note = [0; NOTE];
        Self { mtu, note }
    }
}

/// What both ends use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// What the peer notes; zeros are perftest's.
    pub note: [u8; NOTE],
    /// The smaller MTU.
    pub mtu: Mtu,
    /// Bytes of the buffers through which requests go round, if those are shorter: the larger of both
    /// ends. The buffer has as many at least.
    pub cycle: u32,
    /// Requests shorter than this are as far apart.
    pub cache_line: u32,
}

/// What the client measured; a server's numbers mean nothing.
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
    over: Over,
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
        over: Over,
        hello: impl Into<Hello>,
    ) -> Result<(Self, Common), ExchangeError> {
        let Hello { mtu, note } = hello.into();
        let mut session = Self {
            channel,
            test,
            role,
            over,
        };
        let mut version = [0; 16];
        version[..VERSION.len()].copy_from_slice(VERSION);
        version[NOTE_AT..].copy_from_slice(&note);
        let theirs = session.swap(&version)?;
        check_version(&theirs)?;
        let note = std::array::from_fn(|n| theirs[NOTE_AT + n]);
        let cycle = session.larger(CYCLE)?;
        let cache_line = session.larger(CACHE_LINE)?;
        let theirs = session.swap(&[b'0' + mtu.code(), 0])?;
        let common = Common {
            note,
            mtu: mtu.min(mtu_of(theirs)?),
            cycle,
            cache_line,
        };
        Ok((session, common))
    }

    /// Waits for the peer before and behind the connection of the test's queue pairs, which `connect`
    /// makes by the connection manager. Over a queue pair only.
    ///
    /// # Errors
    /// The peer is late, goes away, or sends something else; or `connect` fails.
    pub fn around(
        &mut self,
        connect: impl FnOnce() -> Result<(), ConnectError>,
    ) -> Result<(), ExchangeError> {
        // Neither end has a queue pair to tell of.
        self.swap(&[0; PACKED_KEYS_BYTES])?;
        connect()?;
        self.swap(&[0; PACKED_KEYS_BYTES]).map(drop)
    }

    /// Exchanges keys. `connect` connects the queue pair with those that it is given, if the connection
    /// manager has not, and posts receives. When this returns the peer is ready.
    ///
    /// # Errors
    /// The peer is late, goes away, or sends something else; or `connect` fails.
    pub fn connect(
        mut self,
        own: &Keys,
        connect: impl FnOnce(&Keys) -> Result<(), ConnectError>,
    ) -> Result<Ready<S>, ExchangeError> {
        let peer = self.swap_keys(own)?;
        let (before, after) = (self.test.before(), self.test.after());
        let mut ready = Ready {
            session: self,
            own: *own,
            peer,
        };
        for _ in 1..before {
            ready.barrier()?;
        }
        connect(&peer)?;
        for _ in 0..after {
            ready.barrier()?;
        }
        Ok(ready)
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

    /// Sends keys and takes the peer's.
    fn swap_keys(&mut self, own: &Keys) -> Result<Keys, ExchangeError> {
        match self.over {
            Over::Tcp => Keys::from_text(&self.swap(&own.to_text())?),
            Over::QueuePair => Keys::from_packed(&self.swap(&own.to_packed())?),
        }
    }

    /// The larger one of both ends' numbers.
    fn larger(&mut self, own: u32) -> Result<u32, ExchangeError> {
        let theirs = self.swap(&own.to_be_bytes())?;
        let number = u32::from_be_bytes(theirs);
        if (1..=MOST_CYCLE).contains(&number) {
            return Ok(number.max(own));
        }
        let expected = "bytes of a page or cache line, up to 2 MiB";
        Err(ExchangeError::malformed(STEP, &theirs, expected))
    }
}

/// An exchange with a program that is ready: both ends are connected.
#[derive(Debug)]
pub struct Ready<S> {
    session: Session<S>,
    own: Keys,
    peer: Keys,
}

impl<S: Stream> Ready<S> {
    /// What the peer told.
    #[must_use]
    pub fn peer(&self) -> &Keys {
        &self.peer
    }

    /// Ends the exchange, after the client's last request is done; a server waits for that here, and all
    /// of it has to happen within the time. The result is what the peer reports.
    ///
    /// # Errors
    /// The peer is late, goes away, or sends something else.
    pub fn finish(
        mut self,
        report: &Report,
        patience: Duration,
    ) -> Result<Option<Report>, ExchangeError> {
        self.session.channel.within(patience);
        let end = self.session.test.end();
        let mut theirs = None;
        if end == End::Report {
            self.barrier()?;
            theirs = Some(self.report(report)?);
        }
        if end != End::Close {
            self.barrier()?;
        }
        match (self.session.over, end) {
            (Over::QueuePair, _) => self.session.channel.flush(STEP)?,
            (Over::Tcp, End::Close) => {}
            (Over::Tcp, _) => {
                self.session.channel.send(DONE, STEP)?;
                self.session.channel.drain(DONE.len(), STEP)?;
            }
        }
        Ok(theirs)
    }

    /// Keys again: they are the same.
    fn barrier(&mut self) -> Result<(), ExchangeError> {
        let again = self.session.swap_keys(&self.own)?;
        if again == self.peer {
            return Ok(());
        }
        Err(ExchangeError::Malformed {
            step: STEP,
            got: format!("keys of queue pair {}", again.qp.number),
            expected: "the keys that it sent before",
        })
    }

    fn report(&mut self, own: &Report) -> Result<Report, ExchangeError> {
        let session = &mut self.session;
        let mut number = |own: u64| session.swap(&own.to_be_bytes()).map(u64::from_be_bytes);
        Ok(Report {
            bytes: number(own.bytes)?,
            messages: number(own.messages)?,
            peak: f64::from_bits(number(own.peak.to_bits())?),
            mean: f64::from_bits(number(own.mean.to_bits())?),
            message_rate: f64::from_bits(number(own.message_rate.to_bits())?),
        })
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
