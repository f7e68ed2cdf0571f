//! A stream with a deadline.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use super::ExchangeError;
use super::patience::{Deadline, Patience};

/// How often a peer is looked for that does not listen yet.
const RETRY: Duration = Duration::from_millis(20);
/// How long one attempt to connect takes at most, so that a flag is looked at: as long as the kernel waits
/// before it sends its first packet again.
const ATTEMPT: Duration = Duration::from_secs(1);

/// How long a peer may be silent before its host is asked whether it is still there, how often it is asked, and how
/// many answers may be missing: a host that has vanished ends the connection after 10 s.
const IDLE: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_secs(1);
const PROBES: u32 = 5;

/// Prepares a TCP connection: what is said is sent at once, and a host that vanishes ends it, also when nothing more
/// is said.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_tcp_keepidle(stream, IDLE)?;
    sockopt::set_tcp_keepintvl(stream, INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    sockopt::set_socket_keepalive(stream, true)?;
    Ok(())
}

/// A stream whose reads and writes end after a time.
pub trait Stream: Read + Write {
    /// Sets the longest time of a read, and of a write.
    ///
    /// # Errors
    /// The kernel refuses.
    fn set_patience(&self, patience: Duration) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))?;
        self.set_write_timeout(Some(patience))
    }
}

impl Stream for UnixStream {
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))?;
        self.set_write_timeout(Some(patience))
    }
}

/// A connection to a peer, with a deadline for all that is said over it.
#[derive(Debug)]
pub struct Channel<S> {
    stream: S,
    deadline: Deadline,
}

impl Channel<TcpStream> {
    /// Connects to a peer, which may begin to listen later. The time is that of the whole exchange, until
    /// [`within`](Self::within) sets another.
    ///
    /// # Errors
    /// The peer does not listen in time, or cannot be reached.
    pub fn connect(to: SocketAddr, patience: impl Into<Patience>) -> Result<Self, ExchangeError> {
        let step = "connecting to the peer";
        let deadline = Deadline::new(patience.into());
        loop {
            let left = deadline.left(step)?;
            match TcpStream::connect_timeout(&to, left.min(ATTEMPT)) {
                Ok(stream) => {
                    prepare(&stream).map_err(io_at(step))?;
                    return Ok(Self { stream, deadline });
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    thread::sleep(RETRY.min(left));
                }
                Err(error) => retry(step, error)?,
            }
        }
    }

    /// Whether the peer has not closed its end, and its host is there: one that has vanished is known after some 10 s.
    /// It has nothing more to say, as the exchange is over; what it says all the same is discarded.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let look = || {
            self.stream.set_nonblocking(true)?;
            let looked = (&self.stream).read(&mut [0; 4096]);
            self.stream.set_nonblocking(false)?;
            looked
        };
        match look() {
            Ok(bytes) => bytes > 0,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

impl<S: Stream> Channel<S> {
    /// A channel over a stream that is connected. The time is that of the whole exchange, until
    /// [`within`](Self::within) sets another.
    pub fn new(stream: S, patience: impl Into<Patience>) -> Self {
        let deadline = Deadline::new(patience.into());
        Self { stream, deadline }
    }

    /// Sets another deadline: so long from now. A flag stays the same.
    pub fn within(&mut self, time: Duration) {
        self.deadline = self.deadline.again(time);
    }

    fn ready(&self, step: &'static str) -> Result<(), ExchangeError> {
        let nap = self.deadline.nap(step)?;
        self.stream.set_patience(nap).map_err(io_at(step))
    }

    pub(super) fn send(&mut self, bytes: &[u8], step: &'static str) -> Result<(), ExchangeError> {
        let mut sent = 0;
        while sent < bytes.len() {
            self.ready(step)?;
            match self.stream.write(&bytes[sent..]) {
                Ok(0) => {
                    return Err(ExchangeError::CutShort {
                        step,
                        got: sent,
                        expected: bytes.len(),
                    });
                }
                Ok(more) => sent += more,
                Err(error) => retry(step, error)?,
            }
        }
        Ok(())
    }

    /// What there is, at most to the end of `into`; 0 if the peer has closed the stream.
    fn read_some(&mut self, into: &mut [u8], step: &'static str) -> Result<usize, ExchangeError> {
        loop {
            self.ready(step)?;
            match self.stream.read(into) {
                Ok(read) => return Ok(read),
                Err(error) => retry(step, error)?,
            }
        }
    }

    pub(super) fn read<const N: usize>(
        &mut self,
        step: &'static str,
    ) -> Result<[u8; N], ExchangeError> {
        let mut bytes = [0; N];
        let mut got = 0;
        while got < N {
            match self.read_some(&mut bytes[got..], step)? {
                0 => {
                    return Err(ExchangeError::CutShort {
                        step,
                        got,
                        expected: N,
                    });
                }
                more => got += more,
            }
        }
        Ok(bytes)
    }

    /// A line of `most` bytes or fewer, without its end. Bytes behind the line are lost.
    pub(super) fn line(
        &mut self,
        most: usize,
        step: &'static str,
    ) -> Result<Vec<u8>, ExchangeError> {
        let mut line = Vec::new();
        let mut part = [0; 4096];
        loop {
            let read = self.read_some(&mut part, step)?;
            let part = &part[..read];
            if let Some(end) = part.iter().position(|&byte| byte == b'\n') {
                line.extend_from_slice(&part[..end]);
                if line.len() <= most {
                    return Ok(line);
                }
            } else {
                line.extend_from_slice(part);
            }
            if line.len() > most {
                let expected = "a line of at most 64 KiB";
                return Err(ExchangeError::malformed(step, &line, expected));
            }
            if read == 0 {
                return Err(ExchangeError::CutShort {
                    step,
                    got: line.len(),
                    expected: most,
                });
            }
        }
    }

    /// Waits until the stream has passed on what was sent, if it has a way to know.
    pub(super) fn flush(&mut self, step: &'static str) -> Result<(), ExchangeError> {
        loop {
            self.ready(step)?;
            match self.stream.flush() {
                Ok(()) => return Ok(()),
                Err(error) => retry(step, error)?,
            }
        }
    }

    /// Reads so many bytes, or until the peer closes the stream: closing it with bytes that were not read
    /// would abort it.
    pub(super) fn drain(&mut self, bytes: usize, step: &'static str) -> Result<(), ExchangeError> {
        let (mut rest, mut read) = ([0; 256], 0);
        while read < bytes {
            match self.read_some(&mut rest, step) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(ExchangeError::Io { source, .. })
                    if source.kind() == ErrorKind::ConnectionReset =>
                {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Waits for peers.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Listens at an address; port 0 is any.
    ///
    /// # Errors
    /// The address is in use, or is not the host's.
    pub fn bind(at: SocketAddr) -> Result<Self, ExchangeError> {
        let step = "listening for the peer";
        TcpListener::bind(at).map(Self).map_err(io_at(step))
    }

    /// The address.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn address(&self) -> Result<SocketAddr, ExchangeError> {
        self.0.local_addr().map_err(io_at("listening for the peer"))
    }

    /// Waits for the next peer. The time is that of the whole exchange, until
    /// [`within`](Channel::within) sets another.
    ///
    /// # Errors
    /// None came in time.
    pub fn accept(
        &self,
        patience: impl Into<Patience>,
    ) -> Result<Channel<TcpStream>, ExchangeError> {
        let step = "waiting for the peer";
        let deadline = Deadline::new(patience.into());
        self.0.set_nonblocking(true).map_err(io_at(step))?;
        loop {
            let nap = deadline.nap(step)?;
            match self.0.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(io_at(step))?;
                    prepare(&stream).map_err(io_at(step))?;
                    return Ok(Channel { stream, deadline });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut events = [PollFd::new(&self.0, PollFlags::IN)];
                    let nap = Timespec::try_from(nap).ok();
                    poll(&mut events, nap.as_ref()).or_else(|errno| {
                        let error = io::Error::from(errno);
                        retry(step, error).map(|()| 0)
                    })?;
                }
                Err(error) => retry(step, error)?,
            }
        }
    }
}

/// Contents of a file that a peer writes, when it is there.
pub(super) fn read_file(
    path: &std::path::Path,
    most: usize,
    patience: Duration,
    step: &'static str,
) -> Result<Vec<u8>, ExchangeError> {
    let deadline = Deadline::new(patience.into());
    loop {
        match fs::File::open(path) {
            Ok(file) => {
                let mut bytes = Vec::new();
                let mut file = file.take(most as u64 + 1);
                file.read_to_end(&mut bytes).map_err(io_at(step))?;
                return Ok(bytes);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                thread::sleep(RETRY.min(deadline.left(step)?));
            }
            Err(error) => return Err(io_at(step)(error)),
        }
    }
}

pub(super) fn io_at(step: &'static str) -> impl Fn(io::Error) -> ExchangeError {
    move |source| ExchangeError::Io { step, source }
}

/// Whether a call is to be repeated: there may be time left, or the flag may be set.
fn retry(step: &'static str, error: io::Error) -> Result<(), ExchangeError> {
    match error.kind() {
        ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(()),
        _ => Err(io_at(step)(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn both_ends_ask_whether_a_silent_host_is_there() {
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let time = Duration::from_mins(1);
        let connected = Channel::connect(listener.address().unwrap(), time).unwrap();
        let accepted = listener.accept(time).unwrap();
        for stream in [&connected.stream, &accepted.stream] {
            assert_eq!(sockopt::socket_keepalive(stream), Ok(true));
            let times = [
                sockopt::tcp_keepidle(stream),
                sockopt::tcp_keepintvl(stream),
            ];
            assert_eq!(times, [Ok(IDLE), Ok(INTERVAL)]);
            assert_eq!(sockopt::tcp_keepcnt(stream), Ok(PROBES));
        }
    }
}
