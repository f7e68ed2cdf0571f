//! The capability to let a device or another process write into packet memory.

/// Permission to grant packet memory to devices and other processes.
///
/// A NIC writes into memory by DMA, the back end of a vhost-user port through a mapping of its own,
/// and DPDK's drivers as foreign code. Rust's rules for references say nothing of such writers: a
/// device that writes into a buffer while the program holds a `&[u8]` of it is undefined behaviour,
/// whatever the program does. Safe code cannot rule that out, so it cannot make a grant; whoever
/// writes the `unsafe` that makes one answers for the devices and peers that it is used for.
///
/// Ports that need no grant (`loopback`, `null`, `pcap`, `af_packet`, `af_xdp`, `tap`, and
/// vhost-user as the back end) open without one.
#[derive(Clone, Copy, Debug)]
pub struct MemoryGrant(());

impl MemoryGrant {
    /// Makes a grant.
    ///
    /// # Safety
    /// For each device and peer that this grant, or a copy of it, is used for:
    ///
    /// - It writes into a packet buffer only from when the driver has posted that buffer until it
    ///   has reported it complete, or was stopped and has acknowledged that. An IOMMU confines a
    ///   PCI device to the memory that is mapped for it (regions of pools and rings, never the
    ///   headers of buffers); without one it can write anywhere, and is trusted as the kernel is.
    /// - Nothing but the driver of its port writes the registers of a device, or tells it an
    ///   address.
    /// - The [`Device`](crate::bus::Device) through which a device is reached does what it is asked,
    ///   and no more: it maps the region that it is given, and says that a mapping has ended only
    ///   where that is so.
    /// - A peer does not make more of the memory file than the protocol says, and leaves or gives it
    ///   to no other process.
    ///
    /// A device or peer that breaks this can spoil the bytes of frames. It never gets to what the
    /// process keeps beside them: owners, lengths and links lie in memory that is never granted.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}
