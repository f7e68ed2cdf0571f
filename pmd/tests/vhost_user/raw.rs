//! Peers whose messages a test writes by hand.

use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::support::{PATIENCE, Port};

pub(crate) const GET_FEATURES: u32 = 1;
pub(crate) const SET_FEATURES: u32 = 2;
pub(crate) const SET_MEM_TABLE: u32 = 5;
pub(crate) const SET_VRING_NUM: u32 = 8;
pub(crate) const SET_VRING_ADDR: u32 = 9;
pub(crate) const SET_VRING_BASE: u32 = 10;
pub(crate) const GET_VRING_BASE: u32 = 11;
pub(crate) const SET_VRING_KICK: u32 = 12;
pub(crate) const SET_VRING_CALL: u32 = 13;
pub(crate) const SET_PROTOCOL_FEATURES: u32 = 16;
pub(crate) const SET_VRING_ENABLE: u32 = 18;

pub(crate) const VERSION_1: u64 = 1 << 32;
pub(crate) const PACKED: u64 = 1 << 34;
pub(crate) const IN_ORDER: u64 = 1 << 35;
pub(crate) const PROTOCOL: u64 = 1 << 30;

/// Size of the shared memory of a hand-written front end, at this address.
pub(crate) const MEMORY: u64 = 1 << 16;
pub(crate) const AT: u64 = 0x7000_0000_0000;

/// A hand-written peer.
pub(crate) struct Raw(UnixStream);

impl Raw {
    pub(crate) fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    pub(crate) fn connect(path: &Path) -> Self {
        Self::new(UnixStream::connect(path).unwrap())
    }

    /// Sends bytes, if the port is still connected.
    pub(crate) fn bytes(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> &Self {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
        let _ = sendmsg(
            &self.0,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        );
        self
    }

    pub(crate) fn flagged(
        &self,
        request: u32,
        flags: u32,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> &Self {
        let header = [request, flags, payload.len() as u32];
        let header = header.map(u32::to_ne_bytes).concat();
        self.bytes(&[&header, payload].concat(), fds)
    }

    pub(crate) fn request(&self, request: u32, payload: &[u8]) -> &Self {
        self.flagged(request, 1, payload, &[])
    }

    pub(crate) fn number(&self, request: u32, number: u64) -> &Self {
        self.request(request, &number.to_ne_bytes())
    }

    pub(crate) fn ring(&self, request: u32, index: u32, number: u32) -> &Self {
        self.request(request, &[index, number].map(u32::to_ne_bytes).concat())
    }

    pub(crate) fn table(&self, regions: &[[u64; 4]], fds: &[BorrowedFd<'_>]) -> &Self {
        let mut payload = [regions.len() as u32, 0].map(u32::to_ne_bytes).concat();
        for region in regions {
            payload.extend(region.map(u64::to_ne_bytes).concat());
        }
        self.flagged(SET_MEM_TABLE, 1, &payload, fds)
    }

    pub(crate) fn address(&self, index: u32, [descriptors, used, available]: [u64; 3]) -> &Self {
        let mut payload = [index, 0].map(u32::to_ne_bytes).concat();
        payload.extend(
            [descriptors, used, available, 0]
                .map(u64::to_ne_bytes)
                .concat(),
        );
        self.request(SET_VRING_ADDR, &payload)
    }

    /// A message from the port: its number and payload.
    pub(crate) fn receive(&mut self) -> Option<(u32, Vec<u8>)> {
        self.receive_with(&mut Vec::new())
    }

    /// As `receive`, with the attached descriptors.
    pub(crate) fn receive_with(&mut self, fds: &mut Vec<OwnedFd>) -> Option<(u32, Vec<u8>)> {
        let mut header = [0; 12];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut header)];
        let flags = RecvFlags::WAITALL | RecvFlags::CMSG_CLOEXEC;
        let got = recvmsg(&self.0, &mut into, &mut control, flags).ok()?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        if got.bytes < header.len() {
            return None;
        }
        let word = |i: usize| u32::from_ne_bytes(header[4 * i..][..4].try_into().unwrap());
        let mut payload = vec![0; word(2) as usize];
        self.0.read_exact(&mut payload).ok()?;
        Some((word(0), payload))
    }

    /// Reads until the port closes the connection.
    pub(crate) fn until_closed(mut self) {
        let began = Instant::now();
        let mut bytes = [0; 512];
        while !matches!(self.0.read(&mut bytes), Ok(0) | Err(_)) {}
        assert!(
            began.elapsed() < PATIENCE,
            "it did not close the connection"
        );
    }
}

/// Addresses of the rings of a hand-written front end.
pub(crate) const RINGS: [u64; 3] = [AT, AT + 0x1000, AT + 0x2000];

pub(crate) fn memory() -> OwnedFd {
    let memory = memfd_create("peer", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&memory, MEMORY).unwrap();
    memory
}

pub(crate) fn violations(port: &Port) -> u64 {
    port.statistic("protocol-violations")
}

/// Polls and sends until a condition holds; returns the number of frames received.
pub(crate) fn poll_until(port: &mut Port, mut holds: impl FnMut(&Port) -> bool) -> u64 {
    let (began, mut frames) = (Instant::now(), 0);
    while !holds(port) {
        assert!(began.elapsed() < PATIENCE, "it is not counted");
        frames += port.poll(0).len() as u64;
        port.send(0, &[vec![0; 60]]);
        // Until the supervisor has looked.
        std::thread::sleep(Duration::from_micros(100));
    }
    frames
}

/// Polls until this number of violations is counted; returns the number of frames received.
pub(crate) fn wait_for_violations(port: &mut Port, n: u64) -> u64 {
    poll_until(port, |port| violations(port) >= n)
}
