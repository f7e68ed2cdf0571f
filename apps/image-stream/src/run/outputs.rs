//! Outputs of a run: a thread that takes images from the loop and hands them to files and streams.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow};
use pollux_images::receive::{Image, Stored};
use pollux_images::stages::{Encoding, RadialAxis, Work};
use pollux_pmd::{Count, lcore};
use zerocopy::IntoBytes as _;

use crate::Detector;
use crate::image::{Dense, Found, ImageFacts, ImageRecord, LossMap, MAX_LOSS_WORDS};
#[cfg(feature = "hdf5")]
use crate::image::{Pixels, Sparse};
use crate::live::{LiveConfig, LiveCounts, LiveQueue, LiveStream, Series};
#[cfg(feature = "hdf5")]
use crate::nexus::{FileCounts, FileQueue, Recorder};

/// Sleep time of the thread without images.
const NAP: Duration = Duration::from_micros(200);

/// For so long the end of a run waits for the disk.
#[cfg(feature = "hdf5")]
const PATIENCE: Duration = Duration::from_secs(30);

/// Part of an image that outputs share.
#[derive(Clone, Copy, Debug)]
enum Part {
    Image,
    Chunk,
    #[cfg(feature = "hdf5")]
    RowOffsets,
    #[cfg(feature = "hdf5")]
    Columns,
    #[cfg(feature = "hdf5")]
    Values,
}

/// A handle of the bytes of an image. The image is given back with the last of its handles.
pub struct Bytes<P> {
    work: Arc<Work<P>>,
    part: Part,
}

impl<P: Stored> AsRef<[u8]> for Bytes<P> {
    fn as_ref(&self) -> &[u8] {
        let findings = &self.work.findings;
        match self.part {
            Part::Image => self.work.image.pixels().as_bytes(),
            Part::Chunk => findings.chunk(),
            #[cfg(feature = "hdf5")]
            Part::RowOffsets => findings.row_offsets.as_bytes(),
            #[cfg(feature = "hdf5")]
            Part::Columns => findings.columns.as_bytes(),
            #[cfg(feature = "hdf5")]
            Part::Values => findings.values.as_bytes(),
        }
    }
}

/// Counters of the outputs.
#[derive(Clone, Default)]
pub struct OutputCounts {
    #[cfg(feature = "hdf5")]
    pub file: Option<Arc<FileCounts>>,
    pub live: Option<Arc<LiveCounts>>,
}

impl OutputCounts {
    /// Images in files.
    #[cfg_attr(not(feature = "hdf5"), expect(clippy::unused_self))]
    pub fn written(&self) -> u64 {
        #[cfg(feature = "hdf5")]
        if let Some(file) = &self.file {
            return file.written.get();
        }
        0
    }

    /// Images that a file had no room for, or that the disk refused.
    #[cfg_attr(not(feature = "hdf5"), expect(clippy::unused_self))]
    pub fn overrun(&self) -> u64 {
        #[cfg(feature = "hdf5")]
        if let Some(file) = &self.file {
            return file.overrun.get() + file.failed.get() + file.refused.get();
        }
        0
    }

    /// Images that a file had no room for.
    #[cfg_attr(not(feature = "hdf5"), expect(clippy::unused_self))]
    pub fn behind(&self) -> u64 {
        #[cfg(feature = "hdf5")]
        if let Some(file) = &self.file {
            return file.overrun.get();
        }
        0
    }

    /// Images that wait in the slowest output, of those that were handed over: `all` for a file, which has
    /// vetoed ones too where these are handed over, and those that were `kept` for the live stream.
    pub fn waiting(&self, all: u64, kept: u64) -> u64 {
        let waiting = |handed: u64, done: &[&Count]| {
            let done = done.iter().map(|count| count.get()).sum();
            handed.saturating_sub(done)
        };
        let mut most = 0;
        if let Some(live) = &self.live {
            let ends = [
                &live.sent,
                &live.overrun,
                &live.no_client,
                &live.refused,
                &live.lost,
            ];
            most = waiting(kept, &ends);
        }
        #[cfg(feature = "hdf5")]
        if let Some(file) = &self.file {
            let ends = [&file.written, &file.overrun, &file.refused, &file.failed];
            most = most.max(waiting(all, &ends));
        }
        #[cfg(not(feature = "hdf5"))]
        let _ = all;
        most
    }

    /// Counts of each output by name.
    pub fn report(&self) -> BTreeMap<&'static str, BTreeMap<&'static str, u64>> {
        let mut report = BTreeMap::new();
        #[cfg(feature = "hdf5")]
        if let Some(file) = &self.file {
            let counts = [
                ("written", &file.written),
                ("overrun", &file.overrun),
                ("refused", &file.refused),
                ("failed", &file.failed),
                ("bytes", &file.bytes),
            ];
            let counts = counts.map(|(name, count)| (name, count.get()));
            report.insert("file", counts.into());
        }
        if let Some(live) = &self.live {
            let counts = [
                ("sent", &live.sent),
                ("overrun", &live.overrun),
                ("no_client", &live.no_client),
                ("refused", &live.refused),
                ("lost", &live.lost),
                ("connected", &live.connected),
                ("stalled_clients", &live.stalled_clients),
            ];
            let counts = counts.map(|(name, count)| (name, count.get()));
            report.insert("live", counts.into());
        }
        report
    }
}

/// A file and its queue, and a live stream and its queue.
#[cfg(feature = "hdf5")]
type File<P> = (Recorder, FileQueue<Bytes<P>>);
type Live<P> = (LiveStream<Bytes<P>>, LiveQueue<Bytes<P>>);

/// Outputs before the thread is started.
pub struct Outputs<P> {
    #[cfg(feature = "hdf5")]
    file: Option<File<P>>,
    live: Option<Live<P>>,
    /// Radial coordinate of the curves.
    axis: Option<RadialAxis>,
    counts: OutputCounts,
    /// Images with the outputs, where those are waited for: so many at most.
    most: Option<usize>,
    in_use: VecDeque<Weak<Work<P>>>,
}

impl<P: Stored> Outputs<P> {
    /// No output.
    pub fn none() -> Self {
        Self {
            #[cfg(feature = "hdf5")]
            file: None,
            live: None,
            axis: None,
            counts: OutputCounts::default(),
            most: None,
            in_use: VecDeque::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        #[cfg(feature = "hdf5")]
        if self.file.is_some() {
            return false;
        }
        self.live.is_none()
    }

    pub fn counts(&self) -> OutputCounts {
        self.counts.clone()
    }

    /// Adds a file.
    #[cfg(feature = "hdf5")]
    pub fn with_file(mut self, recorder: Recorder, queue: FileQueue<Bytes<P>>) -> Self {
        self.counts.file = Some(Arc::clone(recorder.counts()));
        self.file = Some((recorder, queue));
        self
    }

    /// Adds a live stream, which says the radial coordinate of the curves.
    ///
    /// # Errors
    /// An address that cannot be listened at.
    pub fn with_live(
        mut self,
        detector: &Detector,
        config: &LiveConfig,
        axis: Option<RadialAxis>,
    ) -> Result<Self> {
        self.axis = axis;
        let stream = LiveStream::start(detector, config).context("--live")?;
        tracing::info!("live stream at tcp://{}", stream.address());
        self.counts.live = Some(Arc::clone(stream.counts()));
        let queue = stream.queue();
        self.live = Some((stream, queue));
        Ok(self)
    }

    /// Starts the thread, off the CPUs of the loops. `queue` images wait for it at most, and as many with
    /// the outputs; with `patient` it waits for those.
    pub fn start(
        mut self,
        queue: usize,
        patient: bool,
        loops: &[usize],
    ) -> Result<(SyncSender<Work<P>>, OutputThread)> {
        let (sender, receiver) = sync_channel(queue);
        self.most = patient.then_some(queue);
        let done = Arc::<AtomicBool>::default();
        let (ended, loops) = (Arc::clone(&done), loops.to_vec());
        let thread = std::thread::Builder::new()
            .name("outputs".into())
            .spawn(move || {
                lcore::keep_off(&loops);
                self.serve(&receiver, &ended)
            })
            .context("the thread of the outputs")?;
        Ok((sender, OutputThread { thread, done }))
    }

    fn serve(mut self, images: &Receiver<Work<P>>, done: &AtomicBool) -> Result<()> {
        let mut began = false;
        loop {
            // Before the queue: the last image was sent before the end.
            let ended = done.load(Ordering::Acquire);
            match images.try_recv() {
                Ok(work) => {
                    if !std::mem::replace(&mut began, true)
                        && let Err(error) = self.begin(&work.image)
                    {
                        tracing::error!("--live: {error:#}");
                        self.live = None;
                    }
                    self.wait_for_outputs();
                    self.hand_over(work);
                }
                Err(TryRecvError::Empty) if !ended => std::thread::sleep(NAP),
                Err(_) => break,
            }
        }
        self.finish()
    }

    /// Begins the series of the live stream with its first image.
    fn begin(&mut self, first: &Image<P>) -> Result<()> {
        let axis = self.axis.take();
        let Some((stream, _)) = &self.live else {
            return Ok(());
        };
        let start = SystemTime::now();
        let since = start.duration_since(SystemTime::UNIX_EPOCH);
        let seconds = since.map_or(0, |since| since.as_secs());
        stream.begin(&Series {
            id: seconds,
            unique_id: format!("{seconds}-{}", std::process::id()),
            images: 0,
            start,
            first_frame: first.number(),
            first_timestamp: first.timestamp().unwrap_or_default(),
            channel: "photons".into(),
            axis,
        })?;
        Ok(())
    }

    /// Waits until the outputs have returned enough images.
    fn wait_for_outputs(&mut self) {
        let Some(most) = self.most else { return };
        loop {
            self.in_use.retain(|work| work.strong_count() > 0);
            if self.in_use.len() < most {
                return;
            }
            std::thread::sleep(NAP);
        }
    }

    fn hand_over(&mut self, work: Work<P>) {
        let work = Arc::new(work);
        if self.most.is_some() {
            self.in_use.push_back(Arc::downgrade(&work));
        }
        let facts = facts(&work);
        let bytes = |part| Bytes {
            work: Arc::clone(&work),
            part,
        };
        let dense = || match work.findings.encoding {
            Encoding::BitshuffleLz4 => Dense::BitshuffleLz4(bytes(Part::Chunk)),
            Encoding::Raw | Encoding::Sparse => Dense::Raw(bytes(Part::Image)),
        };
        let findings = &work.findings;
        let has_found = !(findings.peaks.is_empty() && findings.curve.is_empty());
        let found = || has_found.then(|| Arc::clone(&work) as Arc<dyn Found>);
        // A vetoed image is for the file.
        if let Some((_, queue)) = &self.live
            && facts.kept
        {
            let pixels = dense();
            queue.push(ImageRecord {
                facts,
                pixels,
                found: found(),
            });
        }
        #[cfg(feature = "hdf5")]
        if let Some((_, queue)) = &self.file {
            let pixels = match work.findings.encoding {
                Encoding::Sparse => Pixels::Sparse(Sparse {
                    rows: bytes(Part::RowOffsets),
                    columns: bytes(Part::Columns),
                    values: bytes(Part::Values),
                }),
                _ => Pixels::Dense(dense()),
            };
            queue.push(ImageRecord {
                facts,
                pixels,
                found: found(),
            });
        }
    }

    fn finish(self) -> Result<()> {
        let mut result = Ok(());
        if let Some((stream, queue)) = self.live {
            drop(queue);
            let ended = stream.end().and_then(|()| stream.finish());
            result = ended.context("--live");
        }
        #[cfg(feature = "hdf5")]
        if let Some((recorder, queue)) = self.file {
            drop(queue);
            result = result.and(recorder.finish(PATIENCE));
        }
        result
    }
}

/// The thread of the outputs.
pub struct OutputThread {
    thread: JoinHandle<Result<()>>,
    done: Arc<AtomicBool>,
}

impl OutputThread {
    /// Ends the thread after the loop has handed over its last image.
    ///
    /// # Errors
    /// What an output could not do, such as to write to a full disk.
    pub fn finish(self) -> Result<()> {
        self.done.store(true, Ordering::Release);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(anyhow!("the thread of the outputs has panicked")))
    }
}

fn facts<P: Stored>(work: &Work<P>) -> ImageFacts {
    let image = &work.image;
    ImageFacts {
        frame: image.number(),
        timestamp: image.timestamp().unwrap_or_default(),
        exposure: image.exposure().unwrap_or_default(),
        bunch: image.bunch_id().unwrap_or_default(),
        peaks: work.findings.peaks.len() as u32,
        kept: !work.findings.vetoed,
        loss: loss(image),
        stack: work.stack,
    }
}

/// The packets that an image lacks: as many words for each module as its packets need.
fn loss<P: Stored>(image: &Image<P>) -> LossMap {
    if image.is_complete() {
        return LossMap::COMPLETE;
    }
    let layout = image.layout();
    let packets = layout.module_packets();
    let words = packets.div_ceil(64);
    let mut map = [0; MAX_LOSS_WORDS];
    for (module, map) in (0..layout.modules()).zip(map.chunks_mut(words)) {
        let mask = image.mask(module);
        for packet in (0..packets).filter(|&packet| !mask.has(packet)) {
            if let Some(word) = map.get_mut(packet / 64) {
                *word |= 1 << (packet % 64);
            }
        }
    }
    LossMap::new(&map)
}
