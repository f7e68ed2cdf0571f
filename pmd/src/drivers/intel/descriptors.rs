//! Descriptors, and the rings of them in memory: sections 7.1.3, 7.1.4 and 7.2 of the datasheet of
//! the 82574, sections 7.1.5 and 7.2.2 of that of the 82576.
//!
//! The device may write any of it at any time, so that all of it is reached by atomics and each
//! word is read once. What the driver relies on is in shadows of its own.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use pollux_mempool::{ChecksumRequest, Mbuf, MemoryRegion, Metadata, Network, Transport};

use crate::drivers::dma::DmaBuffer;

/// Bytes of a descriptor, of either kind.
const LEN: usize = 16;

/// Most descriptors that a ring of ours has: the length register takes a little less than 64 Ki,
/// and ours are powers of two.
pub(crate) const MAX_RING: usize = 1 << 15;

/// Fewest: the length is a multiple of 128 bytes (section 10.2.5.7), and the longest frame in the
/// smallest buffers fits into three quarters of it, which are always posted.
pub(crate) const MIN_RING: usize = 64;

const _: () = assert!(9234_usize.div_ceil(256) <= MIN_RING - MIN_RING / 4);

/// Descriptors of a ring that is to have at least so many.
pub(crate) fn ring_size(asked: usize) -> usize {
    asked.max(MIN_RING).next_power_of_two()
}

/// A ring of descriptors.
pub(crate) struct Ring {
    at: NonNull<[AtomicU64; 2]>,
    /// A power of two.
    size: u32,
    address: u64,
    _region: Arc<MemoryRegion>,
}

// SAFETY: an address in a region that is kept; what is there is reached by atomics alone.
unsafe impl Send for Ring {}

impl Ring {
    /// Bytes that a ring of `size` takes: whole pages, so that no two queues share a cache line.
    pub(crate) fn bytes(size: usize) -> usize {
        (size * LEN).next_multiple_of(4096)
    }

    /// The ring of `size` descriptors, a power of two of at least [`MIN_RING`], `offset` bytes
    /// into a buffer. `None` if it is not there, or not in one piece for the device.
    pub(crate) fn new(buffer: &DmaBuffer, offset: usize, size: usize) -> Option<Self> {
        let (at, address) = buffer.piece(offset, size * LEN)?;
        let is_sound = at.cast::<[AtomicU64; 2]>().is_aligned()
            && size.is_power_of_two()
            && (MIN_RING..=MAX_RING).contains(&size);
        is_sound.then(|| Self {
            at: at.cast(),
            size: size as u32,
            address,
            _region: buffer.region().clone(),
        })
    }

    /// Where the device finds it.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> u32 {
        self.size * LEN as u32
    }

    /// Descriptors in it.
    #[inline(always)]
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Its descriptors, for a burst of them: where they are is in registers then, which after each
    /// access to memory that is shared would be read from the ring anew.
    #[inline(always)]
    pub(crate) fn slots(&self) -> Slots<'_> {
        Slots {
            at: self.at,
            mask: self.size - 1,
            ring: PhantomData,
        }
    }
}

/// The descriptors of a ring.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'a> {
    at: NonNull<[AtomicU64; 2]>,
    mask: u32,
    ring: PhantomData<&'a Ring>,
}

impl Slots<'_> {
    /// The slot of a number that counts on over the laps.
    #[inline(always)]
    pub(crate) fn of(self, number: u32) -> usize {
        (number & self.mask) as usize
    }

    #[inline(always)]
    fn descriptor(&self, number: u32) -> &[AtomicU64; 2] {
        // SAFETY: `Ring::new` has found as many descriptors there, aligned, in a region that the
        // ring keeps, which is borrowed; the slot is less than that. They are reached by atomics
        // alone.
        unsafe { self.at.add(self.of(number)).as_ref() }
    }

    /// Writes a descriptor. The device sees it when the tail has passed it: the register's write
    /// is behind this one ([`Bus`](crate::bus::Bus)).
    #[inline(always)]
    pub(crate) fn write(self, number: u32, words: [u64; 2]) {
        let [address, rest] = self.descriptor(number);
        address.store(words[0], Relaxed);
        rest.store(words[1], Release);
    }

    /// The word of a descriptor that says whether the device is done with it.
    #[inline(always)]
    pub(crate) fn read(self, number: u32) -> u64 {
        // Acquire: what the device has written before it said so is there.
        self.descriptor(number)[1].load(Acquire)
    }

    /// The other word of a descriptor that the device is done with, as a [`read`](Self::read)
    /// before has found.
    #[inline(always)]
    pub(crate) fn described(self, number: u32) -> Described {
        Described(self.descriptor(number)[0].load(Relaxed))
    }
}

/// The first word of a receive descriptor that the device is done with, in the extended and the
/// advanced format (section 7.1.4.2 of the 82574's datasheet, 7.1.5.2 of the 82576's): RSS type,
/// packet type, RSS hash.
#[derive(Clone, Copy)]
pub(crate) struct Described(u64);

impl Described {
    /// RSS hash; `None` for a frame that the device has not hashed.
    fn rss_hash(self) -> Option<u32> {
        (self.0 & 0xf != 0).then_some((self.0 >> 32) as u32)
    }

    /// Protocols, in the 82576's format.
    fn protocols(self) -> (Option<Network>, Option<Transport>) {
        let is = |bits: u64| self.0 >> 4 & bits != 0;
        let network = match (is(0b0011), is(0b1100)) {
            (true, false) => Some(Network::Ipv4),
            (false, true) => Some(Network::Ipv6),
            _ => None,
        };
        let transport = match (is(1 << 4), is(1 << 5), is(1 << 6)) {
            (true, false, false) => Some(Transport::Tcp),
            (false, true, false) => Some(Transport::Udp),
            (false, false, true) => Some(Transport::Sctp),
            _ => None,
        };
        (network, transport)
    }

    /// Writes into the metadata what the device says; the 82576 (`has_protocols`) says more.
    pub(crate) fn write(self, metadata: &mut Metadata, has_protocols: bool) {
        metadata.rss_hash = self.rss_hash();
        if has_protocols {
            (metadata.network, metadata.transport) = self.protocols();
        }
    }
}

/// A receive descriptor that the device is done with: its second word, in the order of the
/// extended format (section 7.1.4.2): status and errors, length, VLAN tag.
#[derive(Clone, Copy)]
pub(crate) struct Received(pub(crate) u64);

impl Received {
    /// Status: the device is done with it; it is the last of its frame; the TCP or UDP checksum
    /// has been looked at.
    const DD: u64 = 1 << 0;
    const EOP: u64 = 1 << 1;
    const L4CS: u64 = 1 << 5;
    /// Errors: the TCP or UDP checksum, and the IPv4 checksum, is wrong.
    const L4E: u64 = 1 << 29;
    const IPE: u64 = 1 << 30;
    /// Errors of the frame itself: CRC, symbol, sequence, carrier extension, data.
    const BAD: u64 = 0b1001_0111 << 24;

    /// What is posted beside the address: no status.
    pub(crate) const POSTED: u64 = 0;

    /// The descriptor has come back.
    #[inline(always)]
    pub(crate) fn is_done(self) -> bool {
        self.0 & Self::DD != 0
    }

    /// Bytes in the buffer.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        usize::from((self.0 >> 32) as u16)
    }

    /// The frame ends in this buffer.
    #[inline(always)]
    pub(crate) fn is_last(self) -> bool {
        self.0 & Self::EOP != 0
    }

    /// The last buffer of a frame in which the device found nothing wrong.
    #[inline(always)]
    pub(crate) fn is_good(self) -> bool {
        self.0 & (Self::EOP | Self::BAD | Self::L4E | Self::IPE) == Self::EOP
    }

    /// The link found the frame broken.
    pub(crate) fn is_broken(self) -> bool {
        self.0 & Self::BAD != 0
    }

    /// The device has found the TCP or UDP checksum right, if the frame is [good](Self::is_good).
    #[inline(always)]
    pub(crate) fn is_verified(self) -> bool {
        self.0 & Self::L4CS != 0
    }
}

/// The format that receive descriptors come back in. Posted ones are the same.
pub(crate) trait Format: Send + 'static {
    /// RFCTL.EXTEN.
    const EXTENDED: bool;

    /// The second word of a descriptor, in the extended format's order.
    fn received(word: u64) -> Received;
}

/// Section 7.1.3: length, checksum, status, errors, VLAN tag. It knows no RSS.
pub(crate) struct Legacy;

/// Section 7.1.4.
pub(crate) struct Extended;

impl Format for Legacy {
    const EXTENDED: bool = false;

    #[inline(always)]
    fn received(word: u64) -> Received {
        let (len, status) = (word & 0xffff, word >> 32 & 0xff);
        let (errors, vlan) = (word >> 40 & 0xff, word >> 48);
        Received(vlan << 48 | len << 32 | errors << 24 | status)
    }
}

impl Format for Extended {
    const EXTENDED: bool = true;

    #[inline(always)]
    fn received(word: u64) -> Received {
        Received(word)
    }
}

/// The format of transmit descriptors.
pub(crate) trait TxFormat: Send + 'static {
    /// The checksum that a frame leaves to the device; none in a format that knows no such thing,
    /// so that its queues do not look.
    #[inline(always)]
    fn request(_: &Mbuf) -> Option<ChecksumRequest> {
        None
    }

    /// Whether the device can finish this one. What it cannot the driver does, byte by byte.
    #[inline(always)]
    fn can_finish(_: ChecksumRequest) -> bool {
        true
    }

    /// What goes in front of a frame that leaves a checksum to the device.
    #[inline(always)]
    fn context(_: ChecksumRequest) -> [u64; 2] {
        [0; 2]
    }

    /// In the second word of each piece of such a frame.
    const SUMMED: u64 = 0;

    /// The second word of a piece of `len` bytes, of a frame of `total`.
    fn piece(len: usize, total: usize, is_last: bool) -> u64;
}

/// In the second word of a transmit descriptor of any format: last of its frame; have the CRC
/// added; report when it is done.
const EOP: u64 = 1 << 24;
const IFCS: u64 = 1 << 25;
pub(crate) const REPORT: u64 = 1 << 27;
/// Status: done.
const DONE: u64 = 1 << 32;

#[inline(always)]
fn piece(len: usize, is_last: bool) -> u64 {
    let last = if is_last { EOP } else { 0 };
    // The length has 16 bits; a longer piece is refused before.
    u64::from(len as u16) | IFCS | last
}

/// Whether a descriptor that was to be reported has been sent.
#[inline(always)]
pub(crate) fn is_sent(word: u64) -> bool {
    word & DONE != 0
}

/// Section 7.2 of the 82574's datasheet: it has all that is needed without checksums and
/// segmentation.
pub(crate) struct LegacyTx;

impl TxFormat for LegacyTx {
    #[inline(always)]
    fn piece(len: usize, _total: usize, is_last: bool) -> u64 {
        piece(len, is_last)
    }
}

/// TCP/IP context and data descriptors of the 82574 (sections 7.2.6 and 7.2.10 of its datasheet),
/// for a ring in which frames may leave their checksums to the device.
pub(crate) struct OffloadTx;

impl OffloadTx {
    /// An extended descriptor, and one of data; without the second it is a context.
    const DEXT: u64 = 1 << 29;
    const DTYP_DATA: u64 = 1 << 20;
}

impl TxFormat for OffloadTx {
    #[inline(always)]
    fn request(mbuf: &Mbuf) -> Option<ChecksumRequest> {
        mbuf.checksum_request()
    }

    /// TUCSS, TUCSO, and a TUCSE of zero: to the end of the frame.
    #[inline(always)]
    fn context(request: ChecksumRequest) -> [u64; 2] {
        let (start, field) = (request.start() as u64, request.field() as u64);
        [start << 32 | field << 40, Self::DEXT]
    }

    /// POPTS.TXSM.
    const SUMMED: u64 = 1 << 41;

    #[inline(always)]
    fn piece(len: usize, _total: usize, is_last: bool) -> u64 {
        piece(len, is_last) | Self::DTYP_DATA | Self::DEXT
    }
}

/// Data descriptors of section 7.2.2.3 of the 82576's datasheet.
pub(crate) struct AdvancedTx;

impl AdvancedTx {
    /// An advanced descriptor.
    const DEXT: u64 = 1 << 29;
}

impl TxFormat for AdvancedTx {
    #[inline(always)]
    fn piece(len: usize, total: usize, is_last: bool) -> u64 {
        const DTYP_DATA: u64 = 3 << 20;
        /// The length of the frame, of 18 bits.
        const PAYLEN_SHIFT: u32 = 46;
        piece(len, is_last) | DTYP_DATA | Self::DEXT | (total as u64) << PAYLEN_SHIFT
    }
}

/// The same with context descriptors (section 7.2.2.2), for a ring in which frames may leave their
/// checksums to the device. The descriptor holds the protocol (TCP or UDP), not the offset of the
/// checksum.
pub(crate) struct AdvancedOffloadTx;

impl AdvancedOffloadTx {
    /// The Ethernet header: MACLEN. A VLAN tag in the frame counts to IPLEN, as the device begins
    /// to sum behind both.
    const MACLEN: usize = 14;
    /// The shortest header of IPv4.
    const SHORTEST_IP: usize = 20;
    /// Where UDP and TCP have their checksums.
    const UDP: usize = 6;
    const TCP: usize = 16;
}

impl TxFormat for AdvancedOffloadTx {
    #[inline(always)]
    fn request(mbuf: &Mbuf) -> Option<ChecksumRequest> {
        mbuf.checksum_request()
    }

    #[inline(always)]
    fn can_finish(request: ChecksumRequest) -> bool {
        request.start() >= Self::MACLEN + Self::SHORTEST_IP
            && matches!(request.field() - request.start(), Self::UDP | Self::TCP)
    }

    #[inline(always)]
    fn context(request: ChecksumRequest) -> [u64; 2] {
        const DTYP_CONTEXT: u64 = 2 << 20;
        /// TUCMD.L4T: TCP; UDP without it.
        const TCP: u64 = 1 << 11;
        // It begins at byte 255 at most, and IPLEN has nine bits.
        let ip_len = request.start() - Self::MACLEN;
        let tcp = match request.field() - request.start() {
            Self::TCP => TCP,
            _ => 0,
        };
        [
            (Self::MACLEN << 9 | ip_len) as u64,
            AdvancedTx::DEXT | DTYP_CONTEXT | tcp,
        ]
    }

    /// POPTS.TXSM; the context has number 0.
    const SUMMED: u64 = 1 << 41;

    #[inline(always)]
    fn piece(len: usize, total: usize, is_last: bool) -> u64 {
        AdvancedTx::piece(len, total, is_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_descriptors_say_the_same_in_another_order() {
        // Section 7.1.3: bytes 8 to 15 are length, checksum, status, errors, VLAN tag.
        let word = |status: u64, errors: u64| 0x64 << 48 | errors << 40 | status << 32 | 0x5dc;
        let done = Legacy::received(word(0x23, 0));
        assert!(done.is_done() && done.is_last() && done.is_good() && done.is_verified());
        assert_eq!((done.len(), done.0 >> 48), (0x5dc, 0x64));
        assert!(!Legacy::received(word(0x22, 0)).is_done());
        assert!(!Legacy::received(word(0x01, 0)).is_last());
        for (errors, broken) in [
            (1 << 5, false),
            (1 << 6, false),
            (1 << 0, true),
            (1 << 7, true),
        ] {
            let bad = Legacy::received(word(0x23, errors));
            assert_eq!(
                (bad.is_good(), bad.is_broken()),
                (false, broken),
                "{errors:#x}"
            );
        }
    }
}
