//! Pages of a rig's memory.

/// An entry of the TLB.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Offset of its virtual address from the one of the rig's memory.
    pub virt: u64,
    /// Offset of its bytes in the memory.
    pub at: u64,
    /// It has 2^n bytes.
    pub log2: u32,
    /// The function that may use it, and its key.
    pub func: u32,
    /// The key of accesses that may use it.
    pub key: u32,
    /// The card may write it.
    pub writable: bool,
}

impl Page {
    /// A page that lists may write.
    #[must_use]
    pub fn new(virt: u64, at: u64, log2: u32) -> Self {
        Self {
            virt,
            at,
            log2,
            func: 0,
            key: 0,
            writable: true,
        }
    }
}
