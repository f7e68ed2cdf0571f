//! Datagrams between the ends of a cable.

use crate::netns::addresses::{IP_A, IP_B, MAC_A, MAC_B};

fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// Bytes that depend on place and seed.
#[must_use]
pub fn payload(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|i| (i as u8).wrapping_mul(37).wrapping_add(seed))
        .collect()
}

/// A UDP datagram from the port's end, port 9000, to the kernel's end; no UDP checksum.
#[must_use]
pub fn udp_frame(dst_port: u16, payload: &[u8]) -> Vec<u8> {
    udp_frame_to(MAC_B, IP_B, dst_port, payload)
}

/// The same to another station and address.
#[must_use]
pub fn udp_frame_to(station: [u8; 6], ip_to: [u8; 4], dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend((28 + payload.len() as u16).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    ip.extend(IP_A);
    ip.extend(ip_to);
    let sum = checksum(&ip).to_be_bytes();
    ip[10..12].copy_from_slice(&sum);
    let mut frame = [&station[..], &MAC_A, &[8, 0], &ip].concat();
    frame.extend(9000_u16.to_be_bytes());
    frame.extend(dst_port.to_be_bytes());
    frame.extend((8 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// A datagram over IPv4 without options, in fragments of so many bytes, a multiple of eight, each in
/// a frame of its own.
#[must_use]
pub fn fragments(frame: &[u8], id: u16, size: usize) -> Vec<Vec<u8>> {
    let (headers, body) = frame.split_at(34);
    let cut = |(n, part): (usize, &[u8])| {
        let mut frame = [headers, part].concat();
        let more = (n + 1) * size < body.len();
        let place = (n * size / 8) as u16 | if more { 0x2000 } else { 0 };
        frame[16..18].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
        frame[18..20].copy_from_slice(&id.to_be_bytes());
        frame[20..22].copy_from_slice(&place.to_be_bytes());
        frame[24..26].fill(0);
        let sum = checksum(&frame[14..34]).to_be_bytes();
        frame[24..26].copy_from_slice(&sum);
        frame
    };
    body.chunks(size).enumerate().map(cut).collect()
}

/// Checks a datagram that the kernel's end has sent to port 9000, byte by byte but for the
/// identification and the checksum that the kernel left to a NIC.
#[track_caller]
pub fn assert_udp(frame: &[u8], src_port: u16, payload: &[u8]) {
    assert_eq!(frame.len(), 42 + payload.len());
    assert_eq!(frame[..14], [&MAC_A[..], &MAC_B, &[8, 0]].concat());
    assert_eq!(frame[14..16], [0x45, 0]);
    assert_eq!(frame[16..18], (28 + payload.len() as u16).to_be_bytes());
    assert_eq!(checksum(&frame[14..34]), 0, "IPv4 header");
    assert_eq!(frame[26..34], [IP_B, IP_A].concat());
    assert_eq!(frame[34..36], src_port.to_be_bytes());
    assert_eq!(frame[36..38], 9000_u16.to_be_bytes());
    assert_eq!(frame[38..40], (8 + payload.len() as u16).to_be_bytes());
    assert_eq!(&frame[42..], payload);
}
