// Made by scripts/regen from hw/rdl: do not edit.

//! The card's registers. Offsets are from the start of a block; where blocks are, the card says.
//! `hw/docs/registers.md` has them with all their words.

/// TLB.
pub(super) mod tlb {
    use crate::bus::registers::registers;

    /// Kind of the block.
    pub(crate) const KIND: u32 = 5;
    /// Bytes in the block.
    pub(crate) const SIZE: usize = 0x2000;
    registers! {
        /// TLB.
        pub(crate) REGISTERS:
        BLOCK 0x0000 "tlb" "what block this is" {
            BLOCK_KIND = 0xffff,
            BLOCK_VERSION = 0xff << 16,
        }
        NEXT 0x0004 "tlb" "offset of the next block" {}
        INVALIDATE 0x000c "tlb" "requests the end of invalid entries" {}
        INVALIDATED 0x0010 "tlb" "number of the last request that is complete" {}
        TIMEOUT 0x0014 "tlb" "longest wait for an entry, core cycles" {}
        FAULTS 0x0100 "tlb" "chunks without a valid entry, or that their entry does not allow" {}
        FAULTS_HIGH 0x0104 "tlb" "upper half of FAULTS" {}
        EVENTS_LOST 0x0108 "tlb" "events that were not written, because the one before it of the same port still waited for space in its queue" {}
        EVENTS_LOST_HIGH 0x010c "tlb" "upper half of EVENTS_LOST" {}
        MISSES 0x0110 "tlb" "chunks that waited for an entry" {}
        MISSES_HIGH 0x0114 "tlb" "upper half of MISSES" {}
        ENTRY_VIRTUAL 0x1000 [128; 0x20] "tlb" "virtual address of the page" {}
        ENTRY_VIRTUAL_HIGH 0x1004 [128; 0x20] "tlb" "upper half of ENTRY_VIRTUAL" {}
        ENTRY_BUS 0x1008 [128; 0x20] "tlb" "bus address of the page" {}
        ENTRY_BUS_HIGH 0x100c [128; 0x20] "tlb" "upper half of ENTRY_BUS" {}
        ENTRY_CTRL 0x1010 [128; 0x20] "tlb" "control" {
            ENTRY_CTRL_VALID = 0x1,
            ENTRY_CTRL_READ = 0x1 << 1,
            ENTRY_CTRL_NO_WRITE = 0x1 << 2,
            ENTRY_CTRL_ILLEGAL = 0x1 << 3,
            ENTRY_CTRL_LOG2_PAGE = 0x1f << 8,
            ENTRY_CTRL_FUNC = 0xff << 16,
        }
        ENTRY_KEY 0x1014 [128; 0x20] "tlb" "key of the page" {}
    }
}

/// Transmit rings.
pub(super) mod tx {
    use crate::bus::registers::registers;

    /// Kind of the block.
    pub(crate) const KIND: u32 = 6;
    /// Bytes in the block.
    pub(crate) const SIZE: usize = 0x800;
    registers! {
        /// Transmit rings.
        pub(crate) REGISTERS:
        BLOCK 0x0000 "tx" "what block this is" {
            BLOCK_KIND = 0xffff,
            BLOCK_VERSION = 0xff << 16,
        }
        NEXT 0x0004 "tx" "offset of the next block" {}
        RING_BASE 0x0100 [4; 0x40] "tx" "bus address of the descriptors" {}
        RING_BASE_HIGH 0x0104 [4; 0x40] "tx" "upper half of RING_BASE" {}
        RING_CTRL 0x0108 [4; 0x40] "tx" "control" {
            RING_CTRL_ENABLE = 0x1,
            RING_CTRL_LOG2_SIZE = 0x1f << 8,
            RING_CTRL_QUEUE = 0xff << 16,
        }
        RING_PRODUCER 0x010c [4; 0x40] "tx" "descriptors posted" {}
        RING_CONSUMER 0x0110 [4; 0x40] "tx" "descriptors done" {}
        RING_STATUS 0x0114 [4; 0x40] "tx" "status" {
            RING_STATUS_IDLE = 0x1,
            RING_STATUS_ERROR = 0x1 << 1,
            RING_STATUS_NO_EVENT = 0x1 << 2,
        }
        PACKETS 0x0400 [4; 0x20] "tx" "packets read and passed on" {}
        PACKETS_HIGH 0x0404 [4; 0x20] "tx" "upper half of PACKETS" {}
        BYTES 0x0408 [4; 0x20] "tx" "bytes of them" {}
        BYTES_HIGH 0x040c [4; 0x20] "tx" "upper half of BYTES" {}
        BAD 0x0410 [4; 0x20] "tx" "packets with inconsistent descriptors" {}
        BAD_HIGH 0x0414 [4; 0x20] "tx" "upper half of BAD" {}
        READ_FAILED 0x0418 [4; 0x20] "tx" "packets that could not be read" {}
        READ_FAILED_HIGH 0x041c [4; 0x20] "tx" "upper half of READ_FAILED" {}
    }
}

/// Lists of buffers.
pub(super) mod clop {
    use crate::bus::registers::registers;

    /// Kind of the block.
    pub(crate) const KIND: u32 = 7;
    /// Bytes in the block.
    pub(crate) const SIZE: usize = 0x8000;
    registers! {
        /// Lists of buffers.
        pub(crate) REGISTERS:
        BLOCK 0x0000 "clop" "what block this is" {
            BLOCK_KIND = 0xffff,
            BLOCK_VERSION = 0xff << 16,
        }
        NEXT 0x0004 "clop" "offset of the next block" {}
        LIST_BASE 0x2000 [128; 0x40] "clop" "virtual address of the first buffer" {}
        LIST_BASE_HIGH 0x2004 [128; 0x40] "clop" "upper half of LIST_BASE" {}
        LIST_SIZE 0x2008 [128; 0x40] "clop" "bytes of a buffer" {}
        LIST_COUNT 0x200c [128; 0x40] "clop" "buffers" {}
        LIST_MODE 0x2010 [128; 0x40] "clop" "how payloads lie" {
            LIST_MODE_BARE = 0x1,
            LIST_MODE_FUNC = 0x7 << 4,
            LIST_MODE_QUEUE = 0xff << 8,
            LIST_MODE_STRIDE = 0xffff << 16,
        }
        LIST_TIMEOUT 0x2014 [128; 0x40] "clop" "longest wait of a payload, in stamps (6.4 ns)" {}
        LIST_CTRL 0x2018 [128; 0x40] "clop" "control" {
            LIST_CTRL_ENABLE = 0x1,
            LIST_CTRL_FLUSH = 0x1 << 1,
        }
        LIST_RELEASED 0x201c [128; 0x40] "clop" "buffers returned" {}
        LIST_SERIAL 0x2020 [128; 0x40] "clop" "buffers announced" {}
        LIST_USED 0x2024 [128; 0x40] "clop" "bytes in the buffer in turn" { LIST_USED_VALUE = 0x7fff_ffff }
        LIST_SEQUENCE 0x2028 [128; 0x40] "clop" "number of the next payload" {}
        OUTCOME_PLACED 0x4000 [128; 0x40] "clop" "payloads placed" {}
        OUTCOME_PLACED_HIGH 0x4004 [128; 0x40] "clop" "upper half of OUTCOME_PLACED" {}
        OUTCOME_NO_BUFFER 0x4008 [128; 0x40] "clop" "payloads refused: the next buffer was not returned" {}
        OUTCOME_NO_BUFFER_HIGH 0x400c [128; 0x40] "clop" "upper half of OUTCOME_NO_BUFFER" {}
        OUTCOME_NO_EVENT 0x4010 [128; 0x40] "clop" "payloads refused: the event queue was full" {}
        OUTCOME_NO_EVENT_HIGH 0x4014 [128; 0x40] "clop" "upper half of OUTCOME_NO_EVENT" {}
        OUTCOME_OVERSIZE 0x4018 [128; 0x40] "clop" "payloads refused: longer than a buffer or the stride" {}
        OUTCOME_OVERSIZE_HIGH 0x401c [128; 0x40] "clop" "upper half of OUTCOME_OVERSIZE" {}
        OUTCOME_FAULT 0x4020 [128; 0x40] "clop" "payloads refused: no TLB entry covers their address" {}
        OUTCOME_FAULT_HIGH 0x4024 [128; 0x40] "clop" "upper half of OUTCOME_FAULT" {}
        OUTCOME_OFF 0x4028 [128; 0x40] "clop" "payloads refused: the list is not enabled" {}
        OUTCOME_OFF_HIGH 0x402c [128; 0x40] "clop" "upper half of OUTCOME_OFF" {}
        OUTCOME_MALFORMED 0x4030 [128; 0x40] "clop" "inconsistent containers" {}
        OUTCOME_MALFORMED_HIGH 0x4034 [128; 0x40] "clop" "upper half of OUTCOME_MALFORMED" {}
        OUTCOME_BAD_VERSION 0x4038 [128; 0x40] "clop" "containers of another version" {}
        OUTCOME_BAD_VERSION_HIGH 0x403c [128; 0x40] "clop" "upper half of OUTCOME_BAD_VERSION" {}
    }
}

/// Event queues.
pub(super) mod event {
    use crate::bus::registers::registers;

    /// Kind of the block.
    pub(crate) const KIND: u32 = 4;
    /// Bytes in the block.
    pub(crate) const SIZE: usize = 0x8000;
    registers! {
        /// Event queues.
        pub(crate) REGISTERS:
        BLOCK 0x0000 "event" "what block this is" {
            BLOCK_KIND = 0xffff,
            BLOCK_VERSION = 0xff << 16,
        }
        NEXT 0x0004 "event" "offset of the next block" {}
        QUEUE_BASE 0x4000 [256; 0x40] "event" "bus address of the records" {}
        QUEUE_BASE_HIGH 0x4004 [256; 0x40] "event" "upper half of QUEUE_BASE" {}
        QUEUE_CTRL 0x4008 [256; 0x40] "event" "control" {
            QUEUE_CTRL_ENABLE = 0x1,
            QUEUE_CTRL_MISALIGNED = 0x1 << 1,
            QUEUE_CTRL_LOG2_SIZE = 0x1f << 8,
        }
        QUEUE_RELEASED 0x400c [256; 0x40] "event" "records released" {}
        QUEUE_PRODUCED 0x4010 [256; 0x40] "event" "records written" {}
        QUEUE_COUNT 0x4014 [256; 0x40] "event" "events to an interrupt" { QUEUE_COUNT_VALUE = 0xffff }
        QUEUE_HOLD 0x4018 [256; 0x40] "event" "longest wait for an interrupt, core cycles" {}
        QUEUE_ARM 0x401c [256; 0x40] "event" "arms the interrupt" {}
    }
}

/// Port.
pub(super) mod port {
    use crate::bus::registers::registers;

    /// Kind of the block.
    pub(crate) const KIND: u32 = 8;
    /// Bytes in the block.
    pub(crate) const SIZE: usize = 0x2000;
    registers! {
        /// Port.
        pub(crate) REGISTERS:
        BLOCK 0x0000 "port" "what block this is" {
            BLOCK_KIND = 0xffff,
            BLOCK_VERSION = 0xff << 16,
            BLOCK_INSTANCE = 0xff << 24,
        }
        NEXT 0x0004 "port" "offset of the next block" {}
        MAC_CTRL 0x0008 "port" "MAC control" {
            MAC_CTRL_RX_ENABLE = 0x1,
            MAC_CTRL_TX_ENABLE = 0x1 << 1,
            MAC_CTRL_LOOP = 0x1 << 2,
            MAC_CTRL_PROMISCUOUS = 0x1 << 3,
            MAC_CTRL_MULTICAST = 0x1 << 4,
            MAC_CTRL_PAUSE = 0x1 << 5,
        }
        MAC_STATUS 0x000c "port" "MAC status" {
            MAC_STATUS_LINK = 0x1,
            MAC_STATUS_LOCAL_FAULT = 0x1 << 1,
            MAC_STATUS_REMOTE_FAULT = 0x1 << 2,
            MAC_STATUS_RX_IDLE = 0x1 << 3,
            MAC_STATUS_TX_IDLE = 0x1 << 4,
            MAC_STATUS_PAUSED = 0x1 << 5,
        }
        MAX_FRAME 0x0010 "port" "longest frame, B" { MAX_FRAME_VALUE = 0x3fff }
        MAC 0x0018 "port" "MAC address" {}
        MAC_HIGH 0x001c "port" "upper half of MAC" { MAC_HIGH_VALUE = 0xffff }
        IP 0x0020 "port" "IPv4 address" {}
        NET_CTRL 0x0024 "port" "what the port answers and checks" {
            NET_CTRL_ARP = 0x1,
            NET_CTRL_ECHO = 0x1 << 1,
            NET_CTRL_CHECKSUM = 0x1 << 2,
            NET_CTRL_CATCH_UDP = 0x1 << 4,
            NET_CTRL_CATCH_OTHER = 0x1 << 5,
        }
        DESTINATION_IP 0x0028 "port" "default destination" {}
        DESTINATION_PORTS 0x002c "port" "default ports" {
            DESTINATION_PORTS_DESTINATION = 0xffff,
            DESTINATION_PORTS_SOURCE = 0xffff << 16,
        }
        IP_SEND 0x0030 "port" "IPv4 header of what is sent" {
            IP_SEND_TTL = 0xff,
            IP_SEND_TOS = 0xff << 8,
        }
        ARP_CTRL 0x0034 "port" "ARP control" { ARP_CTRL_FLUSH = 0x1 << 8 }
        ARP_RETRY 0x0038 "port" "time until an address that was requested in vain is requested again, in 2^20 cycles (6.7 ms)" { ARP_RETRY_VALUE = 0xffff }
        ARP_EXPIRY 0x003c "port" "life of an ARP entry, in 2^20 cycles (6.7 ms)" { ARP_EXPIRY_VALUE = 0xffff }
        GEN_CTRL 0x0040 "port" "generator" {
            GEN_CTRL_START = 0x1,
            GEN_CTRL_STOP = 0x1 << 1,
        }
        GEN_STATUS 0x0044 "port" "generator's status" { GEN_STATUS_RUNNING = 0x1 }
        GEN_SIZE 0x0048 "port" "payload of a generated packet, B" { GEN_SIZE_VALUE = 0x3fff }
        GEN_COUNT 0x004c "port" "packets to generate" {}
        GEN_GAP 0x0050 "port" "cycles between generated packets (6.4 ns)" {}
        GEN_PORTS 0x0054 "port" "ports of generated packets" {
            GEN_PORTS_DESTINATION = 0xffff,
            GEN_PORTS_SOURCE = 0xffff << 16,
        }
        ARP_WAIT 0x0058 "port" "longest wait of a packet for the answer to an ARP request, cycles (6.4 ns)" {}
        PCS_CTRL 0x005c "port" "PCS control" {
            PCS_CTRL_PRBS31_TX = 0x1,
            PCS_CTRL_PRBS31_RX = 0x1 << 1,
        }
        PCS_STATUS 0x0060 "port" "PCS status" {
            PCS_STATUS_PRESENT = 0x1,
            PCS_STATUS_SIGNAL_OK = 0x1 << 1,
            PCS_STATUS_BLOCK_LOCK = 0x1 << 2,
            PCS_STATUS_HI_BER = 0x1 << 3,
        }
        STREAM 0x0200 [16; 0x4] "port" "a stream" {
            STREAM_PORT = 0xffff,
            STREAM_FORM = 0x3 << 16,
            STREAM_ENABLE = 0x1 << 31,
        }
        RX_FRAMES 0x0400 "port" "frames from the wire" {}
        RX_FRAMES_HIGH 0x0404 "port" "upper half of RX_FRAMES" {}
        RX_BYTES 0x0408 "port" "bytes of them, without preamble and FCS" {}
        RX_BYTES_HIGH 0x040c "port" "upper half of RX_BYTES" {}
        RX_FCS 0x0410 "port" "lost: wrong frame check sequence" {}
        RX_FCS_HIGH 0x0414 "port" "upper half of RX_FCS" {}
        RX_SYMBOL 0x0418 "port" "lost: an error character, or a frame without a valid end" {}
        RX_SYMBOL_HIGH 0x041c "port" "upper half of RX_SYMBOL" {}
        RX_RUNT 0x0420 "port" "lost: shorter than 64 B" {}
        RX_RUNT_HIGH 0x0424 "port" "upper half of RX_RUNT" {}
        RX_OVERSIZE 0x0428 "port" "lost: longer than `MAX_FRAME`" {}
        RX_OVERSIZE_HIGH 0x042c "port" "upper half of RX_OVERSIZE" {}
        RX_PAUSE 0x0430 "port" "pause frames, consumed by the MAC" {}
        RX_PAUSE_HIGH 0x0434 "port" "upper half of RX_PAUSE" {}
        DROP_ADDRESS 0x0438 "port" "lost: to another host or address" {}
        DROP_ADDRESS_HIGH 0x043c "port" "upper half of DROP_ADDRESS" {}
        DROP_MALFORMED 0x0440 "port" "lost: inconsistent lengths" {}
        DROP_MALFORMED_HIGH 0x0444 "port" "upper half of DROP_MALFORMED" {}
        DROP_CHECKSUM 0x0448 "port" "lost: wrong IPv4, ICMP or UDP checksum" {}
        DROP_CHECKSUM_HIGH 0x044c "port" "upper half of DROP_CHECKSUM" {}
        DROP_FRAGMENT 0x0450 "port" "lost: fragment of a datagram" {}
        DROP_FRAGMENT_HIGH 0x0454 "port" "upper half of DROP_FRAGMENT" {}
        DROP_UNSUPPORTED 0x0458 "port" "lost: a kind that neither the card nor the default list accepts" {}
        DROP_UNSUPPORTED_HIGH 0x045c "port" "upper half of DROP_UNSUPPORTED" {}
        DROP_MISS 0x0460 "port" "lost: UDP without a stream, and the default list does not accept it" {}
        DROP_MISS_HIGH 0x0464 "port" "upper half of DROP_MISS" {}
        DROP_ANSWER 0x0468 "port" "lost: ARP or ping, without space for the answer" {}
        DROP_ANSWER_HIGH 0x046c "port" "upper half of DROP_ANSWER" {}
        DROP_OVERFLOW 0x0470 "port" "lost: the receive fifo was full" {}
        DROP_OVERFLOW_HIGH 0x0474 "port" "upper half of DROP_OVERFLOW" {}
        ARP_FRAMES 0x0478 "port" "ARP, consumed by the card" {}
        ARP_FRAMES_HIGH 0x047c "port" "upper half of ARP_FRAMES" {}
        ECHO_FRAMES 0x0480 "port" "pings, answered by the card" {}
        ECHO_FRAMES_HIGH 0x0484 "port" "upper half of ECHO_FRAMES" {}
        TX_FRAMES 0x0488 "port" "frames sent" {}
        TX_FRAMES_HIGH 0x048c "port" "upper half of TX_FRAMES" {}
        TX_BYTES 0x0490 "port" "bytes of them, with padding, without preamble and FCS" {}
        TX_BYTES_HIGH 0x0494 "port" "upper half of TX_BYTES" {}
        TX_ABORTED 0x0498 "port" "frames ended with an error character" {}
        TX_ABORTED_HIGH 0x049c "port" "upper half of TX_ABORTED" {}
        TX_UNRESOLVED 0x04a0 "port" "packets lost: no neighbour for their destination" {}
        TX_UNRESOLVED_HIGH 0x04a4 "port" "upper half of TX_UNRESOLVED" {}
        TX_PAUSED 0x04a8 "port" "cycles (6.4 ns) in which a pause delayed a frame" {}
        TX_PAUSED_HIGH 0x04ac "port" "upper half of TX_PAUSED" {}
        GEN_PACKETS 0x04b0 "port" "packets generated" {}
        GEN_PACKETS_HIGH 0x04b4 "port" "upper half of GEN_PACKETS" {}
        TX_FAULT 0x04b8 "port" "frames discarded because of a link fault" {}
        TX_FAULT_HIGH 0x04bc "port" "upper half of TX_FAULT" {}
        PCS_BER 0x04c0 "port" "blocks received with an invalid header, while locked (ber_count)" {}
        PCS_BER_HIGH 0x04c4 "port" "upper half of PCS_BER" {}
        PCS_ERRORED_BLOCKS 0x04c8 "port" "blocks received as errors (errored_block_count)" {}
        PCS_ERRORED_BLOCKS_HIGH 0x04cc "port" "upper half of PCS_ERRORED_BLOCKS" {}
        PCS_PRBS31_ERRORS 0x04d0 "port" "wrong bits of the PRBS31 pattern received (test_pattern_error_count)" {}
        PCS_PRBS31_ERRORS_HIGH 0x04d4 "port" "upper half of PCS_PRBS31_ERRORS" {}
        PCS_DELETED 0x04d8 "port" "columns of idles or ordered sets deleted by the elastic buffer" {}
        PCS_DELETED_HIGH 0x04dc "port" "upper half of PCS_DELETED" {}
        PCS_INSERTED 0x04e0 "port" "words of idles inserted by the elastic buffer" {}
        PCS_INSERTED_HIGH 0x04e4 "port" "upper half of PCS_INSERTED" {}
        PCS_OVERFLOW 0x04e8 "port" "words lost: the elastic buffer was full" {}
        PCS_OVERFLOW_HIGH 0x04ec "port" "upper half of PCS_OVERFLOW" {}
        PCS_UNDERFLOW 0x04f0 "port" "times that the elastic buffer was empty" {}
        PCS_UNDERFLOW_HIGH 0x04f4 "port" "upper half of PCS_UNDERFLOW" {}
        PCS_TX_ERRORS 0x04f8 "port" "words of XGMII sent as a block of errors" {}
        PCS_TX_ERRORS_HIGH 0x04fc "port" "upper half of PCS_TX_ERRORS" {}
        ARP_IP 0x1000 [256; 0x10] "port" "IPv4 address of a neighbour" {}
        ARP_MAC 0x1008 [256; 0x10] "port" "MAC address of a neighbour, and its state" {}
        ARP_MAC_HIGH 0x100c [256; 0x10] "port" "upper half of ARP_MAC" {
            ARP_MAC_HIGH_MAC = 0xffff,
            ARP_MAC_HIGH_STATE = 0x3 << 16,
            ARP_MAC_HIGH_FIXED = 0x1 << 18,
        }
    }
}
