#![allow(clippy::unwrap_used)]

use pollux_images::formats::Layout;
use pollux_images::peaks::Peak;
use pollux_images::receive::{Image, ImageReader, PacketPlacer, ReceiveConfig, Route, images};
use pollux_images::stages::{Capacity, Desk, Work};
use pollux_images::statistics::ImageStatistics;
use pollux_mempool::time::Ns;
use pollux_pipelines::Moment;
use pollux_pmd::TscClock;
use pollux_pmd::stream::StreamId;
use pollux_pmd_testkit::guard::listen;
use serde_json::Value;

use super::axis::Axis;
use super::display::{Display, Pictures as _};
use super::exposure::View;
use super::query::Query;
use super::tap::Tap;

/// Packets of an image of MOENCH, and the pixels of one.
const PACKETS: u32 = 50;
const PIXELS: usize = 3200;

/// Longer than a test takes.
const HOUR: Ns = Ns(3_600_000_000_000);

/// A receiver of small images.
struct Receiver {
    placer: PacketPlacer<u16>,
    reader: ImageReader<u16>,
    desk: Desk<u16>,
    layout: Layout,
}

impl Receiver {
    fn new() -> Self {
        let layout = Layout::moench(1, 1).unwrap();
        let config = ReceiveConfig::new(layout, Route::Streams(vec![StreamId(0)]));
        let (placer, reader) = images(&config).unwrap();
        let desk = Desk::new(8, &Capacity::default());
        Self {
            placer,
            reader,
            desk,
            layout,
        }
    }

    /// An image whose pixels have the value of its frame, without the packets in `lost`.
    fn image(&mut self, frame: u64, lost: &[u32]) -> Image<u16> {
        for packet in (0..PACKETS).filter(|packet| !lost.contains(packet)) {
            let mut payload = vec![0; 48];
            payload[..8].copy_from_slice(&frame.to_le_bytes());
            payload[12..16].copy_from_slice(&packet.to_le_bytes());
            // Detector and version of the header.
            payload[46..].copy_from_slice(&[5, 2]);
            payload.extend((frame as u16).to_le_bytes().repeat(PIXELS));
            let placed = self.placer.place(StreamId(0), &payload, Moment(0));
            placed.unwrap();
        }
        self.reader.poll(Moment(u64::MAX)).unwrap()
    }

    fn work(&mut self, frame: u64, lost: &[u32]) -> Work<u16> {
        let image = self.image(frame, lost);
        let Ok(mut work) = self.desk.begin(image) else {
            panic!("the desk has room");
        };
        work.findings.curve = vec![frame as f32; 3];
        work.findings.peaks = vec![Peak::default(); 2];
        work
    }

    fn display(&self, fresh: Ns) -> (Display<u16>, Tap<u16>) {
        let axis = Axis {
            unit: "r_mm".into(),
            radial: vec![0.5, 1.5, 2.5],
        };
        let (shape, rows) = (self.layout.image(), self.layout.module().rows);
        Display::new(shape, rows, Some(axis), fresh, TscClock::get()).unwrap()
    }
}

fn header(display: &Display<u16>, query: &str) -> Option<Value> {
    let picture = display.picture(&Query::parse(Some(query)).unwrap())?;
    let length = u32::from_le_bytes(picture[..4].try_into().unwrap()) as usize;
    Some(serde_json::from_slice(&picture[4..4 + length]).unwrap())
}

#[test]
fn the_loop_fills_what_is_asked_for_and_allocates_nothing() {
    let mut receiver = Receiver::new();
    let (mut display, mut tap) = receiver.display(HOUR);
    let mut statistics = ImageStatistics::<i16>::new(receiver.layout.image()).unwrap();
    let pixels = vec![7; receiver.layout.image().pixels()];
    statistics.add(&pixels).unwrap();
    let work: Vec<_> = [(1, &[][..]), (2, &[3, 4, 9])]
        .map(|(frame, lost)| receiver.work(frame, lost))
        .into();
    // Without a request nothing is filled.
    tap.see(&work[0], &statistics);
    for view in View::ALL {
        assert!(!display.ask(view), "{view:?}");
    }
    assert_eq!(header(&display, "view=latest"), None);
    let ((), noise) = listen(|ear| {
        ear.during(|| {
            for _ in 0..20 {
                tap.see(&work[1], &statistics);
            }
        });
    });
    noise.assert_none();
    for view in View::ALL {
        assert!(display.ask(view), "{view:?} is not fresh");
    }

    let latest = header(&display, "view=latest").unwrap();
    assert_eq!(
        (&latest["frame"], &latest["images"]),
        (&2.into(), &2.into())
    );
    assert_eq!(latest["image"]["missing_packets"], 3);
    // A packet has 8 rows.
    let rows = serde_json::json!([[24, 16], [72, 8]]);
    assert_eq!(latest["image"]["missing_rows"], rows);
    assert_eq!(latest["image"]["all_peaks"], 2);
    assert_eq!(latest["levels"]["bad"], 3 * PIXELS);
    assert_eq!(latest["levels"]["largest"], 2.0);
    for view in ["mean", "maximum"] {
        let picture = header(&display, &format!("view={view}")).unwrap();
        assert_eq!(
            (&picture["levels"]["largest"], &picture["image"]),
            (&7.0.into(), &Value::Null)
        );
    }
    let curves = serde_json::to_value(display.curves().unwrap()).unwrap();
    assert_eq!(
        (&curves["images"], &curves["unit"]),
        (&2.into(), &"r_mm".into())
    );
    assert_eq!(curves["last"], serde_json::json!([2.0, 2.0, 2.0]));
    assert_eq!(curves["mean"], serde_json::json!([1.5, 1.5, 1.5]));
}

#[test]
fn what_is_fresh_is_shared() {
    let mut receiver = Receiver::new();
    let (mut display, mut tap) = receiver.display(HOUR);
    assert!(!display.ask(View::Latest));
    // A client that asks twice, before there is an image.
    assert!(!display.ask(View::Latest));
    for frame in 1..4 {
        tap.see(&receiver.work(frame, &[]), &());
        assert!(display.ask(View::Latest));
        assert_eq!(header(&display, "view=latest").unwrap()["frame"], 1);
    }
}

#[test]
fn what_is_old_is_shown_until_there_is_another_one() {
    let mut receiver = Receiver::new();
    let (mut display, mut tap) = receiver.display(Ns(0));
    let frame = |display: &Display<u16>| header(display, "view=latest").unwrap()["frame"].clone();
    assert!(!display.ask(View::Latest));
    for seen in 1..5 {
        tap.see(&receiver.work(seen, &[]), &());
        assert!(!display.ask(View::Latest));
        assert_eq!(frame(&display), seen);
        assert!(!display.ask(View::Latest));
        assert_eq!(frame(&display), seen);
    }
    // A frame that is held.
    assert!(header(&display, "view=latest&frame=4").is_some());
    assert!(header(&display, "view=latest&frame=3").is_none());
    // The run has ended.
    drop(tap);
    assert!(!display.ask(View::Latest) && !display.ask(View::Mean));
    assert_eq!(frame(&display), 4);
}

#[test]
fn a_kept_image_is_waited_for() {
    let mut receiver = Receiver::new();
    let (mut display, mut tap) = receiver.display(HOUR);
    assert!(!display.ask(View::Kept));
    let mut vetoed = receiver.work(1, &[]);
    vetoed.findings.vetoed = true;
    tap.see(&vetoed, &());
    assert!(!display.ask(View::Kept));
    tap.see(&receiver.work(2, &[]), &());
    assert!(display.ask(View::Kept));
    let kept = header(&display, "view=kept").unwrap();
    assert_eq!(
        (&kept["frame"], &kept["image"]["vetoed"]),
        (&2.into(), &false.into())
    );
}
