// Made by scripts/regen from hw/rdl: do not edit.

//! The card's registers. Offsets are from the start of a block; where blocks are, the card says.
//! `hw/docs/registers.md` has them with all their words.

pub(super) use super::memory_registers::{clop, event, port, tlb, tx};

/// Card.
pub(super) mod card {
    use crate::bus::registers::registers;

    /// Kind of the block.
    pub(crate) const KIND: u32 = 1;
    /// Bytes in the block.
    pub(crate) const SIZE: usize = 0x80;
    registers! {
        /// Card.
        pub(crate) REGISTERS:
        BLOCK 0x0000 "card" "what block this is" {
            BLOCK_KIND = 0xffff,
            BLOCK_VERSION = 0xff << 16,
        }
        NEXT 0x0004 "card" "offset of the next block" {}
        MAGIC 0x0008 "card" "magic number" {}
        VERSION 0x000c "card" "version of the register map" {
            VERSION_MINOR = 0xffff,
            VERSION_MAJOR = 0xffff << 16,
        }
        GIT_HASH 0x0010 [5; 0x4] "card" "commit that the gateware was built from" {}
        HAS 0x0024 "card" "how many there are" {
            HAS_PORTS = 0xff,
            HAS_STREAMS = 0xff << 8,
            HAS_TX_RINGS = 0xff << 24,
        }
        ENTRIES 0x0028 "card" "how many entries there are" {
            ENTRIES_TLB = 0xffff,
            ENTRIES_ARP = 0xffff << 16,
        }
        SIZES 0x002c "card" "sizes" {
            SIZES_RX_FIFO = 0xffff,
            SIZES_READ_TAGS = 0xff << 16,
            SIZES_FUNCTIONS = 0xff << 24,
        }
        SCRATCH 0x0030 "card" "scratch" {}
        CTRL 0x0034 "card" "control" { CTRL_RESET = 0x1 }
        STATUS 0x0038 "card" "status" {
            STATUS_RESETTING = 0x1,
            STATUS_NET = 0x1 << 1,
        }
        FLAGS 0x003c "card" "flags" { FLAGS_NET_LOST = 0x1 }
        CORE_KHZ 0x0040 "card" "clock of the core, kHz" {}
        NET_KHZ 0x0044 "card" "clock of the ports and of stamps, kHz" {}
        STAMP 0x0048 "card" "stamp counter" {}
        STAMP_HIGH 0x004c "card" "upper half of STAMP" {}
        FUNCTION 0x0050 "card" "function" { FUNCTION_VALUE = 0xff }
        EVENT_QUEUES 0x0054 "card" "event queues" { EVENT_QUEUES_VALUE = 0xffff }
    }
}

/// Host bus.
pub(super) mod host {
    use crate::bus::registers::registers;

    /// Kind of the block.
    pub(crate) const KIND: u32 = 2;
    /// Bytes in the block.
    pub(crate) const SIZE: usize = 0x200;
    registers! {
        /// Host bus.
        pub(crate) REGISTERS:
        BLOCK 0x0000 "host" "what block this is" {
            BLOCK_KIND = 0xffff,
            BLOCK_VERSION = 0xff << 16,
        }
        NEXT 0x0004 "host" "offset of the next block" {}
        CTRL 0x0008 "host" "control" { CTRL_QUIESCE = 0x1 }
        STATUS 0x000c "host" "status" {
            STATUS_IDLE = 0x1,
            STATUS_BUS_MASTER = 0x1 << 1,
            STATUS_MSIX = 0x1 << 2,
            STATUS_MAX_PAYLOAD = 0x7 << 4,
            STATUS_MAX_READ = 0x7 << 8,
        }
        TIMEOUT 0x0010 "host" "completion timeout, core cycles" {}
        QUARANTINE 0x0014 "host" "rest of a failed tag, core cycles" {}
        WRITES 0x0100 "host" "writes sent" {}
        WRITES_HIGH 0x0104 "host" "upper half of WRITES" {}
        READS 0x0108 "host" "read requests sent" {}
        READS_HIGH 0x010c "host" "upper half of READS" {}
        WR_DISCARDED 0x0110 "host" "writes discarded because bus mastering was off" {}
        WR_DISCARDED_HIGH 0x0114 "host" "upper half of WR_DISCARDED" {}
        RD_TIMEOUT 0x0118 "host" "reads without completion in time" {}
        RD_TIMEOUT_HIGH 0x011c "host" "upper half of RD_TIMEOUT" {}
        RD_UNSUPPORTED 0x0120 "host" "reads answered with unsupported request" {}
        RD_UNSUPPORTED_HIGH 0x0124 "host" "upper half of RD_UNSUPPORTED" {}
        RD_ABORT 0x0128 "host" "reads answered with completer abort" {}
        RD_ABORT_HIGH 0x012c "host" "upper half of RD_ABORT" {}
        RD_POISONED 0x0130 "host" "reads answered with poisoned data" {}
        RD_POISONED_HIGH 0x0134 "host" "upper half of RD_POISONED" {}
        RD_UNEXPECTED 0x0138 "host" "unexpected completions" {}
        RD_UNEXPECTED_HIGH 0x013c "host" "upper half of RD_UNEXPECTED" {}
        INTERRUPTS 0x0140 "host" "interrupts sent" {}
        INTERRUPTS_HIGH 0x0144 "host" "upper half of INTERRUPTS" {}
        EVENTS_DISCARDED 0x0148 "host" "event records discarded: their queue was disabled, or its consumer withdrew space" {}
        EVENTS_DISCARDED_HIGH 0x014c "host" "upper half of EVENTS_DISCARDED" {}
        REFUSED 0x0150 "host" "register accesses refused: the register is another function's, no block is at the address, or it is in reset or without its clock; or the request is not supported (a BAR or a function that the card does not have, poisoned data, more than 64 bytes)" {}
        REFUSED_HIGH 0x0154 "host" "upper half of REFUSED" {}
        RD_DISCARDED 0x0158 "host" "reads not requested because bus mastering was off" {}
        RD_DISCARDED_HIGH 0x015c "host" "upper half of RD_DISCARDED" {}
    }
}

/// Functions.
pub(super) mod functions {
    use crate::bus::registers::registers;

    /// Kind of the block.
    pub(crate) const KIND: u32 = 10;
    /// Bytes in the block.
    pub(crate) const SIZE: usize = 0x100;
    registers! {
        /// Functions.
        pub(crate) REGISTERS:
        BLOCK 0x0000 "functions" "what block this is" {
            BLOCK_KIND = 0xffff,
            BLOCK_VERSION = 0xff << 16,
        }
        NEXT 0x0004 "functions" "offset of the next block" {}
        PORTS 0x0008 "functions" "owners of the ports" {
            PORTS_PORT0 = 0x7,
            PORTS_PORT1 = 0x7 << 4,
            PORTS_PORT2 = 0x7 << 8,
            PORTS_PORT3 = 0x7 << 12,
        }
        PAGES 0x0010 "functions" "owners of the TLB's entries" {
            PAGES_GROUP0 = 0x7,
            PAGES_GROUP1 = 0x7 << 4,
            PAGES_GROUP2 = 0x7 << 8,
            PAGES_GROUP3 = 0x7 << 12,
            PAGES_GROUP4 = 0x7 << 16,
            PAGES_GROUP5 = 0x7 << 20,
            PAGES_GROUP6 = 0x7 << 24,
            PAGES_GROUP7 = 0x7 << 28,
        }
        FUNCTION_CTRL 0x0040 [8; 0x8] "functions" "control" { FUNCTION_CTRL_RESET = 0x1 }
        FUNCTION_STATUS 0x0044 [8; 0x8] "functions" "status" {
            FUNCTION_STATUS_RESETTING = 0x1,
            FUNCTION_STATUS_BUS_MASTER = 0x1 << 1,
            FUNCTION_STATUS_MSIX = 0x1 << 2,
        }
        FAULT_CTRL 0x0020 [8; 0x4] "functions" "TLB faults" {
            FAULT_CTRL_EVENT_FAULT = 0x1,
            FAULT_CTRL_QUEUE = 0xff << 8,
        }
        QUEUE_OWNERS 0x0080 [32; 0x4] "functions" "owners of eight event queues" {
            QUEUE_OWNERS_QUEUE0 = 0x7,
            QUEUE_OWNERS_QUEUE1 = 0x7 << 4,
            QUEUE_OWNERS_QUEUE2 = 0x7 << 8,
            QUEUE_OWNERS_QUEUE3 = 0x7 << 12,
            QUEUE_OWNERS_QUEUE4 = 0x7 << 16,
            QUEUE_OWNERS_QUEUE5 = 0x7 << 20,
            QUEUE_OWNERS_QUEUE6 = 0x7 << 24,
            QUEUE_OWNERS_QUEUE7 = 0x7 << 28,
        }
    }
}

/// Timing.
pub(super) mod timing {
    use crate::bus::registers::registers;

    /// Kind of the block.
    pub(crate) const KIND: u32 = 3;
    /// Bytes in the block.
    pub(crate) const SIZE: usize = 0x200;
    registers! {
        /// Timing.
        pub(crate) REGISTERS:
        BLOCK 0x0000 "timing" "what block this is" {
            BLOCK_KIND = 0xffff,
            BLOCK_VERSION = 0xff << 16,
        }
        NEXT 0x0004 "timing" "offset of the next block" {}
        CTRL 0x0008 "timing" "control" {
            CTRL_FROM_CLOCK = 0x1,
            CTRL_SET_ON_START = 0x1 << 1,
            CTRL_EVENT_BURST = 0x1 << 2,
            CTRL_EVENT_TRIGGER = 0x1 << 3,
            CTRL_EVENT_FLAG = 0x1 << 4,
            CTRL_QUEUE = 0xff << 8,
        }
        FLAGS 0x000c "timing" "flags" {
            FLAGS_UNEXPECTED_START = 0x1,
            FLAGS_UNEXPECTED_END = 0x1 << 1,
            FLAGS_EARLY = 0x1 << 2,
            FLAGS_LOST = 0x1 << 3,
            FLAGS_EVENT = 0x1 << 4,
        }
        PERIOD 0x0010 "timing" "period of the external clock" {}
        WATCH 0x0014 "timing" "watch on the external clock" {
            WATCH_EXPECT = 0xffff,
            WATCH_TOLERANCE = 0xffff << 16,
        }
        BURSTS 0x0018 "timing" "bursts since the reset" {}
        STATUS 0x001c "timing" "status" {
            STATUS_VALID = 0x1,
            STATUS_BURST = 0x1 << 1,
        }
        NOW 0x0020 "timing" "time stamp now, ns" {}
        NOW_HIGH 0x0024 "timing" "upper half of NOW" {}
        SET 0x0028 "timing" "sets the time stamp, ns" {}
        SET_HIGH 0x002c "timing" "upper half of SET" {}
        PRESET 0x0030 "timing" "time stamp at a start of burst, ns" {}
        PRESET_HIGH 0x0034 "timing" "upper half of PRESET" {}
        START 0x0038 "timing" "time stamp at the last start of burst, before it was set" {}
        START_HIGH 0x003c "timing" "upper half of START" {}
        END 0x0040 "timing" "time stamp at the last end of burst" {}
        END_HIGH 0x0044 "timing" "upper half of END" {}
        TRIGGER 0x0048 "timing" "time stamp at the last trigger" {}
        TRIGGER_HIGH 0x004c "timing" "upper half of TRIGGER" {}
        CLOCKS 0x0100 "timing" "external clocks" {}
        CLOCKS_HIGH 0x0104 "timing" "upper half of CLOCKS" {}
        TRIGGERS 0x0108 "timing" "triggers" {}
        TRIGGERS_HIGH 0x010c "timing" "upper half of TRIGGERS" {}
        EARLY 0x0110 "timing" "early external clocks" {}
        EARLY_HIGH 0x0114 "timing" "upper half of EARLY" {}
        LOST 0x0118 "timing" "missing external clocks" {}
        LOST_HIGH 0x011c "timing" "upper half of LOST" {}
        UNPAIRED 0x0120 "timing" "starts and ends of burst without the other" {}
        UNPAIRED_HIGH 0x0124 "timing" "upper half of UNPAIRED" {}
        EVENTS_LOST 0x0128 "timing" "events that did not fit their queue" {}
        EVENTS_LOST_HIGH 0x012c "timing" "upper half of EVENTS_LOST" {}
    }
}
