//! READ requests that a responder has taken: their responses leave in portions.

use pollux_pmd::net::UdpTemplate;
use pollux_pmd::net::roce::{Aeth, Bth, Opcode, Part, Syndrome};
use zerocopy::IntoBytes;

use super::connection::Connection;
use super::drops::Failure;
use super::output::Output;
use crate::access::{Access, RemoteBuffer};
use crate::address::{Mtu, Psn};
use crate::event::Status;
use crate::registrations::Session;

/// READs that a responder keeps (verbs: max_dest_rd_atomic; rdma_rxe takes 128 too).
const READS: usize = 128;

/// A READ.
#[derive(Clone, Copy)]
struct Read {
    /// Number of its first response.
    first: Psn,
    remote: RemoteBuffer,
    bytes: u32,
    packets: u32,
    /// Responses that have been sent.
    sent: u32,
}

/// The READs of a responder, in the order of their numbers.
pub(super) struct Reads(Vec<Read>);

impl Reads {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(READS))
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a READ; `None` if there are enough, otherwise the number of its responses.
    pub(super) fn push(
        &mut self,
        first: Psn,
        remote: RemoteBuffer,
        bytes: u32,
        mtu: Mtu,
    ) -> Option<u32> {
        let packets = mtu.packets(bytes);
        let read = Read {
            first,
            remote,
            bytes,
            packets,
            sent: 0,
        };
        (self.0.len() < READS).then(|| {
            self.0.push(read);
            packets
        })
    }

    /// Takes a READ again, all of it or its rest. False if there is no room.
    pub(super) fn repeat(
        &mut self,
        first: Psn,
        remote: RemoteBuffer,
        bytes: u32,
        mtu: Mtu,
    ) -> bool {
        let read = Read {
            first,
            remote,
            bytes,
            packets: mtu.packets(bytes),
            sent: 0,
        };
        let covers = |old: &Read| {
            let at = first.since(old.first);
            at >= 0 && at.cast_unsigned() < old.packets
        };
        if let Some(old) = self.0.iter_mut().find(|old| covers(old)) {
            *old = read;
            return true;
        }
        if self.0.len() == READS {
            return false;
        }
        let at = self.0.partition_point(|old| old.first.since(first) < 0);
        self.0.insert(at, read);
        true
    }

    /// Sends up to `most` responses, and returns how many. A failure is that of a range which is not
    /// registered any more.
    pub(super) fn send(
        &mut self,
        connection: &Connection,
        headers: &UdpTemplate,
        out: &mut Output,
        session: &Session<'_>,
        (msn, most): (u32, u32),
    ) -> Result<u32, Failure> {
        let mtu = connection.mtu.bytes() as u64;
        for sent in 0..most {
            let Some(read) = self.0.first_mut() else {
                return Ok(sent);
            };
            let offset = u64::from(read.sent) * mtu;
            let len = u64::from(read.bytes).saturating_sub(offset).min(mtu);
            let psn = read.first.after(read.sent);
            let part = Part::of(read.sent, read.packets);
            let bth = Bth::new(
                Opcode::read_response(part),
                connection.peer.get(),
                psn.get(),
            );
            let aeth = Aeth::new(Syndrome::ACK.code(), msn);
            let extended = if part == Part::Middle {
                &[]
            } else {
                aeth.as_bytes()
            };
            let is_sent = if len == 0 {
                out.send(headers, bth, &[extended], 0, |_| true)
            } else {
                let from = read.remote.at(offset);
                let Ok(data) = session.remote(from, len, Access::READ) else {
                    self.0.clear();
                    let status = Status::RemoteAccess;
                    return Err(Failure { status, psn });
                };
                out.send(headers, bth, &[extended], len as usize, |to| {
                    data.read(to);
                    true
                })
            };
            if !is_sent {
                return Ok(sent);
            }
            read.sent += 1;
            if read.sent >= read.packets {
                self.0.remove(0);
            }
        }
        Ok(most)
    }
}
