//! Where the windows of registers are: virtio 1.2 section 4.1.4.

/// The windows, all in BAR 4: kind, where, how long.
const WINDOWS: [(u8, u32, u32); 4] = [
    (1, 0x0000, 0x1000),
    (3, 0x1000, 0x1000),
    (4, 0x2000, 0x1000),
    (2, 0x3000, 0x1000),
];
pub(super) const BAR: u8 = 4;

/// Capabilities, each 20 bytes apart; the one for notifications, with its multiplier, is the last.
pub(super) fn configuration_space() -> [u8; 256] {
    let mut space = [0; 256];
    // Of the status register: there are capabilities.
    space[6] = 0x10;
    space[0x34] = 0x40;
    for (i, (kind, offset, len)) in WINDOWS.into_iter().enumerate() {
        let at = 0x40 + 20 * i;
        let next = if i + 1 == WINDOWS.len() { 0 } else { at + 20 };
        let cap_len = if kind == 2 { 20 } else { 16 };
        space[at..at + 5].copy_from_slice(&[0x09, next as u8, cap_len, kind, BAR]);
        space[at + 8..at + 12].copy_from_slice(&offset.to_le_bytes());
        space[at + 12..at + 16].copy_from_slice(&len.to_le_bytes());
        if kind == 2 {
            space[at + 16..at + 20].copy_from_slice(&4_u32.to_le_bytes());
        }
    }
    space
}
