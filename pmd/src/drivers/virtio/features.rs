//! Feature bits: virtio 1.2 section 5.1.3 (network device) and chapter 6 (reserved bits).
//!
//! Not supported are `EVENT_IDX` (29), since a side that polls disables notifications by the flags,
//! and offloads other than checksums. Checksum offload is negotiated only if the port is configured
//! for it; otherwise the header in front of a frame is zero.

use std::ops::{BitAnd, BitOr};

/// A set of feature bits, as offered and accepted by the two sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features(pub(crate) u64);

impl Features {
    /// `VIRTIO_NET_F_CSUM`: the device completes partial checksums of the driver's frames.
    pub(crate) const CHECKSUM: Self = Self(1 << 0);
    /// `VIRTIO_NET_F_GUEST_CSUM`: the driver accepts frames with partial or verified checksums.
    pub(crate) const GUEST_CHECKSUM: Self = Self(1 << 1);
    /// `VIRTIO_NET_F_MTU`: the device reports the largest MTU.
    pub(crate) const MTU: Self = Self(1 << 3);
    /// `VIRTIO_NET_F_MAC`: the device reports its address.
    pub(crate) const MAC: Self = Self(1 << 5);
    /// `VIRTIO_NET_F_MRG_RXBUF`: a received frame may fill several buffers.
    pub(crate) const MERGEABLE: Self = Self(1 << 15);
    /// `VIRTIO_NET_F_STATUS`: the device reports the link state.
    pub(crate) const STATUS: Self = Self(1 << 16);
    /// `VIRTIO_NET_F_CTRL_VQ`: there is a control queue.
    pub(crate) const CONTROL: Self = Self(1 << 17);
    /// `VIRTIO_NET_F_CTRL_RX`: the control queue sets the receive filter.
    pub(crate) const CONTROL_RX: Self = Self(1 << 18);
    /// `VIRTIO_NET_F_MQ`: several pairs of queues.
    pub(crate) const SEVERAL_QUEUES: Self = Self(1 << 22);
    /// `VIRTIO_F_INDIRECT_DESC`: the segments of a buffer may be listed in a table of their own,
    /// which takes one descriptor of the ring.
    pub(crate) const INDIRECT: Self = Self(1 << 28);
    /// `VHOST_USER_F_PROTOCOL_FEATURES`: a feature of the vhost-user protocol, not of the device.
    pub(crate) const VHOST_USER_PROTOCOL: Self = Self(1 << 30);
    /// `VIRTIO_F_VERSION_1`: the device conforms to the standard; legacy devices are not supported.
    pub(crate) const VERSION_1: Self = Self(1 << 32);
    /// `VIRTIO_F_ACCESS_PLATFORM`: the device's addresses are translated by the IOMMU, if there is
    /// one.
    pub(crate) const ACCESS_PLATFORM: Self = Self(1 << 33);
    /// `VIRTIO_F_RING_PACKED`: packed rings (section 2.8).
    pub(crate) const PACKED: Self = Self(1 << 34);
    /// `VIRTIO_F_IN_ORDER`: buffers are used in the order in which they were made available.
    pub(crate) const IN_ORDER: Self = Self(1 << 35);
    /// `VIRTIO_F_ORDER_PLATFORM`: memory must be ordered as for devices in hardware, not as for
    /// another CPU. On x86 stores are in order for both.
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

/// The negotiated features of a device's rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // bits of a word
pub(crate) struct RingFeatures {
    /// Packed rings instead of split ones.
    pub(crate) packed: bool,
    /// Buffers are used in the order in which they were made available.
    pub(crate) in_order: bool,
    /// A received frame may fill several buffers.
    pub(crate) mergeable: bool,
    /// A buffer's segments may be listed in a table.
    pub(crate) indirect: bool,
    /// The device completes partial checksums of the driver's frames.
    pub(crate) checksum: bool,
    /// The driver completes those of the device's frames.
    pub(crate) guest_checksum: bool,
}

impl RingFeatures {
    /// The part of `negotiated` that concerns rings; `None` for a legacy device, whose rings and
    /// headers differ.
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

    /// Index at which a fresh ring starts, in the format of vhost's `SET_VRING_BASE`: the wrap
    /// counter of a packed ring, bit 15, starts at 1 (section 2.8.1).
    pub(crate) fn first_base(self) -> u16 {
        if self.packed { 1 << 15 } else { 0 }
    }
}
