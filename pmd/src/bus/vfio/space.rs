//! DMA address space: one for all VFIO devices of this process, in which each region has its own
//! virtual address (identity mapping).

use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{fs, io};

use iommufd_bindings::{
    iommu_ioas_alloc, iommu_ioas_map, iommu_ioas_unmap,
    iommufd_ioas_map_flags_IOMMU_IOAS_MAP_FIXED_IOVA as FIXED,
    iommufd_ioas_map_flags_IOMMU_IOAS_MAP_READABLE as READABLE,
    iommufd_ioas_map_flags_IOMMU_IOAS_MAP_WRITEABLE as WRITEABLE,
};
use pollux_mempool::region::PageSize;
use pollux_mempool::{IovaMap, MemoryRegion};
use vfio_bindings::bindings::vfio::{
    VFIO_API_VERSION, VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE, VFIO_GROUP_FLAGS_VIABLE,
    VFIO_NOIOMMU_IOMMU, VFIO_TYPE1v2_IOMMU, vfio_device_attach_iommufd_pt, vfio_group_status,
    vfio_iommu_type1_dma_map, vfio_iommu_type1_dma_unmap,
};

use super::limits::Limits;
use super::{abi, error};
use crate::bus::BusError;

/// Translation of the devices' addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// By an IOMMU, for the groups of a container.
    Container,
    /// None: addresses are physical.
    Physical,
    /// By an IOMMU, for devices that are bound to an address space of /dev/iommu.
    Iommufd,
}

/// One address space.
pub(super) struct Space {
    file: OwnedFd,
    translation: Translation,
    /// Number of the address space in /dev/iommu.
    number: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    groups: Vec<Group>,
    mapped: Vec<Mapped>,
}

struct Group {
    path: PathBuf,
    file: OwnedFd,
    devices: usize,
}

struct Mapped {
    start: u64,
    users: usize,
}

impl Space {
    /// The address space of this process, shared by all its devices. `dev` is /dev, and `device` is
    /// the name of the requesting device.
    pub(super) fn shared(
        translation: Translation,
        dev: &Path,
        device: &str,
    ) -> Result<Arc<Self>, BusError> {
        static SHARED: Mutex<[Weak<Space>; 3]> = Mutex::new([const { Weak::new() }; 3]);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let [container, physical, iommufd] = &mut *shared;
        let slot = match translation {
            Translation::Container => container,
            Translation::Physical => physical,
            Translation::Iommufd => iommufd,
        };
        if let Some(space) = slot.upgrade() {
            return Ok(space);
        }
        let space = Arc::new(Self::open(translation, dev, device)?);
        *slot = Arc::downgrade(&space);
        Ok(space)
    }

    fn open(translation: Translation, dev: &Path, device: &str) -> Result<Self, BusError> {
        let path = match translation {
            Translation::Iommufd => dev.join("iommu"),
            _ => dev.join("vfio/vfio"),
        };
        let file = open(&path, device)?;
        let refused = |what: &str, error| error::system(device, what, error::OTHER_KERNEL, error);
        let mut number = 0;
        if translation == Translation::Iommufd {
            let mut argument = iommu_ioas_alloc::default();
            abi::IOAS_ALLOC
                .call(&file, &mut argument)
                .map_err(|error| refused("/dev/iommu gives out no address space", error))?;
            number = argument.out_ioas_id;
        } else {
            let version = abi::api_version(file.as_fd())
                .map_err(|error| refused("/dev/vfio/vfio is not VFIO's", error))?;
            if u32::try_from(version) != Ok(VFIO_API_VERSION) {
                let what = format!(
                    "the kernel's VFIO speaks version {version}, and this program 0: take the \
                     versions of both that fit"
                );
                return Err(error::wrong(device, what));
            }
        }
        Ok(Self {
            file,
            translation,
            number,
            state: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a group to the address space, once for all its devices. `not_viable` explains why a
    /// group is not available as a whole.
    pub(super) fn join(
        self: &Arc<Self>,
        path: &Path,
        device: &str,
        not_viable: impl FnOnce() -> BusError,
    ) -> Result<Member, BusError> {
        let mut state = self.lock();
        if let Some(group) = state.groups.iter_mut().find(|group| group.path == path) {
            group.devices += 1;
        } else {
            let file = open(path, device)?;
            let mut status = vfio_group_status::default();
            abi::GROUP_GET_STATUS
                .call(&file, &mut status)
                .map_err(|error| {
                    error::system(
                        device,
                        "its group tells nothing",
                        error::OTHER_KERNEL,
                        error,
                    )
                })?;
            if status.flags & VFIO_GROUP_FLAGS_VIABLE == 0 {
                return Err(not_viable());
            }
            abi::set_container(file.as_fd(), self.file.as_fd())
                .map_err(|error| error::set_iommu(device, error))?;
            // A container gets its IOMMU with its first group, and loses it with the last one.
            if state.groups.is_empty() {
                let interface = match self.translation {
                    Translation::Physical => VFIO_NOIOMMU_IOMMU,
                    _ => VFIO_TYPE1v2_IOMMU,
                };
                abi::set_iommu(self.file.as_fd(), interface)
                    .map_err(|error| error::set_iommu(device, error))?;
            }
            state.groups.push(Group {
                path: path.into(),
                file,
                devices: 1,
            });
        }
        Ok(Member {
            space: self.clone(),
            path: path.into(),
        })
    }

    /// Binds a device with its own device file.
    pub(super) fn bind(&self, device: BorrowedFd<'_>, token: Option<[u8; 16]>) -> io::Result<()> {
        abi::bind_iommufd(device, self.file.as_fd(), token)
    }

    /// Attaches a bound device to the address space.
    pub(super) fn attach(&self, device: BorrowedFd<'_>) -> io::Result<()> {
        let mut argument = vfio_device_attach_iommufd_pt {
            pt_id: self.number,
            ..Default::default()
        };
        abi::DEVICE_ATTACH_IOMMUFD_PT.call(device, &mut argument)
    }

    /// Maps a region at its own address, unless it is already mapped for another device. Without an
    /// IOMMU, returns its physical addresses.
    pub(super) fn map(&self, device: &str, region: &MemoryRegion) -> Result<IovaMap, BusError> {
        if self.translation == Translation::Physical {
            return physical(device, region);
        }
        let (start, len) = place(region);
        let mut state = self.lock();
        if let Some(mapped) = state.mapped.iter_mut().find(|m| m.start == start) {
            mapped.users += 1;
            return Ok(IovaMap::identity(region));
        }
        let limits = match self.translation {
            Translation::Iommufd => Limits::of_iommufd(self.file.as_fd(), self.number),
            _ => Limits::of_container(self.file.as_fd()),
        };
        limits
            .map_err(|error| {
                error::system(device, "the IOMMU's limits", error::OTHER_KERNEL, error)
            })?
            .check(device, start, len)?;
        self.map_new(start, len).map_err(|error| {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
            error::map(device, region.len(), locked(), limit.current, error)
        })?;
        let users = 1;
        state.mapped.push(Mapped { start, users });
        Ok(IovaMap::identity(region))
    }

    /// Page size with which a region can be mapped.
    pub(super) fn pages(&self) -> PageSize {
        match self.translation {
            // Also for rings: the kernel moves normal pages.
            Translation::Physical => PageSize::Mib2,
            Translation::Container | Translation::Iommufd => PageSize::Auto,
        }
    }

    fn map_new(&self, start: u64, len: u64) -> io::Result<()> {
        match self.translation {
            Translation::Iommufd => {
                let mut argument = iommu_ioas_map {
                    flags: FIXED | READABLE | WRITEABLE,
                    ioas_id: self.number,
                    user_va: start,
                    iova: start,
                    length: len,
                    ..Default::default()
                };
                abi::IOAS_MAP.call(&self.file, &mut argument)
            }
            Translation::Container => {
                let mut argument = vfio_iommu_type1_dma_map {
                    flags: VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
                    vaddr: start,
                    iova: start,
                    size: len,
                    ..Default::default()
                };
                abi::IOMMU_MAP_DMA.call(&self.file, &mut argument)
            }
            Translation::Physical => Ok(()),
        }
    }

    /// Ends the mapping of one device by [`map`](Self::map). Returns whether the IOMMU has removed
    /// the mapping, so that no device of the space can access the region any more.
    pub(super) fn unmap(&self, region: &MemoryRegion) -> bool {
        let (start, len) = place(region);
        let mut state = self.lock();
        let Some(mapped) = state.mapped.iter_mut().find(|m| m.start == start) else {
            return false; // No IOMMU: no mapping exists.
        };
        mapped.users -= 1;
        if mapped.users > 0 {
            return false;
        }
        state.mapped.retain(|m| m.start != start);
        // The kernel reports the number of unmapped bytes.
        let result = match self.translation {
            Translation::Iommufd => {
                let mut argument = iommu_ioas_unmap {
                    ioas_id: self.number,
                    iova: start,
                    length: len,
                    ..Default::default()
                };
                let result = abi::IOAS_UNMAP.call(&self.file, &mut argument);
                result.map(|()| argument.length)
            }
            Translation::Container => {
                let mut argument = vfio_iommu_type1_dma_unmap {
                    iova: start,
                    size: len,
                    ..Default::default()
                };
                let result = abi::IOMMU_UNMAP_DMA.call(&self.file, &mut argument);
                result.map(|()| argument.size)
            }
            Translation::Physical => return false,
        };
        match result {
            Ok(unmapped) => unmapped >= len,
            Err(error) => {
                tracing::error!("unmapping {len} bytes at {start:#x} from the IOMMU: {error}");
                false
            }
        }
    }
}

/// A device's share of its group; the last one to be dropped returns the group.
pub(super) struct Member {
    space: Arc<Space>,
    path: PathBuf,
}

impl Member {
    /// Opens a device of the group by its name.
    pub(super) fn device(&self, name: &CStr) -> io::Result<OwnedFd> {
        let state = self.space.lock();
        let group = state.groups.iter().find(|group| group.path == self.path);
        // It exists as long as `self`.
        let group = group.ok_or(io::ErrorKind::NotFound)?;
        abi::device_of(group.file.as_fd(), name)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.space.lock();
        let groups = &mut state.groups;
        if let Some(group) = groups.iter_mut().find(|group| group.path == self.path) {
            group.devices -= 1;
            if group.devices == 0 {
                groups.retain(|group| group.path != self.path);
            }
        }
    }
}

/// Address (for the CPU and for devices) and length of a region.
fn place(region: &MemoryRegion) -> (u64, u64) {
    (region.as_ptr().addr().get() as u64, region.len() as u64)
}

/// Physical addresses of a region.
fn physical(device: &str, region: &MemoryRegion) -> Result<IovaMap, BusError> {
    const NORMAL: usize = 4096;
    if region.page_size() == NORMAL {
        return Err(error::wrong(
            device,
            "without an IOMMU its memory must be of hugepages, which the kernel does not move: \
             scripts/hugepages",
        ));
    }
    IovaMap::physical(region).map_err(|error| error::wrong(device, error.to_string()))
}

/// Number of bytes that this process has locked.
fn locked() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    number.map_or(0, |kib: u64| kib * 1024)
}

/// Opens a file of /dev.
pub(super) fn open(path: &Path, device: &str) -> Result<OwnedFd, BusError> {
    let file = fs::File::options().read(true).write(true).open(path);
    file.map(OwnedFd::from)
        .map_err(|error| error::open(device, &path.display().to_string(), error))
}
