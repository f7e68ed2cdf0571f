//! vhost-user messages that a network port needs: QEMU's docs/interop/vhost-user, sections "Message
//! Specification" and "Front-end message types". All numbers are in the machine's own byte order.

use std::os::fd::OwnedFd;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use super::ended::Ended;

/// Maximum number of regions in a memory table, and of descriptors with a message.
pub(super) const MAX_REGIONS: usize = 8;

/// Maximum size of a payload in bytes: a full memory table.
pub(super) const MAX_PAYLOAD: usize = size_of::<TableHead>() + MAX_REGIONS * size_of::<Region>();

/// Bits 0 and 1 of the flags: the version.
const VERSION_MASK: u32 = 3;
const VERSION: u32 = 1;
/// The message is a reply.
const REPLY: u32 = 1 << 2;
/// The sender requests an acknowledgement ("REPLY_ACK").
const NEED_REPLY: u32 = 1 << 3;

/// In the payload of SET_VRING_KICK, CALL and ERR: no descriptor is attached.
pub(super) const NO_FD: u64 = 1 << 8;

/// Feature bits of the protocol.
pub(super) mod protocol {
    pub(in super::super) const MULTI_QUEUE: u64 = 1 << 0;
    pub(crate) const REPLY_ACK: u64 = 1 << 3;
    pub(crate) const MTU: u64 = 1 << 4;
    pub(crate) const RESET_DEVICE: u64 = 1 << 13;
}

/// Supported requests of a front end; all others require features that are not offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable)]
#[repr(u32)]
#[expect(dead_code, reason = "some are only ever read from the wire")]
pub(super) enum Request {
    GetFeatures = 1,
    SetFeatures = 2,
    SetOwner = 3,
    ResetOwner = 4,
    SetMemTable = 5,
    SetVringNum = 8,
    SetVringAddr = 9,
    SetVringBase = 10,
    GetVringBase = 11,
    SetVringKick = 12,
    SetVringCall = 13,
    SetVringErr = 14,
    GetProtocolFeatures = 15,
    SetProtocolFeatures = 16,
    GetQueueNum = 17,
    SetVringEnable = 18,
    NetSetMtu = 20,
    ResetDevice = 34,
}

/// Header of each message.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Header {
    request: u32,
    flags: u32,
    pub(super) size: u32,
}

impl Header {
    pub(super) fn request(request: Request, size: usize, need_reply: bool) -> Self {
        Self {
            request: request as u32,
            flags: VERSION | if need_reply { NEED_REPLY } else { 0 },
            size: size as u32,
        }
    }

    /// The header of a reply to this message.
    pub(super) fn reply(&self, size: usize) -> Self {
        Self {
            request: self.request,
            flags: VERSION | REPLY,
            size: size as u32,
        }
    }
}

/// "A vring state description"
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct VringState {
    pub(super) index: u32,
    pub(super) num: u32,
}

/// "A vring address description"
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct VringAddress {
    pub(super) index: u32,
    pub(super) flags: u32,
    pub(super) descriptors: u64,
    pub(super) used: u64,
    pub(super) available: u64,
    pub(super) log: u64,
}

/// The start of "memory regions description"
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct TableHead {
    pub(super) regions: u32,
    pub(super) padding: u32,
}

/// A region in "memory regions description"
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Region {
    pub(super) guest: u64,
    pub(super) size: u64,
    pub(super) user: u64,
    pub(super) offset: u64,
}

/// A received message.
pub(super) struct Message {
    pub(super) header: Header,
    pub(super) payload: Vec<u8>,
    pub(super) fds: Vec<OwnedFd>,
}

impl Message {
    /// The request; `None` if it is unknown here.
    pub(super) fn request(&self) -> Option<Request> {
        Request::try_read_from_bytes(self.header.request.as_bytes()).ok()
    }

    /// The request's number, for messages.
    pub(super) fn number(&self) -> u32 {
        self.header.request
    }

    pub(super) fn needs_reply(&self) -> bool {
        self.header.flags & NEED_REPLY != 0
    }

    /// Checks that the header is valid in this protocol.
    pub(super) fn check(header: &Header) -> Result<(), Ended> {
        if header.flags & VERSION_MASK != VERSION {
            return Err(Ended::Violation(format!(
                "a message of version {}; 1 is the only one",
                header.flags & VERSION_MASK
            )));
        }
        if header.size as usize > MAX_PAYLOAD {
            return Err(Ended::Violation(format!(
                "a message of {} bytes; none is longer than {MAX_PAYLOAD}",
                header.size
            )));
        }
        Ok(())
    }

    /// Checks that this is the reply to `request`.
    pub(super) fn expect_reply(&self, request: Request) -> Result<(), Ended> {
        if self.header.flags & REPLY == 0 || self.header.request != request as u32 {
            return Err(Ended::Violation(format!(
                "a message number {} with flags {:#x} came instead of the reply to {request:?}",
                self.header.request, self.header.flags
            )));
        }
        Ok(())
    }

    /// The payload as a type of its size.
    pub(super) fn read<T: FromBytes>(&self) -> Result<T, Ended> {
        T::read_from_bytes(&self.payload).map_err(|_| self.bad_size(size_of::<T>()))
    }

    /// The start of the payload, and the rest.
    pub(super) fn read_prefix<T: FromBytes>(&self) -> Result<(T, &[u8]), Ended> {
        T::read_from_prefix(&self.payload).map_err(|_| self.bad_size(size_of::<T>()))
    }

    fn bad_size(&self, expected: usize) -> Ended {
        Ended::Violation(format!(
            "message number {} has {} bytes, not {expected}",
            self.header.request,
            self.payload.len()
        ))
    }

    /// The regions of a memory table, one descriptor for each.
    pub(super) fn take_regions(&mut self) -> Result<Vec<(Region, OwnedFd)>, Ended> {
        let (head, rest) = self.read_prefix::<TableHead>()?;
        let count = head.regions as usize;
        let regions: Vec<Region> = rest
            .chunks_exact(size_of::<Region>())
            .take(count)
            .filter_map(|bytes| Region::read_from_bytes(bytes).ok())
            .collect();
        if count > MAX_REGIONS || regions.len() != count || self.fds.len() != count {
            return Err(Ended::Violation(format!(
                "a memory table of {count} regions in {} bytes with {} descriptors; at most \
                 {MAX_REGIONS}, one descriptor each",
                self.payload.len(),
                self.fds.len()
            )));
        }
        Ok(regions.into_iter().zip(self.fds.drain(..)).collect())
    }

    /// The ring of SET_VRING_KICK, CALL or ERR, and the descriptor, if one is attached.
    pub(super) fn take_vring_fd(&mut self) -> Result<(u32, Option<OwnedFd>), Ended> {
        let word: u64 = self.read()?;
        let expected = usize::from(word & NO_FD == 0);
        if self.fds.len() != expected {
            return Err(Ended::Violation(format!(
                "message number {} announces {expected} descriptors and brings {}",
                self.header.request,
                self.fds.len()
            )));
        }
        Ok(((word & 0xff) as u32, self.fds.pop()))
    }
}
