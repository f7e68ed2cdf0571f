//! The exchange of `ibv_rc_pingpong` and `ibv_uc_pingpong` (libibverbs, rdma-core 44).
//!
//! Over TCP, port 18515: the client sends its address, the server connects its queue pair and sends its
//! own, and the client says that it is done. An address is the text `LID:QPN:PSN:GID` of 52 bytes, with
//! a zero byte behind it. The MTU, the size of a message (4096 B) and their number (1000) are options of
//! the tools, and are not exchanged.

use super::text::Fields;
use super::{Channel, ExchangeError, Stream};
use crate::address::{Psn, QpAddress, QpNumber, gid_of, ip_of};
use crate::endpoint::ConnectError;

/// The tools' port.
pub const PORT: u16 = 18515;
/// Bytes of an address.
pub const ADDRESS_BYTES: usize = 52;

/// The last message, of five bytes.
pub(super) const DONE: &[u8; 5] = b"done\0";
const STEP: &str = "ibv_pingpong's exchange";
const EXPECTED: &str = "`LID:QPN:PSN:GID` of 4, 6, 6 and 32 hexadecimal digits, with the GID of an IPv4 \
                        address (option -g 1)";

/// An end's address as the tools write it.
#[must_use]
pub fn to_text(own: &QpAddress) -> [u8; ADDRESS_BYTES] {
    let gid = u128::from_be_bytes(gid_of(own.ip));
    let text = format!("0000:{}:{:06x}:{gid:032x}\0", own.number, own.psn.get());
    let mut bytes = [0; ADDRESS_BYTES];
    for (to, from) in bytes.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    bytes
}

/// The address of a peer.
///
/// # Errors
/// It is not such a text, or not the address of a queue pair at an IPv4 address.
pub fn from_text(text: &[u8; ADDRESS_BYTES]) -> Result<QpAddress, ExchangeError> {
    let mut fields = Fields::new(text, STEP, EXPECTED);
    fields.hex(4)?;
    fields.mark(b':')?;
    let number = fields.hex(6)?;
    fields.mark(b':')?;
    let psn = fields.hex(6)?;
    fields.mark(b':')?;
    let (high, low) = (fields.hex(16)?, fields.hex(16)?);
    fields.mark(0)?;
    let gid = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    Ok(QpAddress {
        number: QpNumber::connectable(number as u32).ok_or_else(|| fields.error())?,
        psn: Psn::new(psn as u32),
        ip: ip_of(gid).ok_or_else(|| fields.error())?,
        mac: None,
    })
}

/// The client's part. `connect` connects the queue pair to the address that it is given.
///
/// ```no_run
/// use std::error::Error;
/// use std::net::IpAddr;
/// use std::time::Duration;
///
/// use pollux_rdma::exchange::{Channel, pingpong};
/// use pollux_rdma::{Endpoint, PathOptions, QueuePair};
///
/// /// Connects to `ibv_rc_pingpong -d rxe0 -g 1` on another host.
/// fn connect(endpoint: &mut Endpoint, qp: &QueuePair, host: IpAddr) -> Result<(), Box<dyn Error>> {
///     let to = (host, pingpong::PORT).into();
///     let mut channel = Channel::connect(to, Duration::from_secs(10))?;
///     let path = PathOptions::default();
///     pingpong::client(&mut channel, &qp.address(), |peer| endpoint.connect(qp, peer, &path))?;
///     Ok(())
/// }
/// ```
///
/// # Errors
/// The peer is late, goes away, or sends something else; or `connect` fails.
pub fn client<S: Stream>(
    channel: &mut Channel<S>,
    own: &QpAddress,
    connect: impl FnOnce(&QpAddress) -> Result<(), ConnectError>,
) -> Result<QpAddress, ExchangeError> {
    channel.send(&to_text(own), STEP)?;
    let peer = from_text(&channel.read(STEP)?)?;
    connect(&peer)?;
    channel.send(DONE, STEP)?;
    Ok(peer)
}

/// The server's part. `connect` connects the queue pair to the address that it is given, and posts
/// receives: the client sends when this returns.
///
/// # Errors
/// The peer is late, goes away, or sends something else; or `connect` fails.
pub fn server<S: Stream>(
    channel: &mut Channel<S>,
    own: &QpAddress,
    connect: impl FnOnce(&QpAddress) -> Result<(), ConnectError>,
) -> Result<QpAddress, ExchangeError> {
    let peer = from_text(&channel.read(STEP)?)?;
    connect(&peer)?;
    channel.send(&to_text(own), STEP)?;
    let done = channel.read(STEP)?;
    if &done != DONE {
        return Err(ExchangeError::malformed(STEP, &done, "`done`"));
    }
    Ok(peer)
}
