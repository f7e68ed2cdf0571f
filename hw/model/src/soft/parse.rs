//! Destination of a received frame: the rules of hw/docs/interfaces.md, in their order.

use super::frame::{ARP, BROADCAST, Headers, ICMP, IPV4, UDP, chunk, long, sum, word};

/// Frames that a port accepts.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "bits of registers")]
pub(super) struct Settings {
    pub(super) mac: [u8; 6],
    pub(super) ip: u32,
    pub(super) promiscuous: bool,
    pub(super) multicast: bool,
    pub(super) arp: bool,
    pub(super) echo: bool,
    pub(super) checksum: bool,
    pub(super) catch_udp: bool,
    pub(super) catch_other: bool,
}

/// Outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drop {
    Address,
    Malformed,
    Checksum,
    Fragment,
    Unsupported,
    Miss,
}

/// Destination of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// ARP, consumed by the card.
    Arp,
    /// A ping, which the card answers.
    Echo,
    /// The host, as a whole frame; its source UDP port, if it has one.
    Whole { source_port: u16 },
    /// UDP to a port that may be a stream's: its payload.
    Udp {
        source_port: u16,
        port: u16,
        at: usize,
        len: usize,
    },
}

/// Whether a UDP destination port has a stream.
pub(super) fn judge(
    frame: &[u8],
    settings: &Settings,
    is_stream: impl Fn(u16) -> bool,
) -> Result<Taken, Drop> {
    let Headers { kind, inside, .. } = Headers::of(frame);
    let to: [u8; 6] = chunk(frame, 0);
    let addressed = to == settings.mac
        || to == BROADCAST
        || settings.multicast && to[0] & 1 == 1
        || settings.promiscuous;
    if !addressed {
        return Err(Drop::Address);
    }
    if kind != IPV4 {
        return other(frame, kind, inside, settings);
    }
    let ip = inside;
    let header = usize::from(chunk::<1>(frame, ip)[0] & 15) * 4;
    let total = usize::from(word(frame, ip + 2));
    let is_v4 = chunk::<1>(frame, ip)[0] >> 4 == 4;
    // No stream lookup before the headers are complete.
    let protocol = chunk::<1>(frame, ip + 9)[0];
    let transport = ip + header.max(20);
    if frame.len() < transport + 4 {
        return Err(Drop::Malformed);
    }
    if !is_v4 || header < 20 || total < header {
        return Err(Drop::Malformed);
    }
    if sum(&[&frame[ip..transport]]) != 0xffff {
        return Err(Drop::Checksum);
    }
    if word(frame, ip + 6) & 0x3fff != 0 {
        return Err(Drop::Fragment);
    }
    let destination = long(frame, ip + 16);
    let to_us = destination == settings.ip
        || destination == u32::MAX
        || settings.promiscuous
        || settings.multicast && destination >> 28 == 0xe;
    if !to_us {
        return Err(Drop::Address);
    }
    let room = total - header;
    let udp_length = usize::from(word(frame, transport + 4));
    let is_cut = frame.len() < ip + total;
    let addresses = &frame[ip + 12..ip + 20];
    if protocol == UDP {
        if is_cut || udp_length < 8 || udp_length > room {
            return Err(Drop::Malformed);
        }
        let datagram = &frame[transport..transport + udp_length];
        let length = (udp_length as u16).to_be_bytes();
        let port = word(datagram, 2);
        let source_port = word(datagram, 0);
        let taken = if is_stream(port) {
            Taken::Udp {
                source_port,
                port,
                at: transport + 8,
                len: udp_length - 8,
            }
        } else if settings.catch_udp {
            Taken::Whole { source_port }
        } else {
            return Err(Drop::Miss);
        };
        // RFC 768: zero means that the sender has computed none.
        let summed = settings.checksum && word(datagram, 6) != 0;
        if summed && sum(&[addresses, &[0, UDP], &length, datagram]) != 0xffff {
            return Err(Drop::Checksum);
        }
        return Ok(taken);
    }
    let from_group = chunk::<1>(frame, 6)[0] & 1 == 1;
    let is_echo = settings.echo
        && protocol == ICMP
        && word(frame, transport) == 0x0800
        && header == 20
        && to == settings.mac
        && !from_group
        && destination == settings.ip;
    if is_echo {
        if is_cut || room < 8 {
            return Err(Drop::Malformed);
        }
        return match sum(&[&frame[transport..transport + room]]) {
            0xffff => Ok(Taken::Echo),
            _ => Err(Drop::Checksum),
        };
    }
    match (is_cut, settings.catch_other) {
        (true, _) => Err(Drop::Malformed),
        (_, true) => Ok(Taken::Whole { source_port: 0 }),
        (_, false) => Err(Drop::Unsupported),
    }
}

/// Frames that are not IPv4.
fn other(frame: &[u8], kind: u16, inside: usize, settings: &Settings) -> Result<Taken, Drop> {
    if kind == ARP && settings.arp {
        // IPv4 addresses of 4 bytes, of neighbours with MAC addresses of 6.
        let is_sound = frame.len() >= 60 && chunk(frame, inside) == [0, 1, 8, 0, 6, 4];
        return if is_sound {
            Ok(Taken::Arp)
        } else {
            Err(Drop::Malformed)
        };
    }
    if settings.catch_other {
        Ok(Taken::Whole { source_port: 0 })
    } else {
        Err(Drop::Unsupported)
    }
}
