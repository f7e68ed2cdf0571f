//! A ring of buffers to one receiver.

use std::fmt;
use std::mem;
use std::mem::size_of;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use pollux_pipelines::Moment;
use zerocopy::{FromZeros, Immutable, IntoBytes};

use super::config::TransferError;
use super::copy::Transfer;
use super::region::Region;
use super::view::ViewState;

/// Interval at which a receiver that waits looks at its ring. The ring wakes no thread: that would be a
/// system call for each image.
const POLL: Duration = Duration::from_micros(200);

/// Type of the pixels in a transfer.
pub trait Element: FromZeros + IntoBytes + Immutable + Copy + Send + 'static {}

impl<P: FromZeros + IntoBytes + Immutable + Copy + Send + 'static> Element for P {}

/// Regions of an image, in a buffer of their own. Dropping it, on any thread, gives the buffer back to
/// the ring.
pub struct SubImage<P> {
    number: u64,
    at: Moment,
    pixels: Box<[P]>,
    state: Arc<ViewState>,
    home: SyncSender<Box<[P]>>,
}

impl<P> SubImage<P> {
    /// Number of its frame.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// When the image was taken, as the sender said.
    #[must_use]
    pub fn at(&self) -> Moment {
        self.at
    }

    /// The regions that the buffer has.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.state.regions
    }

    /// Pixels of the buffer. Those that no region has a place for are zero.
    #[must_use]
    pub fn pixels(&self) -> &[P] {
        &self.pixels
    }

    /// Counts it as lost, and not as transferred: the receiver could not keep it.
    pub fn give_up(self) {
        self.state.counts.give_up(size_of_val(&*self.pixels));
    }
}

/// Bytes of the buffer, in the byte order of the host.
impl<P: IntoBytes + Immutable> AsRef<[u8]> for SubImage<P> {
    fn as_ref(&self) -> &[u8] {
        self.pixels.as_bytes()
    }
}

impl<P> Drop for SubImage<P> {
    fn drop(&mut self) {
        // There is a place for each buffer, and none is needed once the ring is gone.
        let _ = self.home.try_send(mem::take(&mut self.pixels));
        self.state.counts.give_back();
    }
}

impl<P> fmt::Debug for SubImage<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubImage")
            .field("number", &self.number)
            .field("receiver", &self.state.name)
            .finish_non_exhaustive()
    }
}

/// The sender's end of a ring.
pub(super) struct Ring<P> {
    pub(super) transfer: Transfer,
    queue: SyncSender<SubImage<P>>,
    free: Receiver<Box<[P]>>,
    home: SyncSender<Box<[P]>>,
}

impl<P: Element> Ring<P> {
    /// A ring and its receiver's end.
    pub(super) fn new(transfer: Transfer) -> Result<(Self, SubImages<P>), TransferError> {
        let buffers = transfer.state().buffers;
        let (home, free) = sync_channel(buffers);
        for _ in 0..buffers {
            let pixels = buffer(transfer.buffer_pixels());
            let pixels = pixels.ok_or(TransferError::NoMemory {
                buffers,
                bytes: transfer.buffer_pixels() * size_of::<P>(),
            })?;
            let _ = home.try_send(pixels);
        }
        let (queue, images) = sync_channel(buffers);
        let end = SubImages {
            name: transfer.state().name.clone(),
            images,
            is_ended: false,
        };
        let ring = Self {
            transfer,
            queue,
            free,
            home,
        };
        Ok((ring, end))
    }

    /// Transfers an image if the receiver gets it.
    #[inline]
    pub(super) fn push(
        &mut self,
        number: u64,
        at: Moment,
        image: &[P],
    ) -> Result<(), TransferError> {
        let state = self.transfer.state();
        if state.is_closed() || !self.transfer.wants(number, at) {
            return Ok(());
        }
        let state = self.transfer.state();
        let Ok(mut pixels) = self.free.try_recv() else {
            state.counts.overrun.add(1);
            return Ok(());
        };
        let copied = self.transfer.copy(image, &mut pixels);
        if copied.is_err() {
            let _ = self.home.try_send(pixels);
            return copied;
        }
        let sub_image = SubImage {
            number,
            at,
            pixels,
            state: Arc::clone(state),
            home: self.home.clone(),
        };
        // The queue has a place for each buffer.
        if let Err(TrySendError::Disconnected(_)) = self.queue.try_send(sub_image) {
            state.close();
        }
        Ok(())
    }
}

/// Memory of a buffer, all of it touched: the first copy causes no page fault.
fn buffer<P: Element>(pixels: usize) -> Option<Box<[P]>> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(pixels).ok()?;
    buffer.resize(pixels, P::new_zeroed());
    Some(buffer.into_boxed_slice())
}

/// A receiver's end of its ring: sub-images in the order of the images. Dropping it ends the transfer.
pub struct SubImages<P> {
    name: String,
    images: Receiver<SubImage<P>>,
    is_ended: bool,
}

impl<P> SubImages<P> {
    /// Name of the receiver.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next sub-image, if there is one already.
    #[inline]
    pub fn try_next(&mut self) -> Option<SubImage<P>> {
        let next = self.images.try_recv();
        self.is_ended = matches!(next, Err(TryRecvError::Disconnected));
        next.ok()
    }

    /// The next sub-image, if it comes within this time. Returns early at the end of the transfer.
    pub fn next(&mut self, wait: Duration) -> Option<SubImage<P>> {
        let begun = Instant::now();
        loop {
            let next = self.try_next();
            if next.is_some() || self.is_ended || begun.elapsed() >= wait {
                return next;
            }
            thread::sleep(POLL);
        }
    }

    /// Whether there are no more sub-images: the sender is gone, and all were taken.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }
}

impl<P> fmt::Debug for SubImages<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubImages")
            .field("name", &self.name)
            .field("is_ended", &self.is_ended)
            .finish_non_exhaustive()
    }
}
