//! Stacks: one event for many images.

use std::fmt;
use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::config::ReceiveError;
use super::image::Image;
use super::loss::Loss;
use super::stored::Stored;

/// Images that follow each other, for one consumer: the event of a stack. Dropping it, on any thread,
/// gives its images back to the receiver and its list to the [`Stacker`].
pub struct Stack<P> {
    images: Vec<Image<P>>,
    home: SyncSender<Vec<Image<P>>>,
}

impl<P: Stored> Stack<P> {
    /// The images, in the order in which they were delivered.
    #[must_use]
    pub fn images(&self) -> &[Image<P>] {
        &self.images
    }

    /// Whether no packet is missing in any image.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.images.iter().all(Image::is_complete)
    }

    /// The loss map: what each image lacks, with the place of the image in the stack.
    pub fn losses(&self) -> impl Iterator<Item = (usize, Loss)> + '_ {
        let images = self.images.iter().enumerate();
        images.flat_map(|(n, image)| image.losses().map(move |loss| (n, loss)))
    }
}

impl<P> Drop for Stack<P> {
    fn drop(&mut self) {
        let mut images = mem::take(&mut self.images);
        images.clear();
        // There is a place for each list, and none is needed once the stacker is gone.
        let _ = self.home.try_send(images);
    }
}

impl<P> fmt::Debug for Stack<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stack").field(&self.images).finish()
    }
}

/// Gathers images to stacks. Nothing is allocated after the start: the lists of dropped stacks are
/// used again.
pub struct Stacker<P> {
    length: usize,
    filling: Option<Vec<Image<P>>>,
    home: SyncSender<Vec<Image<P>>>,
    lists: Receiver<Vec<Image<P>>>,
}

impl<P: Stored> Stacker<P> {
    pub(super) fn new(images: usize, buffers: usize) -> Result<Self, ReceiveError> {
        if !(1..=buffers / 2).contains(&images) {
            return Err(ReceiveError::Stack { images, buffers });
        }
        // As many stacks as there can be of images that are not empty, and one that is being filled.
        let stacks = buffers / images + 1;
        let (home, lists) = sync_channel(stacks);
        for _ in 0..stacks {
            let _ = home.try_send(Vec::with_capacity(images));
        }
        Ok(Self {
            length: images,
            filling: None,
            home,
            lists,
        })
    }

    /// Adds an image; the stack, when it is full.
    ///
    /// # Errors
    /// Gives the image back if all stacks are still with their consumers: an overrun, the caller's to
    /// count.
    pub fn push(&mut self, image: Image<P>) -> Result<Option<Stack<P>>, Image<P>> {
        let Some(mut images) = self.filling.take().or_else(|| self.lists.try_recv().ok()) else {
            return Err(image);
        };
        images.push(image);
        let full = images.len() == self.length;
        self.filling = Some(images);
        Ok(if full { self.flush() } else { None })
    }

    /// The stack that is being filled, before it is full; `None` if it has no image.
    pub fn flush(&mut self) -> Option<Stack<P>> {
        let images = self.filling.take()?;
        let home = self.home.clone();
        Some(Stack { images, home })
    }
}
