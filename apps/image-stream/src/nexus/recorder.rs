//! The thread that writes image files: a slow disk blocks it, never the run.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use pollux_app::{Output, Rotation};
use pollux_pmd::{Count, lcore};

use super::info::FileInfo;
use super::writer::Writer;
use crate::image::{ImageRecord, Pixels};

/// Sleep time of the thread without images.
const NAP: Duration = Duration::from_millis(1);

/// Maximum number of images between flushes, and maximum time.
const GATHERED: u64 = 1024;
const STALE: Duration = Duration::from_millis(250);

/// Counts by name for the end of a file, as they are at that time.
pub type Summary = Box<dyn Fn() -> Vec<(String, u64)> + Send>;

/// How a recorder works.
#[derive(Clone, Debug)]
pub struct RecorderConfig {
    /// Number of images between the loops and the thread. Their buffers, and that of one more image,
    /// are not in their pool.
    pub queue: usize,
    /// CPUs of the loops, which the thread keeps off.
    pub loops: Vec<usize>,
    /// Limits of a file.
    pub rotation: Rotation,
}

/// Outcomes of the images for the files. Every image that was pushed is in one of the counts, or in
/// the queue.
#[derive(Debug, Default)]
pub struct FileCounts {
    /// Images in the files, as of the last flush.
    pub written: Count,
    /// Images that the queue had no space for: the disk is too slow.
    pub overrun: Count,
    /// Images whose pixels do not fit the file.
    pub refused: Count,
    /// Images that were in the queue, or written and not flushed, when the disk failed, or later.
    pub failed: Count,
    /// Bytes of the pixels written, as they are stored.
    pub bytes: Count,
    files: Mutex<VecDeque<PathBuf>>,
}

impl FileCounts {
    /// Existing files, the current one last.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().cloned().collect()
    }
}

/// The end of the queue that the loops have: one for each.
pub struct FileQueue<B> {
    sender: SyncSender<ImageRecord<Pixels<B>>>,
    counts: Arc<FileCounts>,
}

impl<B> Clone for FileQueue<B> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            counts: Arc::clone(&self.counts),
        }
    }
}

impl<B> FileQueue<B> {
    /// Hands an image over, without a copy, an allocation or a system call; `false` if the queue is
    /// full, which is counted. The image is then dropped.
    #[inline]
    pub fn push(&self, image: ImageRecord<Pixels<B>>) -> bool {
        let handed = self.sender.try_send(image).is_ok();
        if !handed {
            self.counts.overrun.add_shared(1);
        }
        handed
    }
}

/// A thread that writes image files.
pub struct Recorder {
    /// The option that names the file, and its path.
    file: String,
    thread: JoinHandle<Result<()>>,
    done: Arc<AtomicBool>,
    counts: Arc<FileCounts>,
}

impl Recorder {
    /// Creates the first file, or the only one, and starts the thread. `B` is a handle of a buffer.
    ///
    /// # Errors
    /// A description that is refused, a file that cannot be created, a queue without space, or no
    /// thread.
    pub fn start<B: AsRef<[u8]> + Send + 'static>(
        output: &Output,
        info: FileInfo,
        summary: Summary,
        config: RecorderConfig,
    ) -> Result<(Self, FileQueue<B>)> {
        ensure!(
            config.queue > 0,
            "{}: a queue for 0 images: give 1 or more",
            output.name()
        );
        let counts = Arc::<FileCounts>::default();
        let files = Files::begin(output, info, summary, config.rotation, Arc::clone(&counts))?;
        let (sender, receiver) = sync_channel(config.queue);
        let done = Arc::<AtomicBool>::default();
        let work = Work {
            receiver,
            done: Arc::clone(&done),
            files: Ok(files),
            counts: Arc::clone(&counts),
            since: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("image-file".into())
            .spawn(move || {
                lcore::keep_off(&config.loops);
                work.run()
            })
            .context("cannot start the thread that writes images")?;
        let recorder = Self {
            file: output.name(),
            thread,
            done,
            counts: Arc::clone(&counts),
        };
        Ok((recorder, FileQueue { sender, counts }))
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> &Arc<FileCounts> {
        &self.counts
    }

    /// Writes the images in the queue and completes the file. The loops push no more. A disk without
    /// progress for `patience` is abandoned with its thread, which may be in a system call that does
    /// not return.
    ///
    /// # Errors
    /// The first failure of the disk, with the file and the reason.
    pub fn finish(self, patience: Duration) -> Result<()> {
        // Release pairs with the acquire of the thread, which then sees all images.
        self.done.store(true, Ordering::Release);
        let state = || {
            let FileCounts { written, bytes, .. } = &*self.counts;
            (written.get(), bytes.get())
        };
        let mut progress = (state(), Instant::now());
        while !self.thread.is_finished() {
            if state() != progress.0 {
                progress = (state(), Instant::now());
            }
            let patience = pollux_app::patience(patience);
            ensure!(
                progress.1.elapsed() < patience,
                "{} is incomplete: the disk has taken nothing for {} s, and is not waited for",
                self.file,
                patience.as_secs_f64()
            );
            std::thread::sleep(NAP);
        }
        let panicked = |_| {
            Err(anyhow!(
                "{}: the thread that writes images has panicked",
                self.file
            ))
        };
        self.thread.join().unwrap_or_else(panicked)
    }
}

/// State of the thread.
struct Work<B> {
    receiver: Receiver<ImageRecord<Pixels<B>>>,
    done: Arc<AtomicBool>,
    /// The failure once the disk has failed.
    files: Result<Files>,
    counts: Arc<FileCounts>,
    /// Time of the first image since the last flush.
    since: Instant,
}

impl<B: AsRef<[u8]>> Work<B> {
    fn run(mut self) -> Result<()> {
        loop {
            let done = self.done.load(Ordering::Acquire);
            match self.receiver.try_recv() {
                Ok(image) => self.write(&image),
                Err(TryRecvError::Empty) if !done => std::thread::sleep(NAP),
                Err(_) => break,
            }
            self.flush_when_due();
        }
        self.files
            .and_then(Files::end)
            .context("the recording of images is incomplete")
    }

    fn write(&mut self, image: &ImageRecord<Pixels<B>>) {
        let Ok(files) = &mut self.files else {
            self.counts.failed.add(1);
            return;
        };
        if files.gathered == 0 {
            self.since = Instant::now();
        }
        if let Err(error) = files.write(image) {
            self.counts.failed.add(1);
            self.fail(error);
        }
    }

    fn flush_when_due(&mut self) {
        let Ok(files) = &mut self.files else { return };
        let stale = files.gathered > 0 && self.since.elapsed() >= STALE;
        if (stale || files.gathered >= GATHERED)
            && let Err(error) = files.flush()
        {
            self.fail(error);
        }
    }

    /// The disk has failed: the run continues without it.
    fn fail(&mut self, error: anyhow::Error) {
        tracing::error!("{error:#}: no more images are written, the run continues");
        if let Ok(files) = &self.files {
            self.counts.failed.add(files.gathered);
        }
        self.files = Err(error);
    }
}

/// The current file, and the earlier ones.
struct Files {
    /// Absent after a file that could not be completed.
    writer: Option<Writer>,
    output: Output,
    info: FileInfo,
    summary: Summary,
    rotation: Rotation,
    counts: Arc<FileCounts>,
    /// Images since the last flush.
    gathered: u64,
    begun: Instant,
    number: u32,
}

impl Files {
    fn begin(
        output: &Output,
        info: FileInfo,
        summary: Summary,
        rotation: Rotation,
        counts: Arc<FileCounts>,
    ) -> Result<Self> {
        ensure!(
            !output.is_by_burst(),
            "{}: image files have no bursts: give a name without {}",
            output.name(),
            pollux_app::BURST
        );
        if rotation.is_on() {
            output.expect_free_parts()?;
        }
        output.clear(rotation.is_on())?;
        let mut files = Self {
            writer: None,
            output: output.clone(),
            info,
            summary,
            rotation,
            counts,
            gathered: 0,
            begun: Instant::now(),
            number: 0,
        };
        files.create()?;
        Ok(files)
    }

    /// Creates the next file.
    fn create(&mut self) -> Result<()> {
        self.number += 1;
        let output = if self.rotation.is_on() {
            self.output.part(self.number)
        } else {
            self.output.clone()
        };
        output.expect_free()?;
        let writer = Writer::create(output.path(), output.may_overwrite(), &self.info);
        self.writer = Some(writer.with_context(|| output.name())?);
        self.begun = Instant::now();
        let files = &self.counts.files;
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        files.push_back(output.path().into());
        self.rotation.trim(&mut files);
        Ok(())
    }

    fn write<B: AsRef<[u8]>>(&mut self, image: &ImageRecord<Pixels<B>>) -> Result<()> {
        let writer = self.writer.as_mut().context("no file is open")?;
        match writer.write(&image.facts, &image.pixels, image.found.as_deref()) {
            Ok(()) => {
                self.gathered += 1;
                self.counts.bytes.add(image.pixels.stored_bytes() as u64);
                Ok(())
            }
            Err(error) if error.is_of_image() => {
                if self.counts.refused.get() == 0 {
                    tracing::error!("{error}");
                }
                self.counts.refused.add(1);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            writer.flush()?;
            self.counts.written.add(self.gathered);
            self.gathered = 0;
        }
        if self.has_enough() {
            self.complete()?;
            self.create()?;
        }
        Ok(())
    }

    fn has_enough(&self) -> bool {
        let Rotation { size, age, .. } = self.rotation;
        let len = || {
            let name = self.output.part(self.number);
            fs::metadata(name.path()).map(|file| file.len())
        };
        age.is_some_and(|age| self.begun.elapsed() >= age)
            || size.is_some_and(|size| len().is_ok_and(|len| len >= size))
    }

    fn complete(&mut self) -> Result<()> {
        match self.writer.take() {
            Some(writer) => Ok(writer.finish(&(self.summary)())?),
            None => Ok(()),
        }
    }

    fn end(mut self) -> Result<()> {
        let completed = self.complete();
        match completed {
            Ok(()) => self.counts.written.add(self.gathered),
            Err(_) => self.counts.failed.add(self.gathered),
        }
        completed
    }
}

#[cfg(test)]
mod tests;
