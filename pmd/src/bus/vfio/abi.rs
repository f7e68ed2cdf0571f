//! VFIO and iommufd requests: those of linux/vfio.h and linux/iommufd.h with their argument types.
//!
//! Requests that map memory for a device belong to [`Space`](super::space::Space) alone.

use std::ffi::{CStr, c_int};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use iommufd_bindings::{
    IOMMUFD_CMD_IOAS_ALLOC, IOMMUFD_CMD_IOAS_IOVA_RANGES, IOMMUFD_CMD_IOAS_MAP,
    IOMMUFD_CMD_IOAS_UNMAP, iommu_ioas_alloc, iommu_ioas_iova_ranges, iommu_ioas_map,
    iommu_ioas_unmap, iommu_iova_range,
};
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_DEVICE_BIND_FLAG_TOKEN, VFIO_TYPE, vfio_device_attach_iommufd_pt,
    vfio_device_bind_iommufd, vfio_device_info, vfio_group_status, vfio_iommu_type1_dma_map,
    vfio_iommu_type1_dma_unmap, vfio_irq_info, vfio_region_info,
};

/// A request whose argument is a `T`.
pub(super) struct Request<T: ?Sized> {
    number: u32,
    argument: PhantomData<fn(&mut T)>,
}

impl<T: ?Sized> Request<T> {
    /// # Safety
    /// The request's argument is a struct that begins with its own size, as a `u32`. The kernel
    /// writes nothing outside that size, and leaves only integers there. `T` is such a struct, or a
    /// slice of words.
    const unsafe fn new(number: u32) -> Self {
        let argument = PhantomData;
        Self { number, argument }
    }

    /// Calls the kernel with `argument`, whose size is filled in here.
    pub(super) fn call(&self, file: impl AsFd, argument: &mut T) -> io::Result<()> {
        let size = size_of_val(argument);
        if size < size_of::<u32>() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let size = u32::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        let argument = (&raw mut *argument).cast::<u32>();
        // SAFETY: by the contract of `new` the argument begins with a `u32`, so it has room for
        // one.
        unsafe { argument.write(size) };
        // SAFETY: by the contract of `new` the kernel respects the size at the argument's start.
        unsafe { ioctl(file.as_fd(), self.number, argument as libc::c_ulong) }.map(drop)
    }
}

const fn vfio(n: u32) -> u32 {
    (VFIO_TYPE as u32) << 8 | (VFIO_BASE + n)
}

const fn iommufd(n: u32) -> u32 {
    (VFIO_TYPE as u32) << 8 | n
}

macro_rules! requests {
    ($($name:ident: $argument:ty = $number:expr;)*) => {$(
        // SAFETY: linux/vfio.h and linux/iommufd.h define it so: the struct begins with `argsz` or
        // `size`, which the kernel checks before it accesses anything behind it.
        pub(super) const $name: Request<$argument> = unsafe { Request::new($number) };
    )*};
}

requests! {
    GROUP_GET_STATUS: vfio_group_status = vfio(3);
    DEVICE_GET_INFO: vfio_device_info = vfio(7);
    DEVICE_GET_REGION_INFO: vfio_region_info = vfio(8);
    DEVICE_GET_IRQ_INFO: vfio_irq_info = vfio(9);
    DEVICE_SET_IRQS: [u32] = vfio(10);
    IOMMU_GET_INFO: [u32] = vfio(12);
    IOMMU_MAP_DMA: vfio_iommu_type1_dma_map = vfio(13);
    IOMMU_UNMAP_DMA: vfio_iommu_type1_dma_unmap = vfio(14);
    DEVICE_ATTACH_IOMMUFD_PT: vfio_device_attach_iommufd_pt = vfio(19);
    IOAS_ALLOC: iommu_ioas_alloc = iommufd(IOMMUFD_CMD_IOAS_ALLOC);
    IOAS_MAP: iommu_ioas_map = iommufd(IOMMUFD_CMD_IOAS_MAP);
    IOAS_UNMAP: iommu_ioas_unmap = iommufd(IOMMUFD_CMD_IOAS_UNMAP);
}

/// Binds a device with its own device file to an iommufd; `token` is that of virtual functions.
pub(super) fn bind_iommufd(
    device: BorrowedFd<'_>,
    iommufd: BorrowedFd<'_>,
    token: Option<[u8; 16]>,
) -> io::Result<()> {
    let mut argument = vfio_device_bind_iommufd {
        argsz: size_of::<vfio_device_bind_iommufd>() as u32,
        iommufd: iommufd.as_raw_fd(),
        ..Default::default()
    };
    if let Some(token) = &token {
        argument.flags = VFIO_DEVICE_BIND_FLAG_TOKEN;
        argument.token_uuid_ptr = token.as_ptr() as u64;
    }
    // SAFETY: the kernel writes the struct and reads the 16 bytes of a token, both of which live
    // across the call.
    unsafe { ioctl(device, vfio(18), &raw mut argument as libc::c_ulong) }.map(drop)
}

/// The address ranges that all devices of an address space can use, as many as fit `ranges`;
/// returns the number of ranges, and their alignment.
pub(super) fn iova_ranges(
    file: BorrowedFd<'_>,
    space: u32,
    ranges: &mut [iommu_iova_range],
) -> io::Result<(usize, u64)> {
    let mut argument = iommu_ioas_iova_ranges {
        size: size_of::<iommu_ioas_iova_ranges>() as u32,
        ioas_id: space,
        num_iovas: u32::try_from(ranges.len()).unwrap_or(u32::MAX),
        allowed_iovas: ranges.as_mut_ptr() as u64,
        ..Default::default()
    };
    let number = iommufd(IOMMUFD_CMD_IOAS_IOVA_RANGES);
    // SAFETY: the kernel writes the struct, which lives across the call, and at most as many ranges
    // as the initial `num_iovas`, which is their number.
    let result = unsafe { ioctl(file, number, &raw mut argument as libc::c_ulong) };
    match result {
        // More ranges exist than fit: the kernel has reported the number.
        Err(error) if error.raw_os_error() != Some(libc::EMSGSIZE) => Err(error),
        _ => Ok((argument.num_iovas as usize, argument.out_iova_alignment)),
    }
}

/// Version of a container's interface.
pub(super) fn api_version(container: BorrowedFd<'_>) -> io::Result<c_int> {
    // SAFETY: VFIO_GET_API_VERSION takes no argument.
    unsafe { ioctl(container, vfio(0), 0) }
}

/// Selects the IOMMU interface of this number for a container that has a group.
pub(super) fn set_iommu(container: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    // SAFETY: VFIO_SET_IOMMU takes a number.
    unsafe { ioctl(container, vfio(2), interface.into()) }.map(drop)
}

/// Adds a group to a container.
pub(super) fn set_container(group: BorrowedFd<'_>, container: BorrowedFd<'_>) -> io::Result<()> {
    let container = container.as_raw_fd();
    // SAFETY: VFIO_GROUP_SET_CONTAINER reads one `int`, which lives across the call.
    unsafe { ioctl(group, vfio(4), &raw const container as libc::c_ulong) }.map(drop)
}

/// Opens a device of a group by its name.
pub(super) fn device_of(group: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: VFIO_GROUP_GET_DEVICE_FD reads a string up to its terminating zero.
    let file = unsafe { ioctl(group, vfio(6), name.as_ptr() as libc::c_ulong) }?;
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Resets a device.
pub(super) fn reset(device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: VFIO_DEVICE_RESET takes no argument.
    unsafe { ioctl(device, vfio(11), 0) }.map(drop)
}

/// # Safety
/// `argument` has the type that the request of this number takes; what it points to lives across
/// the call, and the kernel leaves only values there that are valid for its type.
unsafe fn ioctl(file: BorrowedFd<'_>, number: u32, argument: libc::c_ulong) -> io::Result<c_int> {
    // SAFETY: by the caller's promise.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), number.into(), argument) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
