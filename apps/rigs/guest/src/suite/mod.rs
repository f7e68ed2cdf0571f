//! The tests.

mod filters;
mod forward;
mod frames;
mod kernel;
mod life;
mod out_of_tree;
mod refusals;
mod sriov;
mod trespass;
mod trigger;
mod vfio;

pub(crate) use self::filters::FILTERS;
pub(crate) use self::forward::FORWARD;
pub(crate) use self::frames::{FRAMES, FULL, LARGE_PAGE, QUEUES};
pub(crate) use self::kernel::{KERNEL, OFFLOAD};
pub(crate) use self::life::{LIFE, LINK, OVERRUN, SLEEP, UNPLUG};
pub(crate) use self::out_of_tree::OUT_OF_TREE;
pub(crate) use self::refusals::{NO_IOMMU, OWN_FILES, REFUSALS, UNPROTECTED};
pub(crate) use self::sriov::SRIOV;
pub(crate) use self::trigger::TRIGGER;
pub(crate) use self::vfio::{DEVICE, FUNCTIONS};
