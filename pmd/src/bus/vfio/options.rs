//! Options for opening a VFIO device.

use super::token::VfToken;

/// Options for opening a VFIO device.
#[derive(Clone, Debug, Default)]
pub struct VfioOptions {
    /// Accept a device without an IOMMU: it can then write anywhere in memory.
    pub no_iommu: bool,
    /// The token with which a virtual function and its physical function are opened, where programs
    /// use both.
    pub vf_token: Option<VfToken>,
}
