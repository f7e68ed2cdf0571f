//! Frames built byte by byte, right and wrong.

use pollux_na62::formats::hits::HitsWriter;
use pollux_na62::rich::Hit;

/// Of the trigger in the built-in configuration, and of the boards.
pub(crate) const TRIGGER_IP: [u8; 4] = [198, 18, 0, 1];
pub(crate) const BOARDS_IP: [u8; 4] = [198, 18, 0, 2];
/// Where the trigger receives board 0.
pub(crate) const TRIGGER_PORT: u16 = 58_913;

/// RFC 1071, word by word.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Whether the UDP checksum of an IPv4 datagram without options or padding is right.
pub(crate) fn checksum_holds(frame: &[u8]) -> bool {
    let (ip, udp) = frame[14..].split_at(20);
    let len = (udp.len() as u16).to_be_bytes();
    checksum(&[&ip[12..20], &[0, 17], &len, udp].concat()) == 0
}

pub(crate) fn ethernet(ethertype: u16, body: &[u8]) -> Vec<u8> {
    [
        &[2, 0, 0, 0, 0, 1],
        &[2, 0, 0, 0, 0, 2],
        &ethertype.to_be_bytes()[..],
        body,
    ]
    .concat()
}

/// An IPv4 datagram from the boards to the trigger; `flags_offset` as in the header.
pub(crate) fn ipv4(protocol: u8, flags_offset: u16, body: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend((20 + body.len() as u16).to_be_bytes());
    ip.extend([0x12, 0x34]);
    ip.extend(flags_offset.to_be_bytes());
    ip.extend([64, protocol, 0, 0]);
    ip.extend(BOARDS_IP);
    ip.extend(TRIGGER_IP);
    let sum = checksum(&ip).to_be_bytes();
    ip[10..12].copy_from_slice(&sum);
    ip.extend(body);
    ethernet(0x0800, &ip)
}

/// A UDP datagram with a right checksum over addresses of any family.
fn udp_datagram(addresses: &[u8], dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut udp = [30_000_u16, dst_port, len, 0]
        .map(u16::to_be_bytes)
        .concat();
    udp.extend(payload);
    let sum = checksum(&[addresses, &[0, 17], &len.to_be_bytes(), &udp].concat());
    udp[6..8].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
    udp
}

/// A datagram from the boards to a port of the trigger.
pub(crate) fn udp(dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let addresses = [BOARDS_IP, TRIGGER_IP].concat();
    ipv4(17, 0x4000, &udp_datagram(&addresses, dst_port, payload))
}

/// The same over IPv6.
pub(crate) fn udp_over_ipv6(next_header: u8, dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let addresses = [[0x20; 16], [0x21; 16]].concat();
    let udp = udp_datagram(&addresses, dst_port, payload);
    let mut ip = vec![0x60, 0, 0, 0];
    ip.extend((udp.len() as u16).to_be_bytes());
    ip.extend([next_header, 64]);
    ip.extend(&addresses);
    ip.extend(&udp);
    ethernet(0x86dd, &ip)
}

/// An ARP request for an address (RFC 826).
pub(crate) fn arp_request(target: [u8; 4]) -> Vec<u8> {
    let mut body = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2];
    body.extend(BOARDS_IP);
    body.extend([0; 6]);
    body.extend(target);
    ethernet(0x0806, &body)
}

/// The payload of a frame of a RICH board, with some hits for each time stamp.
pub(crate) fn hits(board: u8, sequence: u32, timestamps: &[u64]) -> Vec<u8> {
    let mut writer = HitsWriter::new(vec![0; 1472], 0x1c, board, sequence).unwrap();
    for timestamp in timestamps {
        let hits: Vec<_> = (0..5)
            .map(|i| Hit {
                pm: u16::from(board) * 400 + i * 40,
                fine: 9,
            })
            .collect();
        writer.push(*timestamp, &hits).unwrap();
    }
    let (mut payload, len) = writer.finish();
    payload.truncate(len);
    payload
}

/// The frame of a board, with some hits for each time stamp.
pub(crate) fn board_frame(board: u8, sequence: u32, timestamps: &[u64]) -> Vec<u8> {
    udp(
        TRIGGER_PORT + u16::from(board),
        &hits(board, sequence, timestamps),
    )
}
