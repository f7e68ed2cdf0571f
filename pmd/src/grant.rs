//! `MemoryGrant`: the capability to let a device or another process write into packet memory.

/// Permission to grant packet memory to devices and other processes.
///
/// A NIC writes into memory by DMA, the back end of a vhost-user port writes through its own
/// mapping, and DPDK's drivers write as foreign code. Rust's rules for references do not cover such
/// writers: if a device writes into a buffer while the program holds a `&[u8]` of it, the behaviour
/// is undefined. Safe code cannot rule that out, so it cannot make a grant. The author of the
/// `unsafe` block that makes one is responsible for the devices and peers that it is used for.
///
/// Ports that need no grant (`loopback`, `null`, `pcap`, `af_packet`, `af_xdp`, `tap`, `unix`,
/// and vhost-user as the back end) open without one.
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
    /// - Only the driver of its port writes the registers of a device or passes addresses to it.
    /// - The [`Device`](crate::bus::Device) that gives access to a device does exactly what is
    ///   requested: it maps the region that it is given, and reports the end of a mapping only
    ///   after it has ended.
    /// - A peer uses the memory file only as the protocol specifies, and passes it to no other
    ///   process.
    ///
    /// A device or peer that violates this can corrupt the bytes of frames. It cannot reach the
    /// metadata of the process (owners, lengths, links), which lies in memory that is never
    /// granted.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}
