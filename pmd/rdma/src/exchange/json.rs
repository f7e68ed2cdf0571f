//! A JSON description of an end: `docs/formats/rdma-exchange.md`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::channel::{io_at, read_file};
use super::{Channel, ExchangeError, Stream};
use crate::access::{Access, Key, RemoteBuffer};
use crate::address::{Mtu, Psn, QpAddress, QpKind, QpNumber};

/// Most bytes of a description.
pub const MAX_JSON: usize = 64 << 10;
/// Most buffers of a description.
const MAX_BUFFERS: usize = 256;
/// Most bytes of a buffer's name.
const MAX_NAME: usize = 64;
/// Version of the format.
const VERSION: u32 = 1;
const STEP: &str = "exchanging descriptions";

/// What an end tells its peer: its queue pair, and the registered buffers that the peer may access.
///
/// ```no_run
/// use std::error::Error;
/// use std::net::SocketAddr;
/// use std::time::Duration;
///
/// use pollux_rdma::exchange::{Channel, Description, Offered};
/// use pollux_rdma::{Access, Buffer, Endpoint, Mtu, PathOptions, QpOptions, QueuePair};
///
/// /// A queue pair whose peer listens at `to`, and may write `images`; and the peer's buffers.
/// fn connect(
///     endpoint: &mut Endpoint,
///     images: &Buffer,
///     to: SocketAddr,
/// ) -> Result<(QueuePair, Vec<Offered>), Box<dyn Error>> {
///     let qp = endpoint.create_queue_pair(&QpOptions::default())?;
///     let ours = Description {
///         qp: qp.address(),
///         kind: qp.kind(),
///         mtu: Mtu::B4096,
///         buffers: vec![Offered {
///             name: "images".into(),
///             buffer: images.remote(),
///             bytes: images.len() as u64,
///             access: Access::WRITE,
///         }],
///     };
///     let mut channel = Channel::connect(to, Duration::from_secs(10))?;
///     let theirs = ours.exchange(&mut channel)?;
///     let mtu = ours.agree(&theirs)?;
///     let path = PathOptions { mtu, ..PathOptions::default() };
///     endpoint.connect(&qp, &theirs.qp, &path)?;
///     Ok((qp, theirs.buffers))
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Address of the queue pair.
    pub qp: QpAddress,
    /// Its service: that of both ends.
    pub kind: QpKind,
    /// Largest MTU of its path: the connection has the smaller one of both ends.
    pub mtu: Mtu,
    /// Buffers, up to 256.
    pub buffers: Vec<Offered>,
}

/// A registered buffer that a peer may access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// What it is for, in up to 64 bytes: the programs agree upon names.
    pub name: String,
    /// Its address and key.
    pub buffer: RemoteBuffer,
    /// Its length in bytes.
    pub bytes: u64,
    /// What the peer may do.
    pub access: Access,
}

impl Description {
    /// The description as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Numbers and strings: they can all be written.
        serde_json::to_string(&Wire::from(self)).unwrap_or_default()
    }

    /// Reads a description.
    ///
    /// # Errors
    /// It is not such a description: the text says what is allowed.
    pub fn from_json(json: &[u8]) -> Result<Self, ExchangeError> {
        if json.len() > MAX_JSON {
            let expected = "a description of at most 64 KiB";
            return Err(ExchangeError::malformed(STEP, json, expected));
        }
        let wire: Wire =
            serde_json::from_slice(json).map_err(|error| ExchangeError::Malformed {
                step: STEP,
                got: format!("JSON with an error ({error})"),
                expected: "a description of version 1",
            })?;
        wire.try_into()
    }

    /// Writes the description into a file, all at once, which its owner alone can read: it has keys.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn to_file(&self, path: &Path) -> Result<(), ExchangeError> {
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let write = || {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&new)?;
            file.write_all((self.to_json() + "\n").as_bytes())?;
            fs::rename(&new, path)
        };
        write().map_err(io_at("writing the description"))
    }

    /// Reads the description that the peer writes into a file, when it is there.
    ///
    /// # Errors
    /// It is not there in time, or is not a description.
    pub fn from_file(path: &Path, patience: Duration) -> Result<Self, ExchangeError> {
        let step = "reading the peer's description";
        Self::from_json(&read_file(path, MAX_JSON, patience, step)?)
    }

    /// Sends the description over a channel, and takes the peer's: both ends do the same.
    ///
    /// # Errors
    /// The peer is late, goes away, or sends something else.
    pub fn exchange<S: Stream>(&self, channel: &mut Channel<S>) -> Result<Self, ExchangeError> {
        channel.send((self.to_json() + "\n").as_bytes(), STEP)?;
        Self::from_json(&channel.line(MAX_JSON, STEP)?)
    }

    /// The MTU of a connection with this peer: the smaller one.
    ///
    /// # Errors
    /// The queue pairs are of different kinds.
    pub fn agree(&self, peer: &Self) -> Result<Mtu, ExchangeError> {
        if self.kind != peer.kind {
            let text = |kind| String::from(kind_text(kind));
            return Err(ExchangeError::Disagree {
                step: STEP,
                what: "the service",
                theirs: text(peer.kind),
                ours: text(self.kind),
            });
        }
        Ok(self.mtu.min(peer.mtu))
    }

    /// The buffer of a name.
    #[must_use]
    pub fn buffer(&self, name: &str) -> Option<&Offered> {
        self.buffers.iter().find(|buffer| buffer.name == name)
    }
}

/// The description as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: u32,
    qp: WireQp,
    mtu: usize,
    #[serde(default)]
    buffers: Vec<WireBuffer>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireQp {
    number: u32,
    kind: String,
    psn: u32,
    ip: Ipv4Addr,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireBuffer {
    name: String,
    /// Hexadecimal: a JSON reader may keep 53 bits of a number.
    address: String,
    key: String,
    bytes: u64,
    access: Vec<String>,
}

const fn kind_text(kind: QpKind) -> &'static str {
    match kind {
        QpKind::Reliable => "rc",
        QpKind::Unreliable => "uc",
    }
}

impl From<&Description> for Wire {
    fn from(end: &Description) -> Self {
        let buffers = end.buffers.iter().map(|offered| WireBuffer {
            name: offered.name.clone(),
            address: format!("{:016x}", offered.buffer.address),
            key: offered.buffer.key.to_string(),
            bytes: offered.bytes,
            access: [
                (offered.access.remote_write, "write"),
                (offered.access.remote_read, "read"),
            ]
            .into_iter()
            .filter(|(granted, _)| *granted)
            .map(|(_, right)| right.into())
            .collect(),
        });
        Self {
            version: VERSION,
            qp: WireQp {
                number: end.qp.number.get(),
                kind: kind_text(end.kind).into(),
                psn: end.qp.psn.get(),
                ip: end.qp.ip,
                mac: end.qp.mac.map(|mac| mac.to_string()),
            },
            mtu: end.mtu.bytes(),
            buffers: buffers.collect(),
        }
    }
}

/// A field whose value is not allowed.
fn refuse(field: &str, value: impl std::fmt::Debug, expected: &'static str) -> ExchangeError {
    ExchangeError::Malformed {
        step: STEP,
        got: format!("{field} = {value:?}"),
        expected,
    }
}

/// A number of exactly so many hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u64> {
    let is_hex = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

impl TryFrom<Wire> for Description {
    type Error = ExchangeError;

    fn try_from(wire: Wire) -> Result<Self, ExchangeError> {
        if wire.version != VERSION {
            return Err(refuse("version", wire.version, "1"));
        }
        let (qp, count) = (wire.qp, wire.buffers.len());
        let kind = match qp.kind.as_str() {
            "rc" => QpKind::Reliable,
            "uc" => QpKind::Unreliable,
            _ => return Err(refuse("qp.kind", qp.kind, "`rc` or `uc`")),
        };
        let number = QpNumber::connectable(qp.number)
            .ok_or_else(|| refuse("qp.number", qp.number, "a number from 2 to 16777214"))?;
        if QpNumber::new(qp.psn).is_none() {
            return Err(refuse("qp.psn", qp.psn, "a number of 24 bits"));
        }
        if qp.ip.is_multicast() || qp.ip.is_broadcast() {
            return Err(refuse("qp.ip", qp.ip, "the address of a host, or 0.0.0.0"));
        }
        let mac = qp.mac.map(|mac| {
            let parsed = mac.parse();
            parsed.map_err(|_| refuse("qp.mac", mac, "a MAC address as 02:00:00:00:00:01"))
        });
        if count > MAX_BUFFERS {
            return Err(refuse("the number of buffers", count, "at most 256"));
        }
        let buffers: Result<Vec<_>, _> = wire.buffers.into_iter().map(TryInto::try_into).collect();
        Ok(Self {
            qp: QpAddress {
                number,
                psn: Psn::new(qp.psn),
                ip: qp.ip,
                mac: mac.transpose()?,
            },
            kind,
            mtu: Mtu::from_bytes(wire.mtu)
                .ok_or_else(|| refuse("mtu", wire.mtu, "256, 512, 1024, 2048 or 4096"))?,
            buffers: buffers?,
        })
    }
}

impl TryFrom<WireBuffer> for Offered {
    type Error = ExchangeError;

    fn try_from(wire: WireBuffer) -> Result<Self, ExchangeError> {
        if wire.name.len() > MAX_NAME {
            return Err(refuse("a buffer's name", wire.name, "of at most 64 bytes"));
        }
        let address = hex(&wire.address, 16)
            .ok_or_else(|| refuse("address", &wire.address, "16 hexadecimal digits"))?;
        let key =
            hex(&wire.key, 8).ok_or_else(|| refuse("key", &wire.key, "8 hexadecimal digits"))?;
        let last = address.checked_add(wire.bytes.saturating_sub(1));
        if last.is_none() {
            let expected = "a length that ends at 2^64 or before";
            return Err(refuse("bytes", wire.bytes, expected));
        }
        let mut access = Access::LOCAL;
        for right in wire.access {
            match right.as_str() {
                "write" => access.remote_write = true,
                "read" => access.remote_read = true,
                _ => return Err(refuse("access", right, "`write` or `read`")),
            }
        }
        Ok(Self {
            name: wire.name,
            buffer: RemoteBuffer {
                address,
                key: Key(key as u32),
            },
            bytes: wire.bytes,
            access,
        })
    }
}
