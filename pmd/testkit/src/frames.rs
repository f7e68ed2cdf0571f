//! Frames built byte by byte, without the code under test, as the oracle of tests.

/// RFC 1071, word by word.
#[must_use]
pub fn naive_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A frame to be: each field is written as it stands, wrong values included.
#[derive(Debug, Clone)]
pub struct Frame {
    /// VLAN tags: EtherType and control.
    pub tags: Vec<(u16, u16)>,
    /// Options of the IPv4 header, a multiple of four bytes.
    pub options: Vec<u8>,
    /// Identification of the datagram.
    pub id: u16,
    /// Flags and fragment offset.
    pub flags_offset: u16,
    /// Protocol of the body.
    pub protocol: u8,
    /// Source address.
    pub src: [u8; 4],
    /// Destination address.
    pub dst: [u8; 4],
    /// What follows the IPv4 header.
    pub body: Vec<u8>,
    /// Zeros behind the datagram.
    pub padding: usize,
}

/// Source of the frames.
pub const SRC_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Destination of the frames.
pub const DST_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Source of the datagrams.
pub const SRC_IP: [u8; 4] = [10, 0, 0, 1];
/// Destination of the datagrams.
pub const DST_IP: [u8; 4] = [10, 0, 0, 2];

impl Frame {
    /// A UDP datagram from [`SRC_IP`] port 1000 to [`DST_IP`] port 2000 with a right checksum.
    #[must_use]
    pub fn udp(payload: &[u8]) -> Self {
        let body = udp_datagram(&[&SRC_IP[..], &DST_IP].concat(), payload);
        Self::ip(17, body)
    }

    /// An IPv4 datagram from [`SRC_IP`] to [`DST_IP`].
    #[must_use]
    pub fn ip(protocol: u8, body: Vec<u8>) -> Self {
        Self {
            tags: Vec::new(),
            options: Vec::new(),
            id: 0x1234,
            flags_offset: 0x4000,
            protocol,
            src: SRC_IP,
            dst: DST_IP,
            body,
            padding: 0,
        }
    }

    /// The frame.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut ip = vec![0x45 + (self.options.len() / 4) as u8, 0];
        ip.extend(((20 + self.options.len() + self.body.len()) as u16).to_be_bytes());
        ip.extend(self.id.to_be_bytes());
        ip.extend(self.flags_offset.to_be_bytes());
        ip.extend([64, self.protocol, 0, 0]);
        ip.extend(self.src);
        ip.extend(self.dst);
        ip.extend(&self.options);
        let checksum = naive_checksum(&ip).to_be_bytes();
        ip[10..12].copy_from_slice(&checksum);
        ip.extend(&self.body);
        ip.extend(vec![0; self.padding]);
        ethernet(&self.tags, 0x0800, &ip)
    }
}

/// A UDP datagram from port 1000 to 2000; `addresses` is source and destination together.
#[must_use]
pub fn udp_datagram(addresses: &[u8], payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    let mut udp = [
        1000u16.to_be_bytes(),
        2000u16.to_be_bytes(),
        len.to_be_bytes(),
        [0, 0],
    ]
    .concat();
    udp.extend(payload);
    let pseudo = [addresses, &[0, 17], &len.to_be_bytes(), &udp].concat();
    let checksum = match naive_checksum(&pseudo) {
        0 => 0xffff,
        sum => sum,
    };
    udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    udp
}

/// An Ethernet frame with the given tags (EtherType, control) in front of `ethertype`.
#[must_use]
pub fn ethernet(tags: &[(u16, u16)], ethertype: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = [DST_MAC, SRC_MAC].concat();
    for (kind, control) in tags {
        frame.extend(kind.to_be_bytes());
        frame.extend(control.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(body);
    frame
}

/// A UDP datagram over IPv6.
#[must_use]
pub fn udp_over_ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let addresses = [[0x20; 16], [0x21; 16]].concat();
    let udp = udp_datagram(&addresses, payload);
    let mut ip = vec![0x60, 0, 0, 0];
    ip.extend((udp.len() as u16).to_be_bytes());
    ip.extend([next_header, 64]);
    ip.extend(&addresses);
    ip.extend(&udp);
    ethernet(&[], 0x86dd, &ip)
}
