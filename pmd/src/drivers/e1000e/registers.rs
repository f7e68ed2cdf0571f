//! The registers that the driver uses, by the 82574 datasheet (Intel 82574 GbE Controller Family
//! Datasheet, revision 3.4).

use crate::bus::registers::registers;

/// Bytes of the window that they are in: BAR 0 (section 10.1.1.1).
pub const WINDOW: usize = 128 << 10;

registers! {
    /// All of them.
    pub REGISTERS:

    // General.
    CTRL 0x0000 "10.2.2.1" "device control" {
        CTRL_FD = 1,
        CTRL_MASTER_DISABLE = 1 << 2,
        CTRL_ASDE = 1 << 5,
        CTRL_SLU = 1 << 6,
        CTRL_FRCSPD = 1 << 11,
        CTRL_FRCDPLX = 1 << 12,
        CTRL_RST = 1 << 26,
        CTRL_RFCE = 1 << 27,
        CTRL_TFCE = 1 << 28,
        CTRL_VME = 1 << 30,
    }
    STATUS 0x0008 "10.2.2.2" "device status" {
        STATUS_FD = 1,
        STATUS_LU = 1 << 1,
        STATUS_SPEED = 3 << 6,
        STATUS_MASTER_ENABLE = 1 << 19,
    }
    EECD 0x0010 "10.2.2" "NVM control" {
        EECD_AUTO_RD = 1 << 9,
    }
    CTRL_EXT 0x0018 "10.2.2" "extended device control" {
        CTRL_EXT_REQUIRED = 1 << 22,
        CTRL_EXT_REQUIRED_ZERO = 1 << 23,
        CTRL_EXT_PBA_CLR = 1 << 31,
    }
    MDIC 0x0020 "10.2.2" "access to the PHY" {
        MDIC_DATA = 0xffff,
        MDIC_REGADD = 0x1f << 16,
        MDIC_PHYADD = 0x1f << 21,
        MDIC_WRITE = 1 << 26,
        MDIC_READ = 1 << 27,
        MDIC_READY = 1 << 28,
        MDIC_ERROR = 1 << 30,
    }
    EXTCNF_CTRL 0x0f00 "10.2.2" "extended configuration" {
        EXTCNF_CTRL_MDIO_OWNER = 1 << 5,
    }

    // PCIe.
    GCR 0x5b00 "10.2.3" "PCIe control" {
        GCR_REQUIRED = 1 << 22,
    }
    GCR2 0x5b64 "10.2.3" "PCIe control 2" {
        GCR2_REQUIRED = 1,
    }

    // Interrupts.
    ICR 0x00c0 "10.2.4.1" "interrupt causes", clears {
        ICR_LSC = 1 << 2,
    }
    IMS 0x00d0 "10.2.4" "interrupt mask" {
        IMS_RXQ0 = 1 << 20,
        IMS_RXQ1 = 1 << 21,
    }
    IMC 0x00d8 "10.2.4" "interrupt mask clear" {}
    EIAC 0x00dc "10.2.4" "causes that clear themselves" {}
    IVAR 0x00e4 "10.2.4" "vectors of causes" {
        IVAR_RXQ0_VECTOR = 7,
        IVAR_RXQ0_VALID = 1 << 3,
        IVAR_RXQ1_VECTOR = 7 << 4,
        IVAR_RXQ1_VALID = 1 << 7,
    }

    // Receive.
    RCTL 0x0100 "10.2.5.1" "receive control" {
        RCTL_EN = 1 << 1,
        RCTL_UPE = 1 << 3,
        RCTL_MPE = 1 << 4,
        RCTL_LPE = 1 << 5,
        RCTL_BAM = 1 << 15,
        RCTL_BSIZE = 3 << 16,
        RCTL_SECRC = 1 << 26,
        RCTL_FLXBUF = 0xf << 27,
    }
    RDFPC 0x2430 "10.2.8" "frames in the receive buffer" {}
    RDBAL 0x2800 [2; 0x100] "10.2.5.5" "receive ring, low" {}
    RDBAH 0x2804 [2; 0x100] "10.2.5.6" "receive ring, high" {}
    RDLEN 0x2808 [2; 0x100] "10.2.5.7" "receive ring bytes" {}
    RDH 0x2810 [2; 0x100] "10.2.5.8" "receive ring head" {}
    RDT 0x2818 [2; 0x100] "10.2.5.9" "receive ring tail" {}
    RXDCTL 0x2828 [2; 0x100] "10.2.5.11" "receive descriptors" {
        RXDCTL_PTHRESH = 0x3f,
        RXDCTL_HTHRESH = 0x3f << 8,
        RXDCTL_WTHRESH = 0x3f << 16,
        RXDCTL_GRAN = 1 << 24,
    }
    RXCSUM 0x5000 "10.2.5.15" "receive checksums" {
        RXCSUM_IPOFLD = 1 << 8,
        RXCSUM_TUOFLD = 1 << 9,
        RXCSUM_PCSD = 1 << 13,
    }
    RFCTL 0x5008 "10.2.5.16" "receive filter" {
        RFCTL_EXTEN = 1 << 15,
    }
    MTA 0x5200 [128; 4] "10.2.5.17" "multicast hash" {}
    RAL 0x5400 [16; 8] "10.2.5.18" "address, low" {}
    RAH 0x5404 [16; 8] "10.2.5.19" "address, high" {
        RAH_ADDRESS = 0xffff,
        RAH_AV = 1 << 31,
    }
    MRQC 0x5818 "10.2.5.21" "several receive queues" {
        MRQC_RSS = 1,
        MRQC_TCP_IPV4 = 1 << 16,
        MRQC_IPV4 = 1 << 17,
        MRQC_TCP_IPV6 = 1 << 18,
        MRQC_IPV6_EX = 1 << 19,
        MRQC_IPV6 = 1 << 20,
    }
    RETA 0x5c00 [32; 4] "10.2.5.22" "RSS redirection" {}
    RSSRK 0x5c80 [10; 4] "10.2.5.23" "RSS key" {}

    // Transmit.
    TCTL 0x0400 "10.2.6" "transmit control" {
        TCTL_EN = 1 << 1,
        TCTL_PSP = 1 << 3,
        TCTL_CT = 0xff << 4,
        TCTL_COLD = 0x3ff << 12,
        TCTL_MULR = 1 << 28,
    }
    TIPG 0x0410 "10.2.6" "gap between frames" {}
    TDBAL 0x3800 [2; 0x100] "10.2.6" "transmit ring, low" {}
    TDBAH 0x3804 [2; 0x100] "10.2.6" "transmit ring, high" {}
    TDLEN 0x3808 [2; 0x100] "10.2.6" "transmit ring bytes" {}
    TDH 0x3810 [2; 0x100] "10.2.6" "transmit ring head" {}
    TDT 0x3818 [2; 0x100] "10.2.6" "transmit ring tail" {}
    TXDCTL 0x3828 [2; 0x100] "10.2.6" "transmit descriptors" {
        TXDCTL_PTHRESH = 0x3f,
        TXDCTL_HTHRESH = 0x3f << 8,
        TXDCTL_RESERVED_ONE = 1 << 22,
        TXDCTL_GRAN = 1 << 24,
    }
    TARC 0x3840 [2; 0x100] "10.2.6" "transmit arbitration" {
        TARC_ENABLE = 1 << 10,
    }

    // Statistics. Reading clears them; the low half of a pair when the high half is read.
    CRCERRS 0x4000 "10.2.7" "rx_crc_errors", clears {}
    ALGNERRC 0x4004 "10.2.7" "rx_alignment_errors", clears {}
    RXERRC 0x400c "10.2.7" "rx_phy_errors", clears {}
    MPC 0x4010 "10.2.7" "rx_missed", clears {}
    DC 0x4030 "10.2.7" "tx_deferred", clears {}
    RLEC 0x4040 "10.2.7" "rx_length_errors", clears {}
    XONRXC 0x4048 "10.2.7" "rx_xon", clears {}
    XOFFRXC 0x4050 "10.2.7" "rx_xoff", clears {}
    GPRC 0x4074 "10.2.7" "rx_good_packets", clears {}
    BPRC 0x4078 "10.2.7" "rx_broadcast", clears {}
    MPRC 0x407c "10.2.7" "rx_multicast", clears {}
    GPTC 0x4080 "10.2.7" "tx_good_packets", clears {}
    GORCL 0x4088 "10.2.7" "rx_good_bytes", clears {}
    GORCH 0x408c "10.2.7" "rx_good_bytes, high", clears {}
    GOTCL 0x4090 "10.2.7" "tx_good_bytes", clears {}
    GOTCH 0x4094 "10.2.7" "tx_good_bytes, high", clears {}
    RNBC 0x40a0 "10.2.7" "rx_no_buffers", clears {}
    RUC 0x40a4 "10.2.7" "rx_undersize", clears {}
    RFC 0x40a8 "10.2.7" "rx_fragments", clears {}
    ROC 0x40ac "10.2.7" "rx_oversize", clears {}
    RJC 0x40b0 "10.2.7" "rx_jabber", clears {}
    TPR 0x40d0 "10.2.7" "rx_total_packets", clears {}
    TPT 0x40d4 "10.2.7" "tx_total_packets", clears {}
    MPTC 0x40f0 "10.2.7" "tx_multicast", clears {}
    BPTC 0x40f4 "10.2.7" "tx_broadcast", clears {}
}
