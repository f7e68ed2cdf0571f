//! Addresses of the ends of a cable.

/// Ethernet address of `va`.
pub const MAC_A: [u8; 6] = [2, 0, 0, 0, 0, 0x0a];
/// Ethernet address of `vb`.
pub const MAC_B: [u8; 6] = [2, 0, 0, 0, 0, 0x0b];
/// Address of the port's end; only the neighbour table of the other end knows it.
pub const IP_A: [u8; 4] = [10, 77, 0, 2];
/// Address of the kernel's end.
pub const IP_B: [u8; 4] = [10, 77, 0, 1];
