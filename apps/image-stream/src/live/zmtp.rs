//! ZeroMQ message transport protocol, the part of a PUSH socket with the NULL mechanism: ZMTP 3.0
//! (rfc.zeromq.org/spec/23), and PING of 3.1 (spec/37).

/// Longest command that a peer may send. PING has 23 bytes at most, READY some properties.
const LONGEST: usize = 512;

/// Bits of the flags of a frame.
const LONG: u8 = 1 << 1;
const COMMAND: u8 = 1 << 2;

/// Length of a greeting.
const GREETING: usize = 64;

/// Our greeting: signature, version 3.0, mechanism NULL, no server, filler.
pub(super) const fn greeting() -> [u8; GREETING] {
    let mut greeting = [0; GREETING];
    greeting[0] = 0xFF;
    greeting[9] = 0x7F;
    greeting[10] = 3;
    greeting[12] = b'N';
    greeting[13] = b'U';
    greeting[14] = b'L';
    greeting[15] = b'L';
    greeting
}

/// Our command READY: the type of the socket.
pub(super) const READY: &[u8] = b"\x04\x1A\x05READY\x0BSocket-Type\0\0\0\x04PUSH";

/// The header of a message of one frame.
pub(super) fn message_header(len: usize) -> [u8; 9] {
    let mut header = [0; 9];
    header[0] = LONG;
    header[1..].copy_from_slice(&(len as u64).to_be_bytes());
    header
}

/// The command PONG, which answers a PING.
pub(super) fn pong(context: &[u8]) -> Vec<u8> {
    let mut command = vec![COMMAND, 5 + context.len() as u8];
    command.extend(b"\x04PONG");
    command.extend(context);
    command
}

/// Reason why a peer is disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ZmtpError {
    #[error("it does not speak ZMTP")]
    Foreign,
    #[error("it speaks version {0} of ZMTP, and 3 is needed")]
    Version(u8),
    #[error("it asks for a security mechanism other than NULL")]
    Mechanism,
    #[error("its socket is not a PULL socket")]
    SocketType,
    #[error("it sends a frame of {0} bytes, and at most {LONGEST} are accepted")]
    Long(u64),
    #[error("it sends a message, and a PULL socket sends none")]
    Message,
    #[error("it sends a malformed command")]
    Malformed,
}

/// What a peer says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It is a PULL socket, and takes messages from now on.
    Ready,
    /// A PING with its context.
    Ping(Vec<u8>),
}

/// What has been expected of the peer so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Greeting,
    Ready,
    Open,
}

/// Bytes of a peer that are not yet understood.
pub(super) struct Incoming {
    bytes: Vec<u8>,
    stage: Stage,
}

impl Incoming {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(2 * LONGEST),
            stage: Stage::Greeting,
        }
    }

    /// Adds bytes; call [`next`](Self::next) until it has nothing more.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// What the peer says next; `None` until there are more bytes.
    pub(super) fn next(&mut self) -> Result<Option<Said>, ZmtpError> {
        if self.stage == Stage::Greeting {
            check_greeting(&self.bytes)?;
            if self.bytes.len() < GREETING {
                return Ok(None);
            }
            self.bytes.drain(..GREETING);
            self.stage = Stage::Ready;
        }
        while let Some((flags, body)) = self.frame()? {
            if flags & COMMAND == 0 {
                return Err(ZmtpError::Message);
            }
            let (name, rest) = named(&body).ok_or(ZmtpError::Malformed)?;
            match (self.stage, name) {
                (Stage::Ready, b"READY") => {
                    self.stage = Stage::Open;
                    return is_pull(rest)?
                        .then_some(Some(Said::Ready))
                        .ok_or(ZmtpError::SocketType);
                }
                // Two bytes of a time to live are in front of the context, which has 16 at most.
                (Stage::Open, b"PING") if (2..=18).contains(&rest.len()) => {
                    return Ok(Some(Said::Ping(rest[2..].into())));
                }
                (Stage::Open, name) if name != b"PING" && name != b"READY" => {}
                _ => return Err(ZmtpError::Malformed),
            }
        }
        Ok(None)
    }

    /// The flags and the body of the next complete frame.
    fn frame(&mut self) -> Result<Option<(u8, Vec<u8>)>, ZmtpError> {
        let Some(&flags) = self.bytes.first() else {
            return Ok(None);
        };
        let (header, len) = if flags & LONG == 0 {
            (2, self.bytes.get(1).map(|&len| u64::from(len)))
        } else {
            let len = self.bytes.get(1..9).and_then(<[u8]>::first_chunk);
            (9, len.map(|&len| u64::from_be_bytes(len)))
        };
        let Some(len) = len else { return Ok(None) };
        if len > LONGEST as u64 {
            return Err(ZmtpError::Long(len));
        }
        let end = header + len as usize;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let body = self.bytes[header..end].to_vec();
        self.bytes.drain(..end);
        Ok(Some((flags, body)))
    }
}

/// Checks what there is of a greeting.
fn check_greeting(bytes: &[u8]) -> Result<(), ZmtpError> {
    let is = |at: usize, value: u8| bytes.get(at).is_none_or(|&it| it == value);
    if !is(0, 0xFF) || !is(9, 0x7F) {
        return Err(ZmtpError::Foreign);
    }
    if let Some(&version) = bytes.get(10)
        && version < 3
    {
        return Err(ZmtpError::Version(version));
    }
    let ours = greeting();
    match bytes.get(12..32) {
        Some(mechanism) if mechanism != &ours[12..32] => Err(ZmtpError::Mechanism),
        _ => Ok(()),
    }
}

/// A name behind its length, and the rest.
fn named(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    rest.split_at_checked(len.into())
}

/// Whether the properties of READY have the socket type PULL.
fn is_pull(mut properties: &[u8]) -> Result<bool, ZmtpError> {
    while !properties.is_empty() {
        let (name, rest) = named(properties).ok_or(ZmtpError::Malformed)?;
        let (len, rest) = rest.split_first_chunk().ok_or(ZmtpError::Malformed)?;
        let value = rest.split_at_checked(u32::from_be_bytes(*len) as usize);
        let (value, rest) = value.ok_or(ZmtpError::Malformed)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return Ok(value == b"PULL");
        }
        properties = rest;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// What libzmq 4.3.5 sends with a PULL socket.
    fn pull() -> Vec<u8> {
        let mut bytes = greeting().to_vec();
        (bytes[8], bytes[11]) = (1, 1);
        bytes.extend(b"\x04\x26\x05READY\x0BSocket-Type\0\0\0\x04PULL\x08Identity\0\0\0\0");
        bytes[65] = (bytes.len() - 66) as u8;
        bytes
    }

    fn told(bytes: &[u8]) -> Result<Vec<Said>, ZmtpError> {
        let (mut incoming, mut said) = (Incoming::new(), Vec::new());
        for byte in bytes {
            incoming.add(&[*byte]);
            while let Some(next) = incoming.next()? {
                said.push(next);
            }
        }
        Ok(said)
    }

    #[test]
    fn a_pull_socket_is_ready_and_its_pings_are_answered() {
        let mut bytes = pull();
        bytes.extend(b"\x04\x09\x04PING\0\x0Aab");
        bytes.extend(b"\x04\x0A\x09SUBSCRIBE");
        assert_eq!(
            told(&bytes),
            Ok(vec![Said::Ready, Said::Ping(b"ab".into())])
        );
        assert_eq!(pong(b"ab"), b"\x04\x07\x04PONGab");
        assert_eq!(READY.len(), 2 + usize::from(READY[1]));
    }

    #[test]
    fn other_peers_are_refused() {
        let with = |at: usize, value: u8| {
            let mut bytes = pull();
            bytes[at] = value;
            told(&bytes)
        };
        assert_eq!(told(b"GET / HTTP/1.1"), Err(ZmtpError::Foreign));
        assert_eq!(with(9, 0), Err(ZmtpError::Foreign));
        assert_eq!(with(10, 1), Err(ZmtpError::Version(1)));
        assert_eq!(with(12, b'C'), Err(ZmtpError::Mechanism));
        let at = pull().windows(4).position(|it| it == b"PULL").unwrap();
        assert_eq!(with(at + 2, b'S'), Err(ZmtpError::SocketType));
        assert_eq!(with(66, 200), Err(ZmtpError::Malformed));
        assert_eq!(with(64, 0), Err(ZmtpError::Message));
        let mut long = pull();
        long.extend([6, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(told(&long), Err(ZmtpError::Long(1 << 32)));
    }

    proptest! {
        /// Neither a panic nor more than a bounded number of bytes kept.
        #[test]
        fn any_bytes_are_accepted_or_refused(
            good in 0usize..110,
            bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        ) {
            let mut incoming = Incoming::new();
            let start = pull();
            let all = [&start[..good.min(start.len())], &bytes].concat();
            for some in all.chunks(100) {
                incoming.add(some);
                while let Ok(Some(_)) = incoming.next() {}
                if incoming.next().is_err() {
                    break;
                }
                prop_assert!(incoming.bytes.len() <= LONGEST + 9 + 100);
            }
        }
    }
}
