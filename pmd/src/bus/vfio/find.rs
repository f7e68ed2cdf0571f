//! Finds the device file of a device, and obstacles, as far as sysfs shows them.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use super::error;
use super::options::VfioOptions;
use crate::bus::BusError;
use crate::bus::pci::{Address, Function, Sysfs};

/// Interface by which the kernel hands out a device.
#[derive(Debug, PartialEq)]
pub(super) enum DeviceFile {
    /// Its own device file, with /dev/iommu as the IOMMU interface (Linux 6.6 and later).
    Own(PathBuf),
    /// Its group, with a container as the IOMMU interface.
    Group {
        /// The group's file.
        path: PathBuf,
        /// Whether it is without an IOMMU.
        no_iommu: bool,
    },
}

/// Finds a device that is bound to VFIO; `dev` is /dev.
pub(super) fn find(
    sysfs: &Sysfs,
    dev: &Path,
    address: Address,
    options: &VfioOptions,
) -> Result<(Function, DeviceFile), BusError> {
    let name = address.to_string();
    let function = sysfs
        .function(address)
        .ok_or_else(|| error::no_such_device(&name))?;
    if function.group.is_none() {
        return Err(if !options.no_iommu {
            error::no_iommu(&name)
        } else if !sysfs.allows_no_iommu() {
            error::no_iommu_not_allowed(&name)
        } else {
            error::not_bound(&name, function.driver.as_deref())
        });
    }
    if !function.is_on_vfio() {
        return Err(if sysfs.has_driver("vfio-pci") {
            error::not_bound(&name, function.driver.as_deref())
        } else {
            error::no_module(&name)
        });
    }
    let unprotected = function.has_no_iommu();
    if unprotected && !options.no_iommu {
        return Err(error::no_iommu_not_asked(&name));
    }
    let own = function
        .vfio_device()
        .map(|own| dev.join("vfio/devices").join(own));
    let prefix = if unprotected { "noiommu-" } else { "" };
    let group = function.group.unwrap_or_default();
    let group = dev.join(format!("vfio/{prefix}{group}"));
    // Older kernels accept a token with a group only: vfio_df_ioctl_bind_iommufd had no flags.
    let takes_group = options.vf_token.is_some() && group.exists();
    let device_file = match own {
        // Group files and device files may have different permissions, above all in a container.
        Some(own) if !takes_group && opens(&own) && opens(&dev.join("iommu")) => {
            DeviceFile::Own(own)
        }
        _ => DeviceFile::Group {
            path: group,
            no_iommu: unprotected,
        },
    };
    Ok((function, device_file))
}

/// Whether a file exists and may be opened.
fn opens(path: &Path) -> bool {
    OpenOptions::new().read(true).write(true).open(path).is_ok()
}
