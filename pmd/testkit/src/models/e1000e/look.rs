//! What is looked at in a frame.

/// IPv4 header, what is behind it, and its protocol. Fragments have no checksum to be verified.
pub(super) fn ipv4(frame: &[u8]) -> Option<(&[u8], &[u8], u8)> {
    let packet = frame.get(14..).filter(|_| frame[12..14] == [8, 0])?;
    let len = usize::from(packet.first()? & 15) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let is_whole = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) << 2 == 0;
    let packet = packet.get(..total).filter(|_| is_whole && len >= 20)?;
    Some((packet.get(..len)?, packet.get(len..)?, packet[9]))
}

/// The bytes of a flow that are hashed: addresses, and the ports of TCP.
pub(super) fn flow(frame: &[u8]) -> Option<Vec<u8>> {
    let (header, l4, protocol) = ipv4(frame)?;
    let mut flow = header.get(12..20)?.to_vec();
    if protocol == 6 {
        flow.extend(l4.get(..4)?);
    }
    Some(flow)
}

/// The hash of section 7.1.11.1: for each bit that is set, the 32 bits of the key from there.
#[must_use]
pub fn toeplitz(key: &[u8], input: &[u8]) -> u32 {
    let bit = |bytes: &[u8], i: usize| bytes.get(i / 8).is_some_and(|b| b >> (7 - i % 8) & 1 != 0);
    let window = |at| (0..32).fold(0, |word, i| word << 1 | u32::from(bit(key, at + i)));
    (0..input.len() * 8)
        .filter(|&i| bit(input, i))
        .fold(0, |hash, i| hash ^ window(i))
}
