//! Feature bits: virtio 1.2 section 5.1.3 (network device) and chapter 6 (reserved bits).
//!
//! What the rings here do without: `EVENT_IDX` (29), as a side that polls wants no notification at
//! all, which the flags say; and offloads but for checksums, which are agreed on where a port is
//! configured for them, so that elsewhere the header in front of a frame is zero.

use std::ops::{BitAnd, BitOr};

/// A set of feature bits, as the two sides offer and accept them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features(pub(crate) u64);

impl Features {
    /// `VIRTIO_NET_F_CSUM`: the device finishes checksums that the driver leaves to it.
    pub(crate) const CHECKSUM: Self = Self(1 << 0);
    /// `VIRTIO_NET_F_GUEST_CSUM`: the driver takes frames whose checksums are not finished, or have
    /// been verified.
    pub(crate) const GUEST_CHECKSUM: Self = Self(1 << 1);
    /// `VIRTIO_NET_F_MTU`: the device tells the largest MTU.
    pub(crate) const MTU: Self = Self(1 << 3);
    /// `VIRTIO_NET_F_MAC`: the device tells its address.
    pub(crate) const MAC: Self = Self(1 << 5);
    /// `VIRTIO_NET_F_MRG_RXBUF`: a received frame may fill several buffers.
    pub(crate) const MERGEABLE: Self = Self(1 << 15);
    /// `VIRTIO_NET_F_STATUS`: the device tells whether its link is up.
    pub(crate) const STATUS: Self = Self(1 << 16);
    /// `VIRTIO_NET_F_CTRL_VQ`: there is a control queue.
    pub(crate) const CONTROL: Self = Self(1 << 17);
    /// `VIRTIO_NET_F_CTRL_RX`: what is received can be chosen, by the control queue.
    pub(crate) const CONTROL_RX: Self = Self(1 << 18);
    /// `VIRTIO_NET_F_MQ`: several pairs of queues.
    pub(crate) const SEVERAL_QUEUES: Self = Self(1 << 22);
    /// `VIRTIO_F_INDIRECT_DESC`: the pieces of a buffer may be listed in a table of their own, which
    /// takes one descriptor of the ring.
    pub(crate) const INDIRECT: Self = Self(1 << 28);
    /// `VHOST_USER_F_PROTOCOL_FEATURES`: no feature of the device, but of the vhost-user protocol.
    pub(crate) const VHOST_USER_PROTOCOL: Self = Self(1 << 30);
    /// `VIRTIO_F_VERSION_1`: not a device from before the standard. We speak with no others.
    pub(crate) const VERSION_1: Self = Self(1 << 32);
    /// `VIRTIO_F_ACCESS_PLATFORM`: the device's addresses are those that the IOMMU, if there is one,
    /// translates.
    pub(crate) const ACCESS_PLATFORM: Self = Self(1 << 33);
    /// `VIRTIO_F_RING_PACKED`: packed rings (section 2.8).
    pub(crate) const PACKED: Self = Self(1 << 34);
    /// `VIRTIO_F_IN_ORDER`: buffers are used in the order in which they were made available.
    pub(crate) const IN_ORDER: Self = Self(1 << 35);
    /// `VIRTIO_F_ORDER_PLATFORM`: memory is to be ordered as for devices in hardware, not as for
    /// another processor. On x86 our stores are in order for both.
    pub(crate) const ORDER_PLATFORM: Self = Self(1 << 36);

    /// Whether all bits of `other` are set.
    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Features {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Features {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// What was negotiated about the rings of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // bits of a word
pub(crate) struct RingFeatures {
    /// Packed rings instead of split ones.
    pub(crate) packed: bool,
    /// Buffers are used in the order in which they were made available.
    pub(crate) in_order: bool,
    /// A received frame may fill several buffers.
    pub(crate) mergeable: bool,
    /// A buffer's pieces may be listed in a table.
    pub(crate) indirect: bool,
    /// The device finishes checksums of the driver's frames.
    pub(crate) checksum: bool,
    /// The driver finishes those of the device's.
    pub(crate) guest_checksum: bool,
}

impl RingFeatures {
    /// The part of `negotiated` that concerns rings; `None` for a device from before the standard,
    /// whose rings and headers are others.
    pub(crate) fn of(negotiated: Features) -> Option<Self> {
        negotiated.contains(Features::VERSION_1).then_some(Self {
            packed: negotiated.contains(Features::PACKED),
            in_order: negotiated.contains(Features::IN_ORDER),
            mergeable: negotiated.contains(Features::MERGEABLE),
            indirect: negotiated.contains(Features::INDIRECT),
            checksum: negotiated.contains(Features::CHECKSUM),
            guest_checksum: negotiated.contains(Features::GUEST_CHECKSUM),
        })
    }

    /// Where a fresh ring begins, as vhost's `SET_VRING_BASE` wants it: the wrap counter of a
    /// packed ring, bit 15, starts at 1 (section 2.8.1).
    pub(crate) fn first_base(self) -> u16 {
        if self.packed { 1 << 15 } else { 0 }
    }
}
