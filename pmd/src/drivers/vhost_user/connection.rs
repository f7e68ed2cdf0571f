//! Socket between front end and back end: whole messages with their descriptors, and bounded waits.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use zerocopy::{FromZeros, IntoBytes};

use super::ended::Ended;
use super::message::{Header, MAX_REGIONS, Message};
use super::process::Process;

/// Time for the peer to reply, or to complete a message that it has begun.
const PATIENCE: Duration = Duration::from_secs(3);

/// The same when the port is being stopped.
const PATIENCE_AT_END: Duration = Duration::from_millis(500);

/// Interval at which the rings are checked.
const WATCH: Duration = Duration::from_millis(100);

/// Stop signal: ends every wait of a control thread, from another thread.
#[derive(Clone)]
pub(super) struct Stop(Arc<OwnedFd>);

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(Arc::new(eventfd(0, flags)?)))
    }

    pub(super) fn raise(&self) {
        // A write cannot fail: the counter is far from its maximum, and a full one would do as
        // well.
        let _ = rustix::io::write(&*self.0, 1_u64.as_bytes());
    }

    /// Waits for an event of `fd` (or only for the time-out); returns whether one occurred.
    pub(super) fn wait(
        &self,
        fd: Option<(BorrowedFd<'_>, PollFlags)>,
        timeout: Option<Duration>,
    ) -> Result<bool, Ended> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let left = left.map(|left| Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            });
            let mut fds = [
                PollFd::new(&*self.0, PollFlags::IN),
                PollFd::new(&*self.0, PollFlags::empty()),
            ];
            if let Some((fd, events)) = fd {
                fds[1] = PollFd::from_borrowed_fd(fd, events);
            }
            match poll(&mut fds, left.as_ref()) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(Ended::system("cannot wait")(error)),
                Ok(_) if !fds[0].revents().is_empty() => return Err(Ended::Stopped),
                Ok(_) => return Ok(!fds[1].revents().is_empty()),
            }
        }
    }
}

/// A connected socket.
pub(super) struct Connection {
    socket: UnixStream,
    stop: Stop,
    patience: Duration,
}

impl Connection {
    pub(super) fn new(socket: UnixStream, stop: Stop) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            stop,
            patience: PATIENCE,
        })
    }

    /// The process of the peer, if it can be determined.
    pub(super) fn process(&self) -> Option<Process> {
        Process::of_peer(self.socket.as_fd())
    }

    /// From here on the port's stop signal ends no wait, but the peer gets less time.
    pub(super) fn hurry(&mut self) -> Result<(), Ended> {
        self.stop = Stop::new().map_err(Ended::system("cannot take leave"))?;
        self.patience = PATIENCE_AT_END;
        Ok(())
    }

    /// Waits for a message for as long as `watch` finds no error. `watch` runs at intervals, and
    /// before each message, so that a peer that sends without a pause is watched too.
    pub(super) fn next(&self, watch: impl Fn() -> Result<(), Ended>) -> Result<Message, Ended> {
        let message = Some((self.socket.as_fd(), PollFlags::IN));
        loop {
            let has_come = self.stop.wait(message, Some(WATCH))?;
            watch()?;
            if has_come {
                return self.receive("send the rest of a message");
            }
        }
    }

    /// Receives a message; `what` is the expected action, for the error if it times out.
    pub(super) fn receive(&self, what: &'static str) -> Result<Message, Ended> {
        let deadline = Instant::now() + self.patience;
        let mut fds = Vec::new();
        let mut header = Header::new_zeroed();
        self.fill(header.as_mut_bytes(), &mut fds, deadline, what)?;
        Message::check(&header)?;
        let mut payload = vec![0; header.size as usize];
        self.fill(&mut payload, &mut fds, deadline, what)?;
        Ok(Message {
            header,
            payload,
            fds,
        })
    }

    fn fill(
        &self,
        mut to: &mut [u8],
        fds: &mut Vec<OwnedFd>,
        deadline: Instant,
        what: &'static str,
    ) -> Result<(), Ended> {
        while !to.is_empty() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_REGIONS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            let mut parts = [IoSliceMut::new(to)];
            match recvmsg(&self.socket, &mut parts, &mut control, flags) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::IN, deadline, what)?,
                Err(error) => return Err(Ended::system("cannot receive a message")(error)),
                Ok(received) => {
                    // The kernel has closed the descriptors for which it had no room.
                    let cut = received.flags.contains(ReturnFlags::CTRUNC);
                    for message in control.drain() {
                        if let RecvAncillaryMessage::ScmRights(more) = message {
                            fds.extend(more);
                        }
                    }
                    if cut || fds.len() > MAX_REGIONS {
                        return Err(Ended::Violation(format!(
                            "more than {MAX_REGIONS} descriptors with a message"
                        )));
                    }
                    if received.bytes == 0 {
                        return Err(Ended::Closed);
                    }
                    to = &mut to[received.bytes..];
                }
            }
        }
        Ok(())
    }

    /// Sends a message.
    pub(super) fn send(
        &self,
        header: Header,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), Ended> {
        let what = "take a message";
        let deadline = Instant::now() + self.patience;
        let message = [header.as_bytes(), payload].concat();
        let mut sent = 0;
        while sent < message.len() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_REGIONS))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            // The descriptors are sent with the first byte.
            if sent == 0 && !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
                let error = io::ErrorKind::InvalidInput.into();
                return Err(Ended::System("too many descriptors to send", error));
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let parts = [IoSlice::new(&message[sent..])];
            match sendmsg(&self.socket, &parts, &mut control, flags) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, deadline, what)?,
                Err(error) => return Err(Ended::system("cannot send a message")(error)),
                Ok(more) => sent += more,
            }
        }
        Ok(())
    }

    fn wait(&self, events: PollFlags, deadline: Instant, what: &'static str) -> Result<(), Ended> {
        let left = deadline.saturating_duration_since(Instant::now());
        if self
            .stop
            .wait(Some((self.socket.as_fd(), events)), Some(left))?
        {
            Ok(())
        } else {
            Err(Ended::Late(what))
        }
    }

    /// Closes this end, and waits for a short time until the peer has closed its end too.
    pub(super) fn close(self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
        let deadline = Instant::now() + self.patience;
        let mut rest = [0; 256];
        while Instant::now() < deadline {
            match rustix::net::recv(&self.socket, &mut rest[..], RecvFlags::DONTWAIT) {
                Ok((1.., _)) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => std::thread::sleep(Duration::from_millis(1)),
                Ok(_) | Err(_) => return,
            }
        }
    }
}
