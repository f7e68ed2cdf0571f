//! Receivers of regions of interest: each has its part of the images, in a file of its own.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use pollux_app::Output;
use pollux_images::Shape;
use pollux_images::receive::{Image, Stored};
use pollux_images::transfer::{DEFAULT_MEMORY, Receivers, SubImages, TransferConfig, TransferView};
use pollux_pipelines::Moment;
use pollux_pmd::lcore;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// How long a receiver waits for a sub-image before it looks for the end.
const WAIT: Duration = Duration::from_millis(100);

/// For so long the end of a run waits for a receiver that takes nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// Interval at which the end of a run looks at a receiver.
const NAP: Duration = Duration::from_millis(5);

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

/// The threads of the receivers, each with the name of its file.
#[derive(Default)]
pub struct RegionThreads(Vec<(String, TransferView, JoinHandle<Result<()>>)>);

impl RegionThreads {
    /// Waits for the files, after the loop has dropped its side. A disk or a pipe that takes nothing for long
    /// is abandoned with its thread, which may be in a system call that does not return.
    ///
    /// # Errors
    /// A file that could not be written.
    pub fn finish(self) -> Result<()> {
        let mut result = Ok(());
        for (name, view, thread) in self.0 {
            result = result.and(finish(&name, &view, thread));
        }
        result
    }
}

fn finish(name: &str, view: &TransferView, thread: JoinHandle<Result<()>>) -> Result<()> {
    let mut progress = (view.free(), Instant::now());
    while !thread.is_finished() {
        if view.free() != progress.0 {
            progress = (view.free(), Instant::now());
        }
        let patience = pollux_app::patience(PATIENCE);
        ensure!(
            progress.1.elapsed() < patience,
            "{name} is incomplete: it has taken nothing for {} s, and is not waited for",
            patience.as_secs_f64()
        );
        std::thread::sleep(NAP);
    }
    let ended = thread.join();
    ended.unwrap_or_else(|_| Err(anyhow!("the thread of a receiver has panicked")))
}

/// Creates a file. A pipe without a reader is an error: nothing waits for one.
fn create(output: &Output) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let opened = options.custom_flags(nonblocking).open(output.path());
    let file = opened.map_err(|error| {
        let has_no_reader = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
        let error = anyhow::Error::from(error);
        if has_no_reader {
            error.context("nothing reads this pipe: start its reader first")
        } else {
            error
        }
    })?;
    // Writes wait for the disk or the reader.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
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
    let views = fan_out.views();
    for ((images, (_, output)), view) in ends.into_iter().zip(receivers).zip(&views) {
        let file = create(output).with_context(|| output.name())?;
        let (name, loops) = (output.name(), loops.to_vec());
        let body = move || {
            lcore::keep_off(&loops);
            write(images, file, &name)
        };
        let thread = std::thread::Builder::new().name("receiver".into());
        let thread = thread.spawn(body).context("the thread of a receiver")?;
        threads.0.push((output.name(), view.clone(), thread));
    }
    let regions = Regions {
        receivers: fan_out,
        views: views.clone(),
        patient,
    };
    Ok((regions, views, threads))
}

/// Writes sub-images one after another until the loop has ended. After an error, which is logged at once,
/// it writes no more: a part of a sub-image may be at the end of the file. All that is not written is
/// counted as lost.
fn write<P: Stored>(mut images: SubImages<P>, mut file: File, name: &str) -> Result<()> {
    let mut result = Ok(());
    while !images.is_ended() {
        let Some(image) = images.next(WAIT) else {
            continue;
        };
        if result.is_ok()
            && let Err(error) = file.write_all(image.as_ref())
        {
            tracing::error!("{name}: {error}: no more is written to it, the run continues");
            result = Err(anyhow::Error::from(error).context(format!(
                "{name} is incomplete: it could not be written; free space, and run again"
            )));
        }
        if result.is_err() {
            image.give_up();
        }
    }
    result
}
