//! Offsets and bits that the parts of the model share.

/// The virtual functions' mailbox control, as the physical function would see them if it could.
pub(super) const V2PMAILBOX: usize = 0x0c40;
/// Where a virtual function's vector of the mailbox is kept: an offset that is not otherwise used.
pub(super) const VTIVAR_MISC: usize = 0x11720;
/// Statistics of pool `n` are 0x100 bytes apart.
pub(super) const POOL_STATISTICS: usize = 0x10000;

/// Registers of a queue, from its first one.
pub(super) mod queue {
    pub(in super::super) const TAIL: usize = 0x18;
    pub(in super::super) const CONTROL: usize = 0x28;
    pub(in super::super) const LEN: usize = 0x08;
    pub(in super::super) const SPLIT: usize = 0x0c;
    pub(in super::super) const HEAD: usize = 0x10;
    pub(in super::super) const DROPPED: usize = 0x30;
    pub(in super::super) const ENABLED: u32 = 1 << 25;
}

/// Bits of a virtual function's mailbox control.
pub(super) mod mailbox {
    pub(in super::super) const SENT: u32 = 1 << 0;
    pub(in super::super) const ACKNOWLEDGED: u32 = 1 << 1;
    pub(in super::super) const VF_HAS_BUFFER: u32 = 1 << 2;
    pub(in super::super) const PF_HAS_BUFFER: u32 = 1 << 3;
    pub(in super::super) const PF_SENT: u32 = 1 << 4;
    pub(in super::super) const PF_ACKNOWLEDGED: u32 = 1 << 5;
    pub(in super::super) const PF_RESETS: u32 = 1 << 6;
    pub(in super::super) const PF_RESET_DONE: u32 = 1 << 7;
    pub(in super::super) const CLEARED_BY_READING: u32 = PF_SENT | PF_ACKNOWLEDGED | PF_RESET_DONE;
}
