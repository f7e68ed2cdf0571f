//! Access to sysfs below a root that tests can replace.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Maximum size of an attribute: the kernel shows one page at most.
const LONGEST: u64 = 4096;

/// Set to Y to accept that VFIO hands out devices without an IOMMU, which can then write anywhere
/// in memory.
pub const ALLOW_NO_IOMMU: &str = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

/// A folder with the layout of /sys.
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
}

/// The machine's own /sys.
impl Default for Sysfs {
    fn default() -> Self {
        Self::at("/sys")
    }
}

impl Sysfs {
    /// A tree below `root`.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// A path in the tree.
    #[must_use]
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// Whether the kernel has a PCI driver of that name.
    #[must_use]
    pub fn has_driver(&self, name: &str) -> bool {
        !name.contains('/') && self.path("bus/pci/drivers").join(name).exists()
    }

    /// Whether the machine has an active IOMMU.
    #[must_use]
    pub fn has_iommu(&self) -> bool {
        let any = |folder| names(&self.path(folder)).next().is_some();
        any("kernel/iommu_groups") || any("class/iommu")
    }

    /// Whether VFIO may hand out devices without an IOMMU.
    #[must_use]
    pub fn allows_no_iommu(&self) -> bool {
        let path = self.path("module/vfio/parameters/enable_unsafe_noiommu_mode");
        text(&path).is_some_and(|text| text == "Y")
    }
}

/// The text of an attribute, trimmed.
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

/// The last part of a symbolic link's target: the name of a driver, or of a group.
pub(super) fn link(path: &Path) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

/// The names in a folder; empty if the folder does not exist.
pub(super) fn names(path: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}
