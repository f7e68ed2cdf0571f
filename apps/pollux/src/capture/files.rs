//! Output files of a capture: one file, or a rotation of files.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use pollux_app::{Rotation, part};
use pollux_pmd::drivers::pcap::{About, Statistics, Writer};
use pollux_pmd::mempool::Mbuf;
use pollux_pmd::mempool::time::WireTime;

/// The current file and the earlier ones.
pub(super) struct Files {
    path: PathBuf,
    rotation: Rotation,
    about: About,
    writer: Writer,
    begun: Instant,
    number: u32,
    /// Existing files, the current one last.
    names: VecDeque<PathBuf>,
    /// Frames, bytes and lost frames of the earlier files.
    before: (u64, u64, u64),
    error: Option<anyhow::Error>,
}

impl Files {
    /// Creates the first file.
    pub(super) fn create(path: &Path, rotation: Rotation, about: About) -> anyhow::Result<Self> {
        let name = if rotation.is_on() {
            part(path, 1)
        } else {
            path.into()
        };
        Ok(Self {
            writer: open(&name, &about)?,
            path: path.into(),
            rotation,
            about,
            begun: Instant::now(),
            number: 1,
            names: [name].into(),
            before: (0, 0, 0),
            error: None,
        })
    }

    /// Adds a frame, to a new file if a rotation is due; `statistics` completes the old file.
    pub(super) fn packet(
        &mut self,
        time: WireTime,
        frame: &Mbuf,
        statistics: impl FnOnce(u64) -> Statistics,
    ) {
        let len = self.writer.file_len() + frame.total_len() as u64;
        let is_full = self.rotation.size.is_some_and(|size| len > size);
        let is_old = self
            .rotation
            .age
            .is_some_and(|age| self.begun.elapsed() >= age);
        if (is_full || is_old) && !self.has_failed() {
            self.rotate(statistics);
        }
        self.writer.packet(time, frame);
    }

    fn rotate(&mut self, statistics: impl FnOnce(u64) -> Statistics) {
        let name = part(&self.path, self.number + 1);
        let writer = match open(&name, &self.about) {
            Ok(writer) => writer,
            Err(error) => {
                // The run ends now; the frames in flight fit into the current file.
                self.error = Some(error);
                return;
            }
        };
        self.complete(statistics);
        self.before = (self.written(), self.written_bytes(), self.lost());
        let mut done = std::mem::replace(&mut self.writer, writer);
        self.error = done.take_error().map(|error| anyhow!(error));
        self.number += 1;
        self.begun = Instant::now();
        self.names.push_back(name);
        self.rotation.trim(&mut self.names);
    }

    /// Writes all buffered frames, and then the statistics.
    pub(super) fn complete(&mut self, statistics: impl FnOnce(u64) -> Statistics) {
        // Frames first, so that the counts exclude frames that the file did not accept.
        self.writer.flush();
        self.writer.statistics(&statistics(self.written()));
        self.writer.flush();
    }

    /// Writes the pending frames to the file.
    pub(super) fn flush(&mut self) {
        if self.writer.is_pending() {
            self.writer.flush();
        }
    }

    /// Frames that files have accepted.
    pub(super) fn written(&self) -> u64 {
        self.before.0 + self.writer.written()
    }

    pub(super) fn written_bytes(&self) -> u64 {
        self.before.1 + self.writer.written_bytes()
    }

    /// Frames that files have not accepted.
    pub(super) fn lost(&self) -> u64 {
        self.before.2 + self.writer.lost()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some() || self.writer.has_failed()
    }

    /// Names of the files, and the first error.
    pub(super) fn into_parts(mut self) -> (Vec<PathBuf>, Option<anyhow::Error>) {
        let failure = self.writer.take_error().map(|error| anyhow!(error));
        (self.names.into(), self.error.or(failure))
    }
}

fn open(path: &Path, about: &About) -> anyhow::Result<Writer> {
    let create = || -> io::Result<Writer> { Writer::new(File::create(path)?, path, about) };
    create().with_context(|| format!("cannot write {}", path.display()))
}
