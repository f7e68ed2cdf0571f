//! Registers of the RTL8139C(L)+, by the sections of its datasheet, revision 1.6. Most are read and
//! written by their own width, 8 or 16 bits.

pollux_pmd::registers! {
    /// All that the driver uses. Some share a word of 32 bits.
    pub REGISTERS:
    IDR 0x00 [2; 4] "5" "address of the station" {}
    MAR 0x08 [2; 4] "5" "multicast filter" {}
    TSD 0x10 [4; 4] "5.1" "transmit status" {
        TSD_SIZE = 0x1fff,
    }
    TSAD 0x20 [4; 4] "5" "transmit address" {}
    RBSTART 0x30 "5" "receive ring address" {}
    CR 0x34 "5.4" "command, in the highest byte" {}
    CAPR 0x38 "5" "read and write offset in the receive ring" {}
    IMR 0x3c "5.5" "interrupt mask and status" {}
    TCR 0x40 "5.7" "transmit configuration" {
        TCR_BURST_2048 = 7 << 8,
        TCR_GAP_STANDARD = 3 << 24,
    }
    RCR 0x44 "5.8" "receive configuration" {
        RCR_ALL = 1 << 0,
        RCR_STATION = 1 << 1,
        RCR_MULTICAST = 1 << 2,
        RCR_BROADCAST = 1 << 3,
        RCR_NO_WRAP = 1 << 7,
        RCR_BURST_UNLIMITED = 7 << 8,
        RCR_RING_32K = 2 << 11,
        RCR_WHOLE_FRAMES = 7 << 13,
    }
    MPC 0x4c "5" "missed frames" {
        MPC_COUNT = 0xff_ffff,
    }
    MSR 0x58 "5.15" "media status, in the lowest byte" {}
}

/// Bytes of the window of registers.
pub const WINDOW: usize = 0x100;
/// The window that is memory: BAR 1.
pub const BAR: u8 = 1;

/// The command register and its bits (section 5.4).
pub const COMMAND: usize = 0x37;
pub const COMMAND_TX: u8 = 1 << 2;
pub const COMMAND_RX: u8 = 1 << 3;
pub const COMMAND_RESET: u8 = 1 << 4;

/// Offset of the next frame to be read, less 16; offset of the next to be written.
pub const READ_AT: usize = 0x38;
pub const WRITE_AT: usize = 0x3a;
pub const READ_BIAS: u16 = 16;

/// Interrupts that are enabled.
pub const INTERRUPTS: usize = 0x3c;

/// Status of all four transmit slots (section 5.19): slot `n` is the driver's again, and was sent.
pub const SUMMARY: usize = 0x60;
pub const SUMMARY_OWN: u16 = 1;
pub const SUMMARY_OK: u16 = 1 << 12;

/// Media status: no link; 10 Mb/s.
pub const MEDIA: usize = 0x58;
pub const MEDIA_NO_LINK: u8 = 1 << 2;
pub const MEDIA_10: u8 = 1 << 3;

/// The word in front of a received frame (section 5.3): good, and its length with check sequence.
pub const GOOD: u32 = 1;
pub const LENGTH_SHIFT: u32 = 16;
