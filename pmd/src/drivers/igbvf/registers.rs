//! Registers of a virtual function of the 82576 (section 8.26 of the Intel 82576EB Gigabit Ethernet
//! Controller datasheet, revision 2.7): a few of the physical function's, most of them at the same
//! places.

use crate::bus::registers::registers;

/// Bytes of the window of registers (BAR 0).
pub(super) const WINDOW: usize = 0x4000;

registers! {
    /// All that the driver uses, but the statistics.
    pub(super) REGISTERS:
    CTRL 0x0000 "8.26" "device control" {
        CTRL_RESET = 1 << 26,
    }
    STATUS 0x0008 "8.26" "device status" {
        STATUS_LINK_UP = 1 << 1,
        STATUS_SPEED = 3 << 6,
    }
    MAILBOX_MEMORY 0x0800 [16; 4] "8.26" "mailbox" {}
    V2PMAILBOX 0x0c40 "8.26" "mailbox control", clears {
        V2PMAILBOX_SENT = 1 << 0,
        V2PMAILBOX_ACKNOWLEDGE = 1 << 1,
        V2PMAILBOX_VF_HAS_BUFFER = 1 << 2,
        V2PMAILBOX_PF_HAS_BUFFER = 1 << 3,
        V2PMAILBOX_PF_SENT = 1 << 4,
        V2PMAILBOX_PF_ACKNOWLEDGED = 1 << 5,
        V2PMAILBOX_PF_RESETS = 1 << 6,
        V2PMAILBOX_PF_RESET_DONE = 1 << 7,
    }
    EIMS 0x1524 "8.26" "vectors that are on" {}
    EIMC 0x1528 "8.26" "vectors, to be switched off" {}
    EIAC 0x152c "8.26" "vectors whose cause clears itself" {}
    VTIVAR 0x1700 "8.26" "vectors of the queues" {
        VTIVAR_RX_VALID = 1 << 7,
    }
    RX 0x2800 "8.26" "receive queue: the first of its registers" {}
    TX 0x3800 "8.26" "transmit queue: the first of its registers" {}
}

registers! {
    /// Statistics, in the order of their report. They wrap around, and nothing sets them to zero.
    pub(super) STATISTICS:
    VFGPRC 0x0f10 "8.26" "rx_packets" {}
    VFGPTC 0x0f14 "8.26" "tx_packets" {}
    VFGORC 0x0f18 "8.26" "rx_bytes" {}
    VFGOTC 0x0f34 "8.26" "tx_bytes" {}
    VFMPRC 0x0f3c "8.26" "rx_multicast" {}
}
