//! A client of the live stream: its connection, and what is being sent to it.

use std::io::{self, ErrorKind, IoSlice, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::zmtp::{self, Incoming, Said, ZmtpError};
use crate::image::Dense;

/// Bytes of short messages that may wait for a client.
const WAITING: usize = 1 << 16;

/// Reason why a client is disconnected.
#[derive(Debug, thiserror::Error)]
pub(super) enum Gone {
    #[error("it has disconnected")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Zmtp(#[from] ZmtpError),
    #[error("it has read nothing for {0:?}")]
    Stalled(Duration),
}

/// An image that is being sent.
struct Sending<B> {
    pixels: Dense<B>,
    /// Bytes of head and pixels that the socket has taken.
    sent: usize,
}

/// A client.
pub(super) struct Client<B> {
    stream: TcpStream,
    incoming: Incoming,
    /// Whether the handshake is complete.
    open: bool,
    /// Bytes to be sent when the image is.
    waiting: Vec<u8>,
    /// Those of `waiting` that the socket has taken.
    taken: usize,
    /// Frame header and start of the message of `image`.
    head: Vec<u8>,
    image: Option<Sending<B>>,
    /// When the client last took bytes, or had none to take.
    progress: Instant,
}

impl<B: AsRef<[u8]>> Client<B> {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let waiting = [&zmtp::greeting()[..], zmtp::READY].concat();
        Ok(Self {
            stream,
            incoming: Incoming::new(),
            open: false,
            waiting,
            taken: 0,
            head: Vec::with_capacity(1024),
            image: None,
            progress: Instant::now(),
        })
    }

    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether it can take an image now.
    pub(super) const fn is_ready(&self) -> bool {
        self.open && !self.wants_to_send()
    }

    /// Whether the handshake is complete.
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// Whether there are bytes that the socket has not taken.
    pub(super) const fn wants_to_send(&self) -> bool {
        self.image.is_some() || !self.waiting.is_empty()
    }

    /// Reads what the client says; `true` if its handshake is complete now.
    pub(super) fn read(&mut self) -> Result<bool, Gone> {
        let was_open = self.open;
        let mut bytes = [0; 256];
        // A client that sends without end has its turn, as the others have theirs.
        for _ in 0..4 {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(Gone::Closed),
                Ok(n) => self.incoming.add(&bytes[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
            while let Some(said) = self.incoming.next()? {
                match said {
                    Said::Ready => self.open = true,
                    Said::Ping(context) => self.add(&[&zmtp::pong(&context)])?,
                }
            }
        }
        Ok(self.open && !was_open)
    }

    /// Adds a short message behind what is being sent.
    pub(super) fn add_message(&mut self, message: &[u8]) -> Result<(), Gone> {
        self.add(&[&zmtp::message_header(message.len()), message])
    }

    fn add(&mut self, parts: &[&[u8]]) -> Result<(), Gone> {
        if self.waiting.len() > WAITING {
            return Err(Gone::Stalled(self.progress.elapsed()));
        }
        if !self.wants_to_send() {
            self.progress = Instant::now();
        }
        for part in parts {
            self.waiting.extend_from_slice(part);
        }
        Ok(())
    }

    /// Begins to send an image to a client that is ready: `write` writes the start of its message.
    pub(super) fn begin_image(
        &mut self,
        pixels: Dense<B>,
        write: impl FnOnce(&Dense<B>, &mut Vec<u8>),
    ) {
        write(&pixels, &mut self.head);
        let header = zmtp::message_header(self.head.len() + pixels.bytes().len());
        self.head.splice(..0, header);
        self.image = Some(Sending { pixels, sent: 0 });
        self.progress = Instant::now();
    }

    /// Whether an image is lost if the client goes now.
    pub(super) const fn has_image(&self) -> bool {
        self.image.is_some()
    }

    /// Sends until the socket takes nothing more; `true` if an image is complete now. A client that
    /// takes nothing for `stall` is given up.
    pub(super) fn write(&mut self, stall: Duration) -> Result<bool, Gone> {
        let mut complete = false;
        while self.wants_to_send() {
            let sent = match &self.image {
                Some(image) => {
                    let (head, pixels) = (&self.head[..], image.pixels.bytes());
                    let head = head.get(image.sent..).unwrap_or_default();
                    let pixels = &pixels[image.sent.saturating_sub(self.head.len())..];
                    self.stream
                        .write_vectored(&[IoSlice::new(head), IoSlice::new(pixels)])
                }
                None => self.stream.write(&self.waiting[self.taken..]),
            };
            match sent {
                Ok(0) => return Err(Gone::Closed),
                Ok(n) => {
                    self.progress = Instant::now();
                    complete |= self.advance(n);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.progress.elapsed() >= stall {
                        return Err(Gone::Stalled(stall));
                    }
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(complete)
    }

    /// The socket has taken `n` bytes; `true` if the image is complete.
    fn advance(&mut self, n: usize) -> bool {
        let Some(image) = &mut self.image else {
            self.taken += n;
            if self.taken == self.waiting.len() {
                self.waiting.clear();
                self.taken = 0;
            }
            return false;
        };
        image.sent += n;
        let complete = image.sent == self.head.len() + image.pixels.bytes().len();
        if complete {
            self.image = None;
        }
        complete
    }

    /// Whether it has been connected for `stall` without a handshake.
    pub(super) fn is_silent(&self, stall: Duration) -> bool {
        !self.open && self.progress.elapsed() >= stall
    }
}
