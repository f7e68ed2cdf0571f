//! Frames: their checksums and headers, byte by byte (RFC 768, 791, 792, 826, 1071).

/// Ethernet types.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
const VLAN: u16 = 0x8100;

/// IANA protocol numbers.
pub(super) const ICMP: u8 = 1;
pub(super) const UDP: u8 = 17;

/// Broadcast.
pub(super) const BROADCAST: [u8; 6] = [0xff; 6];

/// The 16 bits at an offset, in network order; 0 beyond the end.
pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(chunk(bytes, at))
}

/// The 32 bits at an offset.
pub(super) fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(chunk(bytes, at))
}

/// So many bytes from an offset on; zeros beyond the end.
pub(super) fn chunk<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    core::array::from_fn(|i| bytes.get(at + i).copied().unwrap_or(0))
}

/// The ones' complement sum of RFC 1071, over the parts one after the other; all but the last have
/// an even length.
pub(super) fn sum(pieces: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for piece in pieces {
        for pair in piece.chunks(2) {
            sum += u64::from(word(pair, 0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Offsets of a frame's headers.
pub(super) struct Headers {
    /// Its VLAN tag.
    pub(super) tag: Option<u16>,
    /// Its EtherType.
    pub(super) kind: u16,
    /// Start of its payload.
    pub(super) inside: usize,
}

impl Headers {
    /// Of a frame with one VLAN tag at most.
    pub(super) fn of(frame: &[u8]) -> Self {
        match word(frame, 12) {
            VLAN => Self {
                tag: Some(word(frame, 14)),
                kind: word(frame, 16),
                inside: 18,
            },
            kind => Self {
                tag: None,
                kind,
                inside: 14,
            },
        }
    }
}

/// A UDP datagram over IPv4, as the card sends it.
pub(super) struct Datagram<'a> {
    pub(super) to: [u8; 6],
    pub(super) from: [u8; 6],
    pub(super) source_ip: u32,
    pub(super) destination_ip: u32,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) ttl: u8,
    pub(super) tos: u8,
    /// As in the header; none: it is computed.
    pub(super) checksum: Option<u16>,
    pub(super) payload: &'a [u8],
}

impl Datagram<'_> {
    /// The frame.
    pub(super) fn frame(&self) -> Vec<u8> {
        let udp_length = self.payload.len() as u16 + 8;
        let addresses = [
            self.source_ip.to_be_bytes(),
            self.destination_ip.to_be_bytes(),
        ];
        let addresses = addresses.as_flattened();
        // Never fragmented, so the identification has no meaning (RFC 6864, 4.1).
        let mut ip = vec![0x45, self.tos];
        ip.extend((udp_length + 20).to_be_bytes());
        ip.extend([0, 0, 0x40, 0, self.ttl, UDP, 0, 0]);
        ip.extend(addresses);
        let header = !sum(&[&ip]);
        ip[10..12].copy_from_slice(&header.to_be_bytes());
        let mut udp = Vec::new();
        udp.extend(self.source_port.to_be_bytes());
        udp.extend(self.destination_port.to_be_bytes());
        udp.extend(udp_length.to_be_bytes());
        let computed = || {
            let length = udp_length.to_be_bytes();
            // RFC 768: a computed zero is sent as ones.
            match !sum(&[addresses, &[0, UDP], &length, &udp, self.payload]) {
                0 => 0xffff,
                sum => sum,
            }
        };
        let checksum = self.checksum.unwrap_or_else(computed);
        udp.extend(checksum.to_be_bytes());
        let ethernet = [&self.to[..], &self.from, &IPV4.to_be_bytes()].concat();
        [&ethernet[..], &ip, &udp, self.payload].concat()
    }
}

/// An ARP packet for Ethernet and IPv4, with its frame.
pub(super) fn arp(
    tag: Option<u16>,
    operation: u16,
    from: ([u8; 6], u32),
    to: ([u8; 6], u32),
) -> Vec<u8> {
    let asks = operation == 1;
    let mut frame = if asks { BROADCAST } else { to.0 }.to_vec();
    frame.extend(from.0);
    if let Some(tag) = tag {
        frame.extend(VLAN.to_be_bytes());
        frame.extend(tag.to_be_bytes());
    }
    frame.extend(ARP.to_be_bytes());
    frame.extend([0, 1, 8, 0, 6, 4]);
    frame.extend(operation.to_be_bytes());
    frame.extend(from.0);
    frame.extend(from.1.to_be_bytes());
    frame.extend(if asks { [0; 6] } else { to.0 });
    frame.extend(to.1.to_be_bytes());
    frame
}

/// The answer to a ping: the request, with MAC and IP addresses swapped.
pub(super) fn echo(request: &[u8], mac: [u8; 6], ip: u32, ttl: u8) -> Vec<u8> {
    let at = Headers::of(request).inside;
    let mut frame = request.to_vec();
    let sender: [u8; 6] = chunk(request, 6);
    frame[..6].copy_from_slice(&sender);
    frame[6..12].copy_from_slice(&mac);
    frame[at + 8] = ttl;
    frame[at + 16..at + 20].copy_from_slice(&chunk::<4>(request, at + 12));
    frame[at + 12..at + 16].copy_from_slice(&ip.to_be_bytes());
    frame[at + 10..at + 12].fill(0);
    let header = !sum(&[&frame[at..at + 20]]);
    frame[at + 10..at + 12].copy_from_slice(&header.to_be_bytes());
    frame[at + 20] = 0;
    // RFC 1624, 3: update for the changed fields.
    let before = word(request, at + 22);
    let after = !sum(&[&(!before).to_be_bytes(), &(!0x0800_u16).to_be_bytes()]);
    frame[at + 22..at + 24].copy_from_slice(&after.to_be_bytes());
    frame
}
