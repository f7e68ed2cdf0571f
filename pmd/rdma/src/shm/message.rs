//! Messages over the socket that links two endpoints: 64 bytes each, of which some bring a memory file.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// Begins the conversation: "Pollux", and the version of the layouts.
pub(super) const HELLO: u64 = 0x506f_6c6c_7578_0001;

/// What a message says.
pub(super) mod kind {
    /// First message in either direction; `address` is [`HELLO`](super::HELLO).
    pub(in super::super) const HELLO: u32 = 1;
    /// A range is registered; with its memory file.
    pub(in super::super) const REGISTER: u32 = 2;
    /// The range with the key is to be taken away.
    pub(in super::super) const WITHDRAW: u32 = 3;
    /// A queue pair was made; with the memory file of its inbox.
    pub(in super::super) const CREATE: u32 = 4;
    /// The queue pair is destroyed.
    pub(in super::super) const DESTROY: u32 = 5;
    /// The message with the same `id` was executed; `number`: 0, or 1 if it was refused.
    pub(in super::super) const ANSWER: u32 = 6;
}

/// A message. Both processes run on one machine: numbers are as the machine has them.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Message {
    /// One of [`kind`].
    pub(super) kind: u32,
    /// Names the message in its answer.
    pub(super) id: u32,
    /// A key, or the number of a queue pair.
    pub(super) number: u32,
    /// Bit 0: the peer may write; bit 1: it may read.
    pub(super) rights: u32,
    pub(super) address: u64,
    pub(super) len: u64,
    /// Offset of the range in its file.
    pub(super) offset: u64,
    pub(super) reserved: [u64; 3],
}

impl Message {
    pub(super) fn new(kind: u32) -> Self {
        Self {
            kind,
            ..Self::new_zeroed()
        }
    }
}

/// Sends a message. It does not wait: the peer's end has room for far more than it ever has to take, if it
/// takes any.
pub(super) fn send(
    socket: &UnixStream,
    message: &Message,
    file: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = file.as_slice();
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let parts = [IoSlice::new(message.as_bytes())];
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        match sendmsg(socket.as_fd(), &parts, &mut control, flags) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            // The kernel takes so few bytes as a whole.
            Ok(sent) if sent < size_of::<Message>() => return Err(io::ErrorKind::WriteZero.into()),
            Ok(_) => return Ok(()),
        }
    }
}

/// Receives a message, for which it waits; and its memory file, if it has one.
pub(super) fn receive(socket: &UnixStream) -> io::Result<(Message, Option<OwnedFd>)> {
    let mut message = Message::new_zeroed();
    let (mut filled, mut file) = (0, None);
    while filled < size_of::<Message>() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut message.as_mut_bytes()[filled..])];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = match recvmsg(socket.as_fd(), &mut parts, &mut control, flags) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let is_cut = received.flags.contains(ReturnFlags::CTRUNC);
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = part {
                for more in files {
                    if file.replace(more).is_some() {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                }
            }
        }
        if is_cut {
            return Err(io::ErrorKind::InvalidData.into());
        }
        filled += received.bytes;
    }
    Ok((message, file))
}
