//! Parser of frames and packets, written from the description of the formats and from RFC 791 and 768,
//! with nothing of the sender's code.

use pollux_pmd_testkit::frames::naive_checksum;

/// A packet of a detector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) ports: (u16, u16),
    pub(crate) frame: u64,
    pub(crate) exposure: u32,
    pub(crate) packet: u32,
    pub(crate) timestamp: u64,
    pub(crate) module: u16,
    pub(crate) row: u16,
    pub(crate) column: u16,
    pub(crate) detector: u8,
    pub(crate) version: u8,
    pub(crate) pixels: Vec<u8>,
}

/// Parses an Ethernet frame with a packet; an error where a checksum is wrong.
pub(crate) fn parse(frame: &[u8]) -> Result<Parsed, &'static str> {
    let be16 = |at: usize| u16::from_be_bytes(frame[at..at + 2].try_into().unwrap());
    assert_eq!(be16(12), 0x0800, "IPv4");
    assert_eq!(frame[14], 0x45, "a header of 20 bytes");
    assert_eq!(frame[23], 17, "UDP");
    assert_eq!(usize::from(be16(16)), frame.len() - 14);
    assert_eq!(usize::from(be16(38)), frame.len() - 34);
    assert_ne!(be16(40), 0, "there is a checksum");
    if naive_checksum(&frame[14..34]) != 0 {
        return Err("IPv4 checksum");
    }
    // Addresses, zero and protocol, length; then the datagram.
    let mut pseudo = frame[26..34].to_vec();
    pseudo.extend([0, 17, frame[38], frame[39]]);
    pseudo.extend(&frame[34..]);
    if naive_checksum(&pseudo) != 0 {
        return Err("UDP checksum");
    }
    Ok(parse_payload(&frame[42..], (be16(34), be16(36))))
}

/// Parses a UDP payload.
pub(crate) fn parse_payload(payload: &[u8], ports: (u16, u16)) -> Parsed {
    let le16 = |at: usize| u16::from_le_bytes(payload[at..at + 2].try_into().unwrap());
    let le32 = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().unwrap());
    let le64 = |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().unwrap());
    Parsed {
        ports,
        frame: le64(0),
        exposure: le32(8),
        packet: le32(12),
        timestamp: le64(24),
        module: le16(32),
        row: le16(34),
        column: le16(36),
        detector: payload[46],
        version: payload[47],
        pixels: payload[48..].to_vec(),
    }
}
