//! Live streams, read by libzmq and cbor2.

use std::io::Read as _;
use std::net::Ipv4Addr;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use image_stream::live::{LiveConfig, LiveCounts, LiveStream, Series};
use image_stream::{Dense, ImageRecord, PixelType};

use crate::{bitshuffle, detector, facts, image, judge, python};

const MODULES: &str = "numpy, zmq, cbor2, dectris.compression";
const TYPES: [PixelType; 4] = [
    PixelType::U16,
    PixelType::I16,
    PixelType::I32,
    PixelType::F32,
];

fn stream(pixel: PixelType) -> LiveStream<Vec<u8>> {
    let config = LiveConfig {
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        queue: 16,
        linger: Duration::from_secs(20),
        ..LiveConfig::default()
    };
    LiveStream::start(&detector(pixel), &config).unwrap()
}

fn series() -> Series {
    Series {
        id: 7,
        unique_id: "run-0007".into(),
        images: 100,
        start: SystemTime::now(),
        first_frame: 1000,
        first_timestamp: 1 << 40,
        channel: "photons".into(),
        axis: None,
    }
}

fn record(n: u64, pixel: PixelType, compress: bool) -> ImageRecord<Dense<Vec<u8>>> {
    let bytes = image(n, pixel);
    let pixels = if compress {
        Dense::BitshuffleLz4(bitshuffle::compressed(&bytes, pixel.bytes()))
    } else {
        Dense::Raw(bytes)
    };
    ImageRecord {
        facts: facts(n),
        pixels,
        found: None,
    }
}

fn until(stream: &LiveStream<Vec<u8>>, is: impl Fn(&LiveCounts) -> bool) {
    let since = Instant::now();
    while !is(stream.counts()) {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "{:?}",
            stream.counts()
        );
        sleep(Duration::from_millis(1));
    }
}

fn expect_right(mut judge: Child) -> String {
    let status = judge.wait().unwrap();
    let (mut told, mut wrong) = (String::new(), String::new());
    judge
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    judge
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut wrong)
        .unwrap();
    assert!(status.success(), "{told}{wrong}");
    told
}

#[test]
fn a_client_gets_every_pixel_of_every_type_raw_and_compressed() {
    let Some(python) = python(MODULES) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for pixel in TYPES {
        let stream = stream(pixel);
        let pixels = folder.path().join(pixel.name());
        let all: Vec<_> = (0..10).flat_map(|n| image(n, pixel)).collect();
        std::fs::write(&pixels, all).unwrap();
        let mut judge = judge(&python, "judge_live.py");
        judge.arg(format!("tcp://{}", stream.address()));
        judge.args(["--images", "10", "--pixels"]).arg(&pixels);
        judge.stdout(Stdio::piped()).stderr(Stdio::piped());
        let judge = judge.spawn().unwrap();
        until(&stream, |counts| counts.clients.get() == 1);
        stream.begin(&series()).unwrap();
        let queue = stream.queue();
        for n in 0..10 {
            assert!(queue.push(record(n, pixel, n % 2 == 1)));
        }
        stream.end().unwrap();
        stream.finish().unwrap();
        println!("{}", expect_right(judge).trim());
    }
}

/// A client that comes late, watches its connection, and reads nothing for a while.
#[test]
fn a_late_and_slow_client_gets_the_start_and_the_newest_images() {
    let Some(python) = python(MODULES) else {
        return;
    };
    let pixel = PixelType::I16;
    let stream = stream(pixel);
    stream.begin(&series()).unwrap();
    let queue = stream.queue();
    let mut judge = judge(&python, "judge_live.py");
    judge.arg(format!("tcp://{}", stream.address()));
    judge.args(["--late", "0.2", "--pause", "1", "--heartbeat"]);
    judge.stdout(Stdio::piped()).stderr(Stdio::piped());
    let judge = judge.spawn().unwrap();
    let mut n = 0;
    let mut push = || {
        queue.push(record(n, pixel, false));
        n += 1;
        sleep(Duration::from_millis(1));
    };
    while stream.counts().clients.get() == 0 {
        push();
    }
    for _ in 0..2000 {
        push();
    }
    stream.end().unwrap();
    let counts = std::sync::Arc::clone(stream.counts());
    stream.finish().unwrap();
    println!("{n} images: {counts:?}: {}", expect_right(judge).trim());
    assert!(counts.sent.get() > 0 && counts.no_client.get() > 0);
    assert_eq!((counts.connected.get(), counts.lost.get()), (1, 0));
}
