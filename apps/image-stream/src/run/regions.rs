//! Receivers of regions of interest: each has its part of the images, in a file of its own.

use std::fs::File;
use std::io::Write as _;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use pollux_app::Output;
use pollux_images::Shape;
use pollux_images::receive::{Image, Stored};
use pollux_images::transfer::{DEFAULT_MEMORY, Receivers, SubImages, TransferConfig, TransferView};
use pollux_pipelines::Moment;
use pollux_pmd::lcore;

/// How long a receiver waits for a sub-image before it looks for the end.
const WAIT: Duration = Duration::from_millis(100);

/// The side of the loop: copies each image to the receivers that get it.
pub struct Regions<P> {
    receivers: Receivers<P>,
    views: Vec<TransferView>,
    /// Recordings wait for the receivers.
    patient: bool,
}

impl<P: Stored> Regions<P> {
    /// Whether no receiver that is waited for has all of its buffers in use.
    #[inline]
    pub fn has_room(&self) -> bool {
        let room = |view: &TransferView| view.is_closed() || view.free() > 0;
        !self.patient || self.views.iter().all(room)
    }

    /// Hands an image to the receivers that get it. One that is too slow loses its own, which are
    /// counted.
    #[inline]
    pub fn push(&mut self, image: &Image<P>) {
        let at = image.opened().unwrap_or(Moment(0));
        // The receivers were made for the shape of these images.
        let _ = self.receivers.push(image.number(), at, image.pixels());
    }
}

/// The threads of the receivers.
#[derive(Default)]
pub struct RegionThreads(Vec<JoinHandle<Result<()>>>);

impl RegionThreads {
    /// Waits for the files, after the loop has dropped its side.
    ///
    /// # Errors
    /// A file that could not be written.
    pub fn finish(self) -> Result<()> {
        let mut result = Ok(());
        for thread in self.0 {
            let ended = thread.join();
            let ended =
                ended.unwrap_or_else(|_| Err(anyhow!("the thread of a receiver has panicked")));
            result = result.and(ended);
        }
        result
    }
}

/// Creates the files of the receivers, and starts a thread for each.
///
/// # Errors
/// A region outside of the image, a file that cannot be created, too little memory.
pub fn open<P: Stored>(
    receivers: &[(TransferConfig, Output)],
    shape: Shape,
    patient: bool,
    loops: &[usize],
) -> Result<(Regions<P>, Vec<TransferView>, RegionThreads)> {
    let configs: Vec<_> = receivers.iter().map(|(config, _)| config.clone()).collect();
    let (fan_out, ends) =
        Receivers::new(&configs, shape, DEFAULT_MEMORY).context("[[receiver]]")?;
    let mut threads = RegionThreads::default();
    for (images, (_, output)) in ends.into_iter().zip(receivers) {
        let file = File::create(output.path()).with_context(|| output.name())?;
        let (name, loops) = (output.name(), loops.to_vec());
        let body = move || {
            lcore::keep_off(&loops);
            write(images, file).context(name)
        };
        let thread = std::thread::Builder::new().name("receiver".into());
        let thread = thread.spawn(body).context("the thread of a receiver")?;
        threads.0.push(thread);
    }
    let views = fan_out.views();
    let regions = Regions {
        receivers: fan_out,
        views: views.clone(),
        patient,
    };
    Ok((regions, views, threads))
}

/// Writes sub-images one after another until the loop has ended.
fn write<P: Stored>(mut images: SubImages<P>, mut file: File) -> Result<()> {
    while !images.is_ended() {
        if let Some(image) = images.next(WAIT) {
            file.write_all(image.as_ref())?;
        }
    }
    Ok(())
}
