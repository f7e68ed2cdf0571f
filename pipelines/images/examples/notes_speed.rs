//! Time of an image from its packets through conversion, veto and sparse compression, with the notes of
//! the conversion and without, by turns: seconds of CPU time, so that other programs count little.
//!
//! ```text
//! cargo run --release -p pollux-images --example notes_speed [TURNS [VETO STORED]]
//! ```
//!
//! VETO and STORED are the thresholds, in photons.

use std::error::Error;
use std::time::Duration;

use pollux_images::Shape;
use pollux_images::calibration::{Calibration, Map};
use pollux_images::convert::{Converter, NoteConfig};
use pollux_images::formats::{Detector, Header, Layout, write_packet};
use pollux_images::receive::{ImageReader, PacketPlacer, ReceiveConfig, Route, images};
use pollux_images::stages::{Capacity, Desk, ImagesEnv, Work, image_stages};
use pollux_pipelines::{Batch, Moment, Pipeline, StageEnv};
use pollux_pmd::stream::StreamId;
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::little_endian::U16;

type Failure = Box<dyn Error>;

/// Different images, which are more than a cache has room for.
const IMAGES: usize = 32;
/// Images of a turn.
const TURN: u64 = 400;

struct Receiver {
    placer: PacketPlacer<i16>,
    reader: ImageReader<i16>,
    chain: Pipeline<Work<i16>, Work<i16>>,
    desk: Desk<i16>,
    batch: Batch<Work<i16>>,
    done: Vec<Work<i16>>,
    number: u64,
    kept: u64,
}

impl Receiver {
    fn new(notes: NoteConfig, veto: f32, stored: f32) -> Result<Self, Failure> {
        let layout = Layout::jungfrau(1, 1)?;
        let receive = ReceiveConfig {
            notes,
            ..ReceiveConfig::new(layout, Route::Streams(vec![StreamId(0)]))
        };
        let (placer, reader) = images(&receive)?;
        let config: toml::Table = format!(
            "stage = [{{ name = \"veto\", min_photons = {veto:?}, min_pixels = 50 }},
             {{ name = \"compress\", method = \"sparse\", min_photons = {stored:?} }}]"
        )
        .parse()?;
        let stages: Vec<toml::Table> = config["stage"].clone().try_into()?;
        let mut env = StageEnv::new();
        env.insert(ImagesEnv::new(Shape::JUNGFRAU_MODULE, 512));
        let chain = image_stages::<i16>().pipeline(&stages, &mut env)?;
        Ok(Self {
            placer,
            reader,
            chain,
            desk: Desk::new(2, env.get::<Capacity>()?),
            batch: Batch::with_capacity(1),
            done: Vec::with_capacity(1),
            number: 0,
            kept: 0,
        })
    }

    /// Time of a turn.
    fn turn(
        &mut self,
        converter: &Converter,
        frames: &mut [Vec<Vec<u8>>],
    ) -> Result<Duration, Failure> {
        let start = cpu_time()?;
        for _ in 0..TURN {
            let frame = &mut frames[self.number as usize % IMAGES];
            for payload in frame {
                payload[..8].copy_from_slice(&self.number.to_le_bytes());
                let placed = self.placer.place_with(
                    StreamId(0),
                    payload,
                    Moment(0),
                    |mut to, raw: &[U16], pixels| {
                        let raw = raw.as_bytes();
                        let _ =
                            converter.convert_and_note(to.first_pixel, raw, pixels, &mut to.notes);
                    },
                );
                placed.map_err(pollux_pmd::Cause::name)?;
            }
            self.number += 1;
            let image = self.reader.poll(Moment(0)).ok_or("no image")?;
            let work = self.desk.begin(image).map_err(|_| "no findings")?;
            let _ = self.batch.push(work);
            self.chain.process(&mut self.batch, &mut self.done);
            self.batch.clear();
            self.kept += self
                .done
                .drain(..)
                .filter(|work| !work.findings.vetoed)
                .count() as u64;
        }
        Ok(cpu_time()?.saturating_sub(start))
    }
}

/// CPU time of this thread (Linux).
fn cpu_time() -> Result<Duration, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_whitespace().next().ok_or("schedstat is empty")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// Packets of the images: noise, and in each third image 1 % of intense pixels.
fn frames() -> Result<Vec<Vec<Vec<u8>>>, Failure> {
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    };
    let mut frames = Vec::new();
    for n in 0..IMAGES {
        let mut frame = Vec::new();
        for packet in 0..128_u32 {
            let mut header = Header::new(Detector::Jungfrau);
            header.packet_number = packet.into();
            let pixels = (0..4096).flat_map(|_| {
                let hit = n % 3 == 0 && random() % 100 == 0;
                let photons = if hit { random() as u16 % 20 } else { 0 };
                (2490 + random() as u16 % 20 + photons * 500).to_le_bytes()
            });
            let pixels: Vec<u8> = pixels.collect();
            let mut payload = vec![0; 48 + 8192];
            write_packet(&header, &pixels, &mut payload)?;
            frame.push(payload);
        }
        frames.push(frame);
    }
    Ok(frames)
}

fn main() -> Result<(), Failure> {
    let argument = |n| std::env::args().nth(n);
    let turns = argument(1).map_or(Ok(11), |turns| turns.parse::<usize>())?;
    let veto = argument(2).map_or(Ok(10.0), |photons| photons.parse::<f32>())?;
    let stored = argument(3).map_or(Ok(1.0), |photons| photons.parse::<f32>())?;
    let map = |value| Map::new("map", vec![value; Shape::JUNGFRAU_MODULE.pixels()]);
    let calibration = Calibration::new(
        Shape::JUNGFRAU_MODULE,
        [2500.0, 13_600.0, 14_100.0].map(map),
        [500.0, -18.0, -1.4].map(map),
        vec![false; Shape::JUNGFRAU_MODULE.pixels()],
    )?;
    let converter = Converter::new(&calibration);
    let mut frames = frames()?;
    let notes = NoteConfig {
        count: Some(veto),
        mark: Some(stored),
    };
    let mut receivers = [
        Receiver::new(NoteConfig::default(), veto, stored)?,
        Receiver::new(notes, veto, stored)?,
    ];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..turns {
        for (receiver, times) in receivers.iter_mut().zip(&mut times) {
            times.push(receiver.turn(&converter, &mut frames)?.as_secs_f64() / TURN as f64);
        }
    }
    println!("veto from {veto} photons, stored from {stored}:");
    for ((name, times), receiver) in ["images read again", "notes"]
        .iter()
        .zip(&mut times)
        .zip(&receivers)
    {
        times.sort_by(f64::total_cmp);
        let (least, median) = (times[0], times[times.len() / 2]);
        let gb_s = |time: f64| (Shape::JUNGFRAU_MODULE.pixels() * 2) as f64 / time * 1e-9;
        println!(
            "{name}: {:.0} images/s, {:.2} GB/s of raw data (median; best {:.2}), {} of {} kept",
            1.0 / median,
            gb_s(median),
            gb_s(least),
            receiver.kept,
            receiver.number
        );
    }
    Ok(())
}
