//! Registers of the 82576, as its physical function sees them. The sections are those of the Intel
//! 82576EB Gigabit Ethernet Controller datasheet, revision 2.7.

use crate::bus::registers::registers;
use crate::drivers::intel::counters::Lost;
use crate::ledger::Cause;

/// Bytes of the window of registers (BAR 0).
pub const WINDOW: usize = 0x20000;

/// Pools that frames are shared out to: pool `n` has queues `n` and `n + 8`, and is virtual
/// function `n`, if there is one (section 8.26.1).
pub(super) const POOLS: u16 = 8;

/// Longest frame in bytes, with its check sequence (9.5 KiB, section 8.10, RLPML).
pub const LONGEST: u32 = 9728;

registers! {
    /// All that the driver uses, but the statistics.
    pub REGISTERS:
    CTRL 0x0000 "8.2" "device control" {
        CTRL_MASTER_DISABLE = 1 << 2,
        CTRL_SET_LINK_UP = 1 << 6,
        CTRL_FORCE_SPEED = 1 << 11,
        CTRL_FORCE_DUPLEX = 1 << 12,
        CTRL_RESET = 1 << 26,
    }
    STATUS 0x0008 "8.2" "device status" {
        STATUS_LINK_UP = 1 << 1,
        STATUS_PORT = 3 << 2,
        STATUS_SPEED = 3 << 6,
        STATUS_MASTER_ENABLED = 1 << 19,
    }
    EEC 0x0010 "8.4" "control of the EEPROM" {
        EEC_AUTO_READ_DONE = 1 << 9,
    }
    CTRL_EXT 0x0018 "8.2" "extended device control" {
        CTRL_EXT_PF_RESET_DONE = 1 << 14,
        CTRL_EXT_DRIVER_LOADED = 1 << 28,
    }
    MDIC 0x0020 "8.2" "access to the PHY" {
        MDIC_DATA = 0xffff,
        MDIC_REGISTER = 0x1f << 16,
        MDIC_PHY = 0x1f << 21,
        MDIC_WRITE = 1 << 26,
        MDIC_READY = 1 << 28,
        MDIC_ERROR = 1 << 30,
    }
    ICR 0x00c0 "8.8" "interrupt cause", clears {}
    IMS 0x00d0 "8.8" "interrupt mask" {
        IMS_LINK = 1 << 2,
        IMS_MAILBOX = 1 << 8,
    }
    IMC 0x00d8 "8.8" "interrupt mask, to be cleared" {}
    RCTL 0x0100 "8.10" "receive control" {
        RCTL_ENABLE = 1 << 1,
        RCTL_UNICAST_ALL = 1 << 3,
        RCTL_MULTICAST_ALL = 1 << 4,
        RCTL_LONG = 1 << 5,
        RCTL_BROADCAST = 1 << 15,
        RCTL_VLAN_FILTER = 1 << 18,
        RCTL_STRIP_CRC = 1 << 26,
    }
    TCTL 0x0400 "8.12" "transmit control" {
        TCTL_ENABLE = 1 << 1,
        TCTL_PAD = 1 << 3,
    }
    MAILBOX_MEMORY 0x0800 [8; 64] "8.14" "mailbox of a virtual function: the first of 16 words" {}
    P2VMAILBOX 0x0c00 [8; 4] "8.14" "mailbox control" {
        P2VMAILBOX_SENT = 1 << 0,
        P2VMAILBOX_ACKNOWLEDGE = 1 << 1,
        P2VMAILBOX_VF_HAS_BUFFER = 1 << 2,
        P2VMAILBOX_PF_HAS_BUFFER = 1 << 3,
        P2VMAILBOX_TAKE_FROM_VF = 1 << 4,
    }
    MBVFICR 0x0c80 "8.14" "mailboxes with something new" {
        MBVFICR_ASKED = 0xff,
        MBVFICR_ACKNOWLEDGED = 0xff << 16,
    }
    MBVFIMR 0x0c84 "8.14" "mailboxes that interrupt" {}
    VFLRE 0x0c88 "8.14" "virtual functions that were reset" {}
    VFRE 0x0c8c "8.14" "pools that receive" {}
    VFTE 0x0c90 "8.14" "pools that send" {}
    GPIE 0x1514 "8.8" "interrupt mode" {
        GPIE_CLEAR_BY_READ = 1 << 0,
        GPIE_MSIX = 1 << 4,
        GPIE_AUTO_MASK = 1 << 30,
        GPIE_PENDING_BITS = 1 << 31,
    }
    EIMS 0x1524 "8.8" "vectors that are on" {}
    EIMC 0x1528 "8.8" "vectors, to be switched off" {}
    EIAC 0x152c "8.8" "vectors whose cause clears itself" {}
    IVAR 0x1700 [8; 4] "8.8" "vectors of queues n and n + 8" {}
    IVAR_MISC 0x1740 "8.8" "vectors of other causes" {}
    QDE 0x2408 "8.10" "queues that drop what there is no descriptor for" {}
    DTXSWC 0x3500 "8.14" "switching of sent frames" {
        DTXSWC_MAC_ANTI_SPOOF = 0xff,
        DTXSWC_VLAN_ANTI_SPOOF = 0xff << 8,
        DTXSWC_LOOPBACK = 1 << 31,
    }
    WVBR 0x3554 "8.14" "virtual functions whose frames were refused", clears {}
    VMVIR 0x3700 [8; 4] "8.14" "tag that a pool's frames are given" {
        VMVIR_ALWAYS = 1 << 30,
    }
    RXCSUM 0x5000 "8.10" "receive checksums" {
        RXCSUM_IP = 1 << 8,
        RXCSUM_UDP_TCP = 1 << 9,
        RXCSUM_HASH = 1 << 13,
    }
    RLPML 0x5004 "8.10" "longest frame" {}
    MTA 0x5200 [128; 4] "8.10" "multicast table" {}
    RAL 0x5400 [16; 8] "8.10" "addresses to receive for: four bytes" {}
    RAH 0x5404 [16; 8] "8.10" "addresses to receive for: two bytes and pools" {
        RAH_POOLS = 0xff << 18,
        RAH_VALID = 1 << 31,
    }
    VFTA 0x5600 [128; 4] "8.10" "VLANs that are received" {}
    MRQC 0x5818 "8.10" "how frames are shared out to queues" {
        MRQC_MODE = 7,
        MRQC_FIELDS = 0xff << 16,
    }
    VT_CTL 0x581c "8.14" "how frames are shared out to pools" {
        VT_CTL_DEFAULT_POOL = 7 << 7,
        VT_CTL_NO_DEFAULT_POOL = 1 << 29,
        VT_CTL_REPLICATE = 1 << 30,
    }
    VMOLR 0x5ad0 [8; 4] "8.14" "what a pool receives" {
        VMOLR_LONGEST = 0x3fff,
        VMOLR_LONG = 1 << 16,
        VMOLR_UNTAGGED = 1 << 24,
        VMOLR_MULTICAST_TABLE = 1 << 25,
        VMOLR_BROADCAST = 1 << 27,
        VMOLR_MULTICAST_ALL = 1 << 28,
        VMOLR_STRIP_VLAN = 1 << 30,
        VMOLR_STRIP_CRC = 1 << 31,
    }
    RPLOLR 0x5af0 "8.14" "what is done to frames for several pools" {
        RPLOLR_STRIP_VLAN = 1 << 30,
        RPLOLR_STRIP_CRC = 1 << 31,
    }
    SWSM 0x5b50 "8.6" "semaphore of the software" {
        SWSM_SOFTWARE = 1 << 0,
        SWSM_BOTH = 1 << 1,
    }
    SW_FW_SYNC 0x5b5c "8.6" "who uses what" {}
    IOVTCL 0x5bbc "8.14" "queues of virtual functions that there are not" {
        IOVTCL_REUSE = 1 << 0,
    }
    RETA 0x5c00 [32; 4] "8.10" "queues by hash: four a register" {}
    RSSRK 0x5c80 [10; 4] "8.10" "key of the hash" {}
    VLVF 0x5d00 [32; 4] "8.14" "VLANs, and the pools that are in them" {
        VLVF_ID = 0xfff,
        VLVF_POOLS = 0xff << 12,
        VLVF_VALID = 1 << 31,
    }
    RX 0xc000 [16; 0x40] "8.10" "receive queue: the first of its registers" {}
    TX 0xe000 [16; 0x40] "8.12" "transmit queue: the first of its registers" {}
}

/// Frames that the device lost in front of all queues. What it lost for want of a descriptor, each
/// queue counts.
///
/// The other counters of errors (section 8.19) are statistics alone, as with the 82574: they count
/// frames of these once more, or what may have been delivered, or is shorter than a frame.
pub(super) const LOST: Lost = &[
    // The packet buffer was full.
    (MPC, Cause::RingFull),
    (ROC, Cause::Oversize),
    (CRCERRS, Cause::DeviceError),
];

registers! {
    /// Statistics (section 8.19), in the order of their report. Reading clears them.
    pub STATISTICS:
    CRCERRS 0x4000 "8.19" "rx_crc_errors", clears {}
    RXERRC 0x400c "8.19" "rx_errors", clears {}
    MPC 0x4010 "8.19" "rx_missed", clears {}
    RLEC 0x4040 "8.19" "rx_length_errors", clears {}
    GPRC 0x4074 "8.19" "rx_packets", clears {}
    BPRC 0x4078 "8.19" "rx_broadcast", clears {}
    MPRC 0x407c "8.19" "rx_multicast", clears {}
    GPTC 0x4080 "8.19" "tx_packets", clears {}
    ROC 0x40ac "8.19" "rx_oversize", clears {}
    MPTC 0x40f0 "8.19" "tx_multicast", clears {}
    BPTC 0x40f4 "8.19" "tx_broadcast", clears {}
}
