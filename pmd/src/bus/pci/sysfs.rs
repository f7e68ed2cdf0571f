//! The kernel's view of the machine, below a root that a test replaces.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Most bytes that are read of an attribute: one page is all that the kernel shows.
const LONGEST: u64 = 4096;

/// Set to Y by whoever accepts that VFIO hands out devices that no IOMMU holds back, which can then
/// write anywhere in memory.
pub const ALLOW_NO_IOMMU: &str = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

/// A folder that is laid out as /sys is.
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
}

/// This machine's.
impl Default for Sysfs {
    fn default() -> Self {
        Self::at("/sys")
    }
}

impl Sysfs {
    /// The one below `root`.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where it has something.
    #[must_use]
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// Whether the kernel has a PCI driver of that name.
    #[must_use]
    pub fn has_driver(&self, name: &str) -> bool {
        !name.contains('/') && self.path("bus/pci/drivers").join(name).exists()
    }

    /// Whether there is a unit that translates the addresses of devices.
    #[must_use]
    pub fn has_iommu(&self) -> bool {
        let any = |folder| names(&self.path(folder)).next().is_some();
        any("kernel/iommu_groups") || any("class/iommu")
    }

    /// Whether VFIO may hand out devices that no IOMMU holds back.
    #[must_use]
    pub fn allows_no_iommu(&self) -> bool {
        let path = self.path("module/vfio/parameters/enable_unsafe_noiommu_mode");
        text(&path).is_some_and(|text| text == "Y")
    }
}

/// The text of an attribute, without white space around it.
pub(super) fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// An attribute as a number.
pub(super) fn number<T: FromStr>(path: &Path) -> Option<T> {
    text(path)?.parse().ok()
}

/// An attribute as a number in hexadecimal: `0x8086`.
pub(super) fn hex(path: &Path) -> Option<u32> {
    u32::from_str_radix(text(path)?.trim_start_matches("0x"), 16).ok()
}

/// The last part of what a symbolic link points to: the name of a driver, or of a group.
pub(super) fn link(path: &Path) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

/// The names in a folder; none where there is no such folder.
pub(super) fn names(path: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}
