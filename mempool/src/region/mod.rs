//! Memory that devices can be given: pinned, placed, shareable by file descriptor.

mod error;
mod guard;
mod pages;
mod shortage;
mod span;
mod sys;

use core::fmt;
use core::ptr::NonNull;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::SealFlags;
use rustix::mm::Advice;
use rustix::process::Resource;

pub use error::RegionError;
pub use guard::BusErrorGuard;
pub use pages::PageSize;
pub(crate) use pages::{BASE_PAGE, HUGE_PAGE};
use shortage::Shortage;
pub use shortage::tell_shortage;
use span::{Span, create};
pub(crate) use sys::available_memory;

/// Whether the kernel may ever take the pages away. Hugepages always stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lock {
    /// Lock if allowed, else log a warning that names the remedy.
    #[default]
    Try,
    /// Fail if the pages cannot be locked.
    Require,
}

/// Who can touch the memory. So far the host processor; memory of a graphics processor will be
/// a kind of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Ordinary memory of this machine.
    Host,
}

/// Says how a [`MemoryRegion`] shall be; made by [`MemoryRegion::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing is mapped before `build`"]
pub struct Builder {
    len: usize,
    pages: PageSize,
    numa_node: Option<u32>,
    lock: Lock,
    low: bool,
}

impl Builder {
    /// The page size; [`PageSize::Auto`] unless said.
    pub fn pages(mut self, pages: PageSize) -> Self {
        self.pages = pages;
        self
    }

    /// The NUMA node that all pages must be on; where the kernel likes unless said.
    pub fn numa_node(mut self, node: impl Into<Option<u32>>) -> Self {
        self.numa_node = node.into();
        self
    }

    /// Whether locking must succeed; [`Lock::Try`] unless said.
    pub fn lock(mut self, lock: Lock) -> Self {
        self.lock = lock;
        self
    }

    /// Whether its addresses must have 32 bits: for devices that can put no more on the bus, where
    /// an IOMMU has them use our addresses. The default is any.
    pub fn low_addresses(mut self, low: bool) -> Self {
        self.low = low;
        self
    }

    /// Maps the region. When this returns, every page is there, zeroed, and nothing is left to
    /// fault in; when it fails, nothing is left behind.
    ///
    /// # Errors
    /// A [`RegionError`] that names the limit which was hit and what to do about it.
    pub fn build(&self) -> Result<MemoryRegion, RegionError> {
        if self.len == 0 {
            return Err(RegionError::ZeroSize);
        }
        let mut candidates = self.pages.candidates(self.len).peekable();
        let mut result = Err(RegionError::ZeroSize);
        let mut shortage = None;
        while let Some(page) = candidates.next() {
            result = self.build_with(page);
            match (&result, candidates.peek()) {
                (Err(why), Some(&next)) if why.is_about_pages() => {
                    match why {
                        // The remedy of one region would undo another's.
                        RegionError::NoHugepages { needed, free, .. } => {
                            tracing::info!(
                                next_page_size = next,
                                "falling back: {needed} hugepages of {page} bytes are needed and \
                                 {free} are free"
                            );
                            shortage = Some((page, *needed));
                        }
                        _ if next == BASE_PAGE => tracing::warn!(
                            next_page_size = next,
                            "falling back to normal pages: {why}"
                        ),
                        _ => tracing::info!(next_page_size = next, "falling back: {why}"),
                    }
                }
                _ => break,
            }
        }
        if let (Ok(region), Some((page, pages))) = (&mut result, shortage)
            && region.page == BASE_PAGE
        {
            region.shortage = Some(Shortage::new(page, self.numa_node, pages));
        }
        result
    }

    fn build_with(&self, page: usize) -> Result<MemoryRegion, RegionError> {
        let huge = page != BASE_PAGE;
        let too_large = || RegionError::TooLarge {
            len: self.len,
            available: available_memory(),
        };
        let len = self
            .len
            .checked_next_multiple_of(page)
            .ok_or_else(too_large)?;
        // The kernel overcommits normal pages: asked for too many, it would end this process (or
        // another) instead of saying no. It does count hugepages.
        if !huge && len > available_memory() {
            return Err(too_large());
        }
        let no_pages = || self.no_hugepages(page, len);

        let fd = create(page).map_err(|source| RegionError::Unsupported { page, source })?;
        rustix::fs::ftruncate(&fd, len as u64)
            .map_err(os("setting the size of the memory file"))?;
        // A peer that holds the descriptor could otherwise cut the file, and our next access
        // would be a bus error.
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(os("sealing the memory file"))?;

        let span = Span::reserve(len, page, self.low).map_err(os("reserving addresses"))?;
        // Hugepages are set aside for the mapping here, so that a shortage is known now.
        span.map(&fd).map_err(|e| match e {
            rustix::io::Errno::NOMEM if huge => no_pages(),
            e => os("mapping the memory file")(e),
        })?;
        if let Some(node) = self.numa_node {
            // SAFETY: the span is ours.
            unsafe { sys::bind(span.start, len, node) }.map_err(|source| {
                RegionError::NoSuchNode {
                    node,
                    nodes: sys::memory_nodes(),
                    source,
                }
            })?;
        }
        // MAP_POPULATE would not report a shortage (on the bound node, or of a control group's
        // share), and the first access would be a bus error; this call reports it.
        // SAFETY: the span is ours and not in use yet.
        unsafe { rustix::mm::madvise(span.start.as_ptr().cast(), len, Advice::LinuxPopulateWrite) }
            .map_err(|e| match e {
                rustix::io::Errno::FAULT | rustix::io::Errno::NOMEM if huge => no_pages(),
                rustix::io::Errno::FAULT | rustix::io::Errno::NOMEM => too_large(),
                e => os("populating the region")(e),
            })?;
        let locked = huge || self.lock_pages(&span)?;
        let numa_node = self.check_node(&span, page)?;
        Ok(MemoryRegion {
            guard: Mutex::new(None),
            span,
            fd,
            page,
            numa_node,
            locked,
            shortage: None,
        })
    }

    fn no_hugepages(&self, page: usize, len: usize) -> RegionError {
        let dir = sys::hugepage_dir(page, self.numa_node);
        let (all, free) = sys::hugepage_counts(&dir);
        let needed = len / page;
        let target = all + needed.saturating_sub(free);
        RegionError::NoHugepages {
            page,
            needed,
            free,
            remedy: format!("echo {target} > {dir}/nr_hugepages"),
        }
    }

    fn lock_pages(&self, span: &Span) -> Result<bool, RegionError> {
        // SAFETY: the span is ours; locking does not change what it holds.
        let result = unsafe { rustix::mm::mlock(span.start.as_ptr().cast(), span.len) };
        let Err(source) = result else { return Ok(true) };
        let limit = rustix::process::getrlimit(Resource::Memlock).current;
        let error = RegionError::Lock {
            len: span.len,
            limit,
            source: source.into(),
        };
        if self.lock == Lock::Require {
            return Err(error);
        }
        tracing::warn!("the region stays unlocked, its pages may be swapped out: {error}");
        Ok(false)
    }

    /// Verifies that all pages are where they were asked to be; returns the node of the region.
    fn check_node(&self, span: &Span, page: usize) -> Result<Option<u32>, RegionError> {
        let mut first = None;
        let mut stray = None;
        // SAFETY: the span is ours.
        let answer = unsafe {
            // Unasked, the first page says where the region (mostly) is.
            let len = if self.numa_node.is_some() {
                span.len
            } else {
                page
            };
            sys::nodes_of(span.start, len, page, |node| {
                let node = u32::try_from(node).ok();
                first.get_or_insert(node);
                if node != self.numa_node {
                    stray = Some(node);
                }
            })
        };
        match (self.numa_node, answer, stray) {
            (None, answer, _) => Ok(answer.ok().and(first.flatten())),
            (Some(_), Err(e), _) => Err(RegionError::Os {
                step: "asking where the pages are",
                source: e,
            }),
            (Some(node), Ok(()), Some(found)) => Err(RegionError::Misplaced { node, found }),
            (Some(node), Ok(()), None) => Ok(Some(node)),
        }
    }
}

/// A contiguous, populated, zeroed piece of memory behind a file descriptor, with an inaccessible
/// page on either side.
///
/// There is no access by slice: a device or another process may write at any time. Take pointers
/// from [`ptr_at`](Self::ptr_at), and form references only to memory that nothing else accesses then.
pub struct MemoryRegion {
    /// Since the region was shared. In front of the span: it goes before the memory is unmapped.
    guard: Mutex<Option<BusErrorGuard>>,
    span: Span,
    fd: OwnedFd,
    page: usize,
    numa_node: Option<u32>,
    locked: bool,
    /// Of hugepages that it was to have.
    shortage: Option<Shortage>,
}

impl MemoryRegion {
    /// Starts a region of at least `len` bytes.
    pub fn builder(len: usize) -> Builder {
        Builder {
            len,
            pages: PageSize::Auto,
            numa_node: None,
            lock: Lock::Try,
            low: false,
        }
    }

    /// The first byte; aligned to the page size.
    #[must_use]
    #[inline]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.span.start
    }

    /// Bytes in the region: what was asked for, rounded up to whole pages.
    #[must_use]
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a region is never empty")]
    pub fn len(&self) -> usize {
        self.span.len
    }

    /// The byte at `offset`, if `len` bytes from there are inside the region.
    ///
    /// # Errors
    /// [`RegionError::OutOfRange`] if they are not.
    #[inline]
    pub fn ptr_at(&self, offset: usize, len: usize) -> Result<NonNull<u8>, RegionError> {
        if offset
            .checked_add(len)
            .is_some_and(|end| end <= self.span.len)
        {
            // SAFETY: `offset` is inside the region, or one past its end for a length of zero.
            Ok(unsafe { self.span.start.add(offset) })
        } else {
            Err(RegionError::OutOfRange {
                offset,
                len,
                region: self.span.len,
            })
        }
    }

    /// The memory file, to be shared with a peer; its size is sealed. Offset 0 of the file is the
    /// first byte of the region.
    ///
    /// # Safety
    /// Through the descriptor any byte can be written, by a second mapping or by write(2), and no
    /// borrow of ours shows it. A holder of the descriptor must not write to bytes that this
    /// process owns at that time: the data of a buffer that was not given away. A peer that breaks
    /// this promise changes bytes under the eyes of who parses them; it reaches no header, length
    /// or link, which are never in the region of a pool. What it must not even be able to change is
    /// copied first.
    ///
    /// Pages that are punched out of the file while no hugepage is free end this process at the next
    /// access, unless the descriptor comes from [`share`](Self::share).
    #[must_use]
    pub unsafe fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The memory file, as [`fd`](Self::fd), for a peer that may take pages out of it: from here on,
    /// for the life of the region, a missing page costs the bytes of that page and nothing else.
    ///
    /// An access to a page that the file lacks and that cannot be had again puts a private page of
    /// zeros in its place, and no other page is touched: addresses and references stay valid, and
    /// who reads sees zeros, as the peer might have written. Neither a peer nor a device sees the
    /// page from then on, so that the region should not be lent again:
    /// [`replaced_pages`](Self::replaced_pages) tells.
    ///
    /// # Errors
    /// The system refuses a handler for SIGBUS, or too many regions are shared.
    ///
    /// # Safety
    /// As for [`fd`](Self::fd). A handler that the program sets for SIGBUS later hands on what is
    /// not its own.
    pub unsafe fn share(&self) -> io::Result<BorrowedFd<'_>> {
        // Locked until it is made: a range must not be in the table twice.
        let mut guard = self.guard();
        if guard.is_none() {
            // SAFETY: the region is a mapping of its own, of whole pages of that size, and unmapped
            // after the guard is gone; every user of the range keeps the region. The peer
            // determines the bytes of shared memory.
            let new = unsafe { BusErrorGuard::new(self.span.start, self.span.len, self.page) }?;
            *guard = Some(new);
        }
        Ok(self.fd.as_fd())
    }

    /// Pages that a peer has taken out of the memory file and that are private memory since: zero at
    /// first, and whatever was written there after. Only seen once they are accessed, and only of a
    /// region that was [shared](Self::share).
    #[must_use]
    pub fn replaced_pages(&self) -> usize {
        self.guard().as_ref().map_or(0, BusErrorGuard::replaced)
    }

    fn guard(&self) -> MutexGuard<'_, Option<BusErrorGuard>> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Device and inode number of the memory file, by which it is found among the descriptors and
    /// mappings of a process.
    ///
    /// # Errors
    /// What fstat(2) says.
    pub fn file_id(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Bytes in a page.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.page
    }

    /// The NUMA node: of all pages if one was asked for, else of the first page; `None` if the
    /// kernel does not say.
    #[must_use]
    pub fn numa_node(&self) -> Option<u32> {
        self.numa_node
    }

    /// Whether the pages stay in memory for sure.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// Who can touch the memory.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
}

impl fmt::Debug for MemoryRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRegion")
            .field("at", &self.span.start)
            .field("len", &self.span.len)
            .field("page_size", &self.page)
            .field("numa_node", &self.numa_node)
            .field("locked", &self.locked)
            .finish_non_exhaustive()
    }
}

fn os(step: &'static str) -> impl Fn(rustix::io::Errno) -> RegionError {
    move |source| RegionError::Os {
        step,
        source: source.into(),
    }
}
