//! How a device is to be opened.

use super::token::VfToken;

/// How a device is to be opened.
#[derive(Clone, Debug, Default)]
pub struct VfioOptions {
    /// Accept that no IOMMU holds the device back: it can then write anywhere in memory.
    pub no_iommu: bool,
    /// The token that a virtual function and its physical function are both opened with, where
    /// programs have both.
    pub vf_token: Option<VfToken>,
}
