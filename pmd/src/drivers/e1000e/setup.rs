//! Before frames can pass: filters, RSS, rings. Sections 4.6.5 and 4.6.6 of the datasheet.

use super::registers::{
    CTRL_EXT, CTRL_EXT_PBA_CLR, CTRL_EXT_REQUIRED, CTRL_EXT_REQUIRED_ZERO, EIAC, GCR, GCR_REQUIRED,
    GCR2, GCR2_REQUIRED, IMS_RXQ0, IMS_RXQ1, IVAR, IVAR_RXQ0_VALID, IVAR_RXQ1_VALID, MRQC,
    MRQC_IPV4, MRQC_IPV6, MRQC_RSS, MRQC_TCP_IPV4, MRQC_TCP_IPV6, MTA, RAH, RAH_AV, RAL, RCTL,
    RCTL_BAM, RCTL_EN, RCTL_LPE, RCTL_MPE, RCTL_SECRC, RCTL_UPE, RDBAH, RDBAL, RDH, RDLEN, RDT,
    RETA, RFCTL, RFCTL_EXTEN, RSSRK, RXCSUM, RXCSUM_IPOFLD, RXCSUM_PCSD, RXCSUM_TUOFLD, RXDCTL,
    RXDCTL_GRAN, TARC, TARC_ENABLE, TCTL, TCTL_EN, TCTL_MULR, TCTL_PSP, TDBAH, TDBAL, TDH, TDLEN,
    TDT, TIPG, TXDCTL, TXDCTL_GRAN, TXDCTL_RESERVED_ONE,
};
use crate::bus::Bus;
use crate::driver::filter::{Filter, Multicast};
use crate::driver::rss::{Rss, RssKey};
use crate::drivers::intel::RSS_KEY;
use crate::drivers::intel::descriptors::Ring;
use crate::net::MacAddr;

/// Sets the bits that the device needs and a reset clears. Without those of the PCIe unit some
/// completions are not reliable, above all where the link sleeps (ASPM), and transmission stops:
/// an erratum. No section says what the bits are; Linux's driver of the device sets the same
/// (`e1000_initialize_hw_bits_82571`).
pub(super) fn set_required_bits(bus: &impl Bus) {
    bus.write32(GCR.at, bus.read32(GCR.at) | GCR_REQUIRED);
    bus.write32(GCR2.at, bus.read32(GCR2.at) | GCR2_REQUIRED);
    let control = bus.read32(CTRL_EXT.at) & !CTRL_EXT_REQUIRED_ZERO;
    bus.write32(CTRL_EXT.at, control | CTRL_EXT_REQUIRED);
}

/// The sizes that receive buffers can have (section 10.2.5.1), largest first, and the bits of
/// RCTL that say so: whole KiB, or one of those that are smaller.
pub(super) fn buffer_size(room: usize) -> Option<(usize, u32)> {
    const BSIZE_512: u32 = 2 << 16;
    const BSIZE_256: u32 = 3 << 16;
    match room {
        0..256 => None,
        256..512 => Some((256, BSIZE_256)),
        512..1024 => Some((512, BSIZE_512)),
        _ => {
            let kib = (room / 1024).min(15);
            Some((kib * 1024, (kib as u32) << 27))
        }
    }
}

/// Addresses that are matched exactly, beside the device's own.
pub(super) const MOST_STATIONS: usize = RAL.count - 1;

/// Which frames are received (section 7.1.1): those for the station itself and for all, and what
/// the filter says.
pub(super) fn set_filter(bus: &impl Bus, mac: MacAddr, filter: &Filter) -> u32 {
    let listed: &[MacAddr] = match &filter.multicast {
        Multicast::Listed(list) => list,
        Multicast::All => &[],
    };
    // Groups are matched exactly, as unicast addresses are, while the table has room. The rest are
    // matched by a hash, which also accepts some groups that were not requested.
    let room = MOST_STATIONS.saturating_sub(filter.unicast.len());
    let (exact, hashed) = listed.split_at(listed.len().min(room));
    let none = std::iter::repeat(None);
    let own = std::iter::once(&mac).chain(&filter.unicast);
    let stations = own.chain(exact).map(Some);
    for (index, station) in (0..RAL.count).zip(stations.chain(none)) {
        let [a, b, c, d, e, f] = station.unwrap_or(&MacAddr::ZERO).0;
        let valid = if station.is_some() { RAH_AV } else { 0 };
        bus.write32(RAL.of(index), u32::from_le_bytes([a, b, c, d]));
        bus.write32(RAH.of(index), u32::from_le_bytes([e, f, 0, 0]) | valid);
    }
    let mut table = [0_u32; MTA.count];
    for group in hashed {
        // Bits 47:36 of the address (section 10.2.5.17, RCTL.MO = 0).
        let hash = usize::from(u16::from_le_bytes([group.0[4], group.0[5]]) >> 4);
        table[hash / 32 % MTA.count] |= 1 << (hash % 32);
    }
    for (index, word) in table.into_iter().enumerate() {
        bus.write32(MTA.of(index), word);
    }
    let promiscuous = if filter.promiscuous { RCTL_UPE } else { 0 };
    let all_groups = match filter.multicast {
        Multicast::All => RCTL_MPE,
        Multicast::Listed(_) => 0,
    };
    RCTL_BAM | promiscuous | all_groups
}

/// Shares flows out to two queues (section 7.1.11): by addresses, and the ports of TCP. The device
/// knows no ports of UDP. Frames without IP go to queue 0.
pub(super) fn set_rss(bus: &impl Bus, rss: &Rss) {
    let key = rss.key.as_ref().map_or(&RSS_KEY[..], RssKey::bytes);
    for (index, word) in key.as_chunks().0.iter().enumerate() {
        bus.write32(RSSRK.of(index), u32::from_le_bytes(*word));
    }
    share(bus, |entry| rss.queue(entry, 2));
    let kinds = MRQC_TCP_IPV4 | MRQC_IPV4 | MRQC_TCP_IPV6 | MRQC_IPV6;
    bus.write32(MRQC.at, MRQC_RSS | kinds);
}

/// The queue of each entry of the table: it is bit 7 of the entry (section 10.2.5.22).
fn share(bus: &impl Bus, queue: impl Fn(usize) -> u16) {
    for index in 0..RETA.count {
        let entries = [0, 1, 2, 3].map(|n| (queue(4 * index + n) as u8 & 1) << 7);
        bus.write32(RETA.of(index), u32::from_le_bytes(entries));
    }
}

/// Shares all flows out to one queue.
pub(super) fn share_to(bus: &impl Bus, queue: usize) {
    share(bus, |_| queue as u16);
}

/// Has checksums verified (section 7.1.10), and descriptors written in the extended format or not.
/// RSS takes the place of the checksum of the whole frame.
pub(super) fn set_offloads(bus: &impl Bus, extended: bool, rss: bool) {
    let rss = if rss { RXCSUM_PCSD } else { 0 };
    bus.write32(RXCSUM.at, RXCSUM_IPOFLD | RXCSUM_TUOFLD | rss);
    bus.write32(RFCTL.at, if extended { RFCTL_EXTEN } else { 0 });
}

/// Tells the device of a receive ring, which is empty (section 4.6.5).
pub(super) fn set_rx_ring(bus: &impl Bus, queue: usize, ring: &Ring) {
    bus.write32(RDBAL.of(queue), ring.address() as u32);
    bus.write32(RDBAH.of(queue), (ring.address() >> 32) as u32);
    bus.write32(RDLEN.of(queue), ring.len());
    bus.write32(RDH.of(queue), 0);
    bus.write32(RDT.of(queue), 0);
    // In descriptors: fetch when 32 are left and 4 or more are there, write back each at once.
    bus.write32(RXDCTL.of(queue), RXDCTL_GRAN | 1 << 16 | 4 << 8 | 32);
}

/// Tells the device of a transmit ring, which is empty (section 4.6.6).
pub(super) fn set_tx_ring(bus: &impl Bus, queue: usize, ring: &Ring) {
    bus.write32(TDBAL.of(queue), ring.address() as u32);
    bus.write32(TDBAH.of(queue), (ring.address() >> 32) as u32);
    bus.write32(TDLEN.of(queue), ring.len());
    bus.write32(TDH.of(queue), 0);
    bus.write32(TDT.of(queue), 0);
    // In descriptors: fetch when 31 are left; those that report are written back at once.
    let thresholds = 1 << 8 | 31;
    bus.write32(
        TXDCTL.of(queue),
        TXDCTL_GRAN | TXDCTL_RESERVED_ONE | thresholds,
    );
    let arbitration = bus.read32(TARC.of(queue));
    bus.write32(TARC.of(queue), arbitration | TARC_ENABLE);
}

/// Has the device fetch no more descriptors of a transmit ring.
pub(super) fn disable_tx_ring(bus: &impl Bus, queue: usize) {
    let arbitration = bus.read32(TARC.of(queue));
    bus.write32(TARC.of(queue), arbitration & !TARC_ENABLE);
}

/// Starts receiving: `how` are the bits of filters and buffer size. Without `jumbo`, the device
/// drops frames of more than 1522 bytes itself. The CRC is cut off.
pub(super) fn enable_rx(bus: &impl Bus, how: u32, jumbo: bool) {
    let jumbo = if jumbo { RCTL_LPE } else { 0 };
    bus.write32(RCTL.at, RCTL_EN | RCTL_SECRC | jumbo | how);
}

/// Starts sending (section 4.6.6): short frames are padded, and the gaps between frames are those
/// of the standard.
pub(super) fn enable_tx(bus: &impl Bus) {
    bus.write32(TIPG.at, 8 | 8 << 10 | 6 << 20);
    let (threshold, distance) = (0xf << 4, 0x3f << 12);
    bus.write32(
        TCTL.at,
        TCTL_EN | TCTL_PSP | TCTL_MULR | threshold | distance,
    );
}

/// Has each receive queue signal a vector of its own (section 7.4), once it is armed. The cause
/// clears itself when it has signalled; the mask stays as it is, so that a loop which wakes up
/// disarms the queue.
pub(super) fn set_vectors(bus: &impl Bus) {
    bus.write32(IVAR.at, IVAR_RXQ0_VALID | IVAR_RXQ1_VALID | 1 << 4);
    bus.write32(EIAC.at, IMS_RXQ0 | IMS_RXQ1);
    let control = bus.read32(CTRL_EXT.at);
    bus.write32(CTRL_EXT.at, control | CTRL_EXT_PBA_CLR);
}
