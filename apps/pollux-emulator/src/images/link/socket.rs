//! Through the kernel's UDP sockets: no driver, no privilege, any interface. Where the MTU is below the
//! size of a packet the kernel sends fragments.

use std::io::{ErrorKind, IoSlice};
use std::mem::offset_of;
use std::net::{Ipv4Addr, SocketAddrV4};

use pollux_images::formats::{Header, Layout};
use rustix::net::sockopt;
use socket2::Socket;
use zerocopy::IntoBytes as _;

use super::api::{PacketLink, SentCounts};
use crate::images::config::ImagesConfig;
use crate::images::stack::{Headers, Stack};
use crate::images::stream::Packet;
use crate::link::{SocketError, connect};

/// A link through one socket for each sender.
pub struct SocketLink {
    senders: Vec<Socket>,
    headers: Headers,
    sent: SentCounts,
}

impl SocketLink {
    /// Opens the sockets of a configuration that is valid, and its layout.
    ///
    /// # Errors
    /// An address that is not this host's, a port that is taken, or a receiver without a route.
    pub fn open(config: &ImagesConfig, layout: &Layout) -> Result<Self, SocketError> {
        let ip = config.addresses.src_ip.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let sender = |sender| {
            let (src, dst) = config.endpoints(sender);
            connect(SocketAddrV4::new(ip, src.socket.port()), dst.socket).map(Socket::from)
        };
        let senders = (0..layout.senders() as u16).map(sender);
        Ok(Self {
            senders: senders.collect::<Result<_, _>>()?,
            headers: Headers::new(config, layout),
            sent: SentCounts::default(),
        })
    }
}

impl SocketLink {
    /// The least MTU of the routes to the receiver, in bytes, where the kernel knows it.
    #[must_use]
    pub fn mtu(&self) -> Option<u32> {
        let mtus = self.senders.iter().map(sockopt::ip_mtu);
        mtus.filter_map(Result::ok).min()
    }
}

impl PacketLink for SocketLink {
    fn offer(&mut self, packet: &Packet, stack: &Stack) -> bool {
        let (sender, number) = (usize::from(packet.sender), usize::from(packet.packet));
        let Some(socket) = self.senders.get(sender) else {
            self.sent.errors += 1;
            return true;
        };
        let mut header = self.headers.of(packet.frame, sender, number);
        if let Some((_, bits)) = packet.corrupt {
            // The kernel makes the checksum, so the byte is one that every receiver checks.
            header.as_mut_bytes()[offset_of!(Header, detector)] ^= bits;
        }
        let pixels = stack.pixels(stack.place(packet.frame, sender, number));
        let parts = [IoSlice::new(header.as_bytes()), IoSlice::new(pixels)];
        let mut result = socket.send_vectored(&parts);
        if matches!(&result, Err(error) if error.kind() == ErrorKind::ConnectionRefused) {
            // The kernel reports what became of an earlier packet, and sends this one only now.
            self.sent.refused += 1;
            result = socket.send_vectored(&parts);
        }
        match result {
            Ok(_) => self.sent.packets += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => self.sent.errors += 1,
        }
        true
    }

    fn flush(&mut self) -> usize {
        0
    }

    fn sent(&self) -> SentCounts {
        self.sent
    }
}
