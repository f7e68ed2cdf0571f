//! Ethernet frames of the farm: docs/formats/farm.md.

use pollux_pmd::net::MacAddr;

use crate::role::Address;

/// Bytes of an Ethernet header without VLAN tag.
pub const ETHERNET: usize = 14;

/// `EtherType` of the messages: local experimental 1 (IEEE 802, clause 9.2.3).
pub const ETHERTYPE: u16 = 0x88B5;

/// First bytes of all addresses: locally administered.
const PREFIX: [u8; 3] = [0x02, 0xFA, 0x12];

const SCHEDULER: u8 = 0;
const FEEDER: u8 = 1;
const NODE: u8 = 2;
const RESULTS: u8 = 3;

/// The MAC address of a member.
#[must_use]
pub fn mac_of(member: Address) -> MacAddr {
    let (kind, number) = match member {
        Address::Scheduler => (SCHEDULER, 0),
        Address::Feeder(feeder) => (FEEDER, feeder.into()),
        Address::Node(node) => (NODE, node),
        Address::Results => (RESULTS, 0),
    };
    let [a, b, c] = PREFIX;
    let [high, low] = number.to_be_bytes();
    MacAddr([a, b, c, kind, high, low])
}

/// The member that has a MAC address.
#[must_use]
pub fn address_of(mac: [u8; 6]) -> Option<Address> {
    let [a, b, c, kind, high, low] = mac;
    if [a, b, c] != PREFIX {
        return None;
    }
    match (kind, u16::from_be_bytes([high, low])) {
        (SCHEDULER, 0) => Some(Address::Scheduler),
        (FEEDER, feeder) => u8::try_from(feeder).ok().map(Address::Feeder),
        (NODE, node) => Some(Address::Node(node)),
        (RESULTS, 0) => Some(Address::Results),
        _ => None,
    }
}

/// Writes the header of a frame.
pub(super) fn write_header(header: &mut [u8; ETHERNET], from: MacAddr, to: Address) {
    header[..6].copy_from_slice(&mac_of(to).0);
    header[6..12].copy_from_slice(&from.0);
    header[12..].copy_from_slice(&ETHERTYPE.to_be_bytes());
}

/// Bytes of an announcement: those of the shortest frame, without frame check sequence.
pub(super) const ANNOUNCEMENT: usize = 60;

/// Writes an announcement: where a member is.
pub(super) fn write_announcement(frame: &mut [u8; ANNOUNCEMENT], member: Address) {
    frame.fill(0);
    frame[..6].fill(0xFF);
    frame[6..12].copy_from_slice(&mac_of(member).0);
    frame[12..ETHERNET].copy_from_slice(&ETHERTYPE.to_be_bytes());
}

/// Whether a frame is an announcement: what is behind its header says nothing.
#[cold]
pub(super) fn is_announcement(frame: &[u8]) -> bool {
    let is_ours = frame.get(12..ETHERNET) == Some(&ETHERTYPE.to_be_bytes());
    is_ours && frame.get(..6) == Some(&[0xFF; 6])
}

/// Reads the header of a frame: the member that it is for.
pub(super) fn read_header(frame: &[u8]) -> Option<Address> {
    let header: &[u8; ETHERNET] = frame.first_chunk()?;
    let [a, b, c, d, e, f, _, _, _, _, _, _, type_high, type_low] = *header;
    let is_ours = u16::from_be_bytes([type_high, type_low]) == ETHERTYPE;
    address_of([a, b, c, d, e, f]).filter(|_| is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_has_an_address_of_its_own() {
        let ends = [Address::Scheduler, Address::Results];
        let feeders = (0..64).map(Address::Feeder);
        let nodes = (0..=u16::MAX).map(Address::Node);
        for member in ends.into_iter().chain(feeders).chain(nodes) {
            let mac = mac_of(member);
            assert_eq!(address_of(mac.0), Some(member));
            // Locally administered, and of one station.
            assert_eq!(mac.0[0] & 3, 2);
            let mut header = [0; ETHERNET];
            write_header(&mut header, mac_of(Address::Results), member);
            assert_eq!(read_header(&header), Some(member));
            header[13] ^= 1;
            assert_eq!(read_header(&header), None);
        }
        for mac in [
            [0x02, 0xFA, 0x12, 4, 0, 0],
            [0x02, 0xFA, 0x12, 1, 1, 0],
            [0x02, 0xFA, 0x12, 0, 0, 1],
            [0x02, 0xFA, 0x13, 0, 0, 0],
        ] {
            assert_eq!(address_of(mac), None);
        }
    }
}
