//! A client of these tests speaks ZMTP by itself and decodes CBOR with the crate ciborium;
//! scripts/lib/images/judge_live.py does both with the usual Python packages.
#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use ciborium::Value;

use super::*;
use crate::detector::tests::detector;
use crate::image::{Dense, ImageFacts, ImageRecord, LossMap, PixelType};

const ROWS: usize = 4;
const COLUMNS: usize = 6;

/// A buffer that is counted while it is there.
struct Buffer {
    bytes: Vec<u8>,
    there: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.there.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream, and how many buffers are out of their pool.
struct Rig {
    stream: LiveStream<Buffer>,
    there: Arc<AtomicUsize>,
    bytes: usize,
}

impl Rig {
    fn new(rows: usize, columns: usize, config: &LiveConfig) -> Self {
        Self {
            stream: LiveStream::start(&detector(rows, columns, PixelType::I16), config).unwrap(),
            there: Arc::default(),
            bytes: rows * columns * 2,
        }
    }

    fn begin(&self) {
        self.stream.begin(&series()).unwrap();
    }

    fn image(&self, n: u64) -> ImageRecord<Dense<Buffer>> {
        self.there.fetch_add(1, Ordering::Relaxed);
        let buffer = Buffer {
            bytes: pixels(n, self.bytes),
            there: Arc::clone(&self.there),
        };
        ImageRecord {
            facts: facts(n),
            pixels: Dense::Raw(buffer),
            found: None,
        }
    }

    fn until(&self, what: &str, is: impl Fn(&LiveCounts) -> bool) {
        let since = Instant::now();
        while !is(self.stream.counts()) {
            let late = since.elapsed() > Duration::from_secs(20);
            assert!(!late, "{what}: {:?}", self.stream.counts());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the stream; `pushed` images have an outcome each.
    fn finish(self, pushed: u64) -> Arc<LiveCounts> {
        let counts = Arc::clone(self.stream.counts());
        self.stream.finish().unwrap();
        let all = [
            &counts.sent,
            &counts.overrun,
            &counts.no_client,
            &counts.refused,
            &counts.lost,
        ];
        let all: u64 = all.iter().map(|count| count.get()).sum();
        assert_eq!(all, pushed, "{counts:?}");
        assert_eq!(self.there.load(Ordering::Relaxed), 0);
        counts
    }
}

fn config() -> LiveConfig {
    LiveConfig {
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        queue: 8,
        linger: Duration::from_secs(10),
        ..LiveConfig::default()
    }
}

fn series() -> Series {
    Series {
        id: 7,
        unique_id: "run-0007".into(),
        images: 100,
        start: SystemTime::UNIX_EPOCH + Duration::from_millis(1_500),
        first_frame: 1000,
        first_timestamp: 1 << 40,
        channel: "photons".into(),
        axis: None,
    }
}

fn facts(n: u64) -> ImageFacts {
    ImageFacts {
        frame: 1000 + n,
        timestamp: (1 << 40) + 5000 * n,
        exposure: 100,
        bunch: 3 * n,
        peaks: 4,
        kept: true,
        loss: LossMap::new(&[0b101]),
        stack: pollux_images::stages::StackFacts::default(),
    }
}

fn pixels(n: u64, bytes: usize) -> Vec<u8> {
    let mut pixels = vec![n as u8; bytes];
    for (i, pixel) in pixels.iter_mut().take(1000).enumerate() {
        *pixel = (i as u64 * 7 + n) as u8;
    }
    pixels
}

/// A PULL socket.
struct Pull(TcpStream);

impl Pull {
    fn connect(address: SocketAddr) -> Self {
        let mut socket = TcpStream::connect(address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        socket.write_all(&zmtp::greeting()).unwrap();
        socket
            .write_all(b"\x04\x1A\x05READY\x0BSocket-Type\0\0\0\x04PULL")
            .unwrap();
        let mut greeting = [0; 64];
        socket.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting, zmtp::greeting());
        let mut pull = Self(socket);
        let (flags, ready) = pull.frame().unwrap();
        assert_eq!((flags, &ready[..6]), (4, &b"\x05READY"[..]));
        assert!(ready.ends_with(b"\x0BSocket-Type\0\0\0\x04PUSH"));
        pull
    }

    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut flags = [0];
        self.0.read_exact(&mut flags).ok()?;
        let len = if flags[0] & 2 == 0 {
            let mut len = [0];
            self.0.read_exact(&mut len).unwrap();
            len[0].into()
        } else {
            let mut len = [0; 8];
            self.0.read_exact(&mut len).unwrap();
            u64::from_be_bytes(len) as usize
        };
        let mut body = vec![0; len];
        self.0.read_exact(&mut body).unwrap();
        Some((flags[0], body))
    }

    /// The next message; `None` if the connection has ended.
    fn message(&mut self) -> Option<Value> {
        let (flags, body) = self.frame()?;
        assert_eq!(flags & 4, 0, "a command");
        let mut rest = &body[..];
        let message = ciborium::from_reader(&mut rest).unwrap();
        assert!(rest.is_empty(), "{message:?} and more");
        Some(message)
    }

    /// Message types until the connection ends, with the numbers of images.
    fn rest(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(message) = self.message() {
            let kind = get(&message, "type").as_text().unwrap().to_owned();
            all.push(match kind.as_str() {
                "image" => format!("{}", number(get(&message, "image_id"))),
                _ => kind,
            });
        }
        all
    }
}

fn get<'a>(map: &'a Value, key: &str) -> &'a Value {
    let pairs = map.as_map().unwrap();
    let found = pairs.iter().find(|(name, _)| name.as_text() == Some(key));
    &found.unwrap_or_else(|| panic!("{key} in {map:?}")).1
}

fn number(value: &Value) -> u64 {
    value.as_integer().unwrap().try_into().unwrap()
}

fn ratio(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(number).collect()
}

#[test]
fn a_client_gets_start_images_and_end() {
    let rig = Rig::new(ROWS, COLUMNS, &config());
    let mut client = Pull::connect(rig.stream.address());
    rig.until("connected", |counts| counts.clients.get() == 1);
    rig.begin();
    let queue = rig.stream.queue();
    for n in 0..3 {
        assert!(queue.push(rig.image(n)));
    }
    rig.stream.end().unwrap();
    let start = client.message().unwrap();
    assert_eq!(
        start.as_map().unwrap()[0],
        (Value::from("type"), Value::from("start"))
    );
    assert_eq!(get(&start, "image_size_x"), &Value::from(6));
    assert_eq!(get(&start, "image_size_y"), &Value::from(4));
    assert_eq!(get(&start, "image_dtype"), &Value::from("int16"));
    assert_eq!(
        get(&start, "channels"),
        &Value::from(vec![Value::from("photons")])
    );
    assert_eq!(get(&start, "series_unique_id"), &Value::from("run-0007"));
    assert_eq!(get(&start, "number_of_images"), &Value::from(100));
    assert_eq!(get(&start, "saturation_value"), &Value::from(32766));
    assert_eq!(get(&start, "frame_time"), &Value::from(5e-4));
    let date = Value::Tag(0, Box::new(Value::from("1970-01-01T00:00:01.500000Z")));
    assert_eq!(get(&start, "arm_date"), &date);
    for n in 0..3 {
        let image = client.message().unwrap();
        assert_eq!(
            image.as_map().unwrap()[0],
            (Value::from("type"), Value::from("image"))
        );
        assert_eq!(number(get(&image, "image_id")), n);
        assert_eq!(number(get(&image, "series_id")), 7);
        assert_eq!(get(&image, "series_date"), &date);
        assert_eq!(ratio(get(&image, "start_time")), [5000 * n, 10_000_000]);
        assert_eq!(
            ratio(get(&image, "stop_time")),
            [5000 * n + 100, 10_000_000]
        );
        assert_eq!(ratio(get(&image, "real_time")), [100, 10_000_000]);
        let user = get(&image, "user_data");
        assert_eq!(number(get(user, "frame_number")), 1000 + n);
        assert_eq!(number(get(user, "bunch_id")), 3 * n);
        assert_eq!(number(get(user, "packets_missing")), 2);
        let shape = Value::from(vec![Value::from(4), Value::from(6)]);
        let bytes = Value::from(pixels(n, 48));
        let typed = Value::Tag(77, Box::new(bytes));
        let array = Value::Tag(40, Box::new(Value::from(vec![shape, typed])));
        assert_eq!(get(get(&image, "data"), "photons"), &array);
    }
    let end = client.message().unwrap();
    assert_eq!(get(&end, "type"), &Value::from("end"));
    assert_eq!(number(get(&end, "series_id")), 7);
    let counts = rig.finish(3);
    assert_eq!((counts.sent.get(), counts.connected.get()), (3, 1));
}

#[test]
fn a_compressed_image_keeps_its_bytes() {
    let config = config();
    let stream = LiveStream::start(&detector(ROWS, COLUMNS, PixelType::F32), &config).unwrap();
    let mut client = Pull::connect(stream.address());
    while stream.counts().clients.get() == 0 {
        std::thread::yield_now();
    }
    stream.begin(&series()).unwrap();
    let mut bytes = 96u64.to_be_bytes().to_vec();
    bytes.extend([0, 0, 32, 0, 1, 2, 3]);
    let record = ImageRecord {
        facts: facts(0),
        pixels: Dense::BitshuffleLz4(bytes.clone()),
        found: None,
    };
    stream.queue().push(record);
    client.message().unwrap();
    let image = client.message().unwrap();
    let array = get(get(&image, "data"), "photons").as_tag().unwrap().1;
    let compressed = vec![Value::from("bslz4"), Value::from(4), Value::from(bytes)];
    let compressed = Value::Tag(56_500, Box::new(Value::from(compressed)));
    assert_eq!(
        array.as_array().unwrap()[1],
        Value::Tag(85, Box::new(compressed))
    );
    stream.finish().unwrap();
}

#[test]
fn images_without_a_client_are_dropped_and_a_late_client_gets_the_start() {
    let rig = Rig::new(ROWS, COLUMNS, &config());
    let queue = rig.stream.queue();
    // Outside of a series.
    queue.push(rig.image(0));
    rig.until("refused", |counts| counts.refused.get() == 1);
    rig.begin();
    for n in 0..5 {
        queue.push(rig.image(n));
    }
    rig.until("dropped", |counts| counts.no_client.get() == 5);
    assert_eq!(rig.there.load(Ordering::Relaxed), 0);
    let mut client = Pull::connect(rig.stream.address());
    rig.until("connected", |counts| counts.clients.get() == 1);
    for n in 5..8 {
        queue.push(rig.image(n));
    }
    rig.stream.end().unwrap();
    // A client after the end gets nothing.
    rig.until("sent", |counts| counts.sent.get() == 3);
    let mut late = Pull::connect(rig.stream.address());
    rig.until("connected", |counts| counts.clients.get() == 2);
    rig.finish(9);
    assert_eq!(client.rest(), ["start", "5", "6", "7", "end"]);
    assert!(late.rest().is_empty());
}

#[test]
fn several_clients_share_the_images_and_a_client_comes_back() {
    let rig = Rig::new(ROWS, COLUMNS, &config());
    let mut clients = [
        Pull::connect(rig.stream.address()),
        Pull::connect(rig.stream.address()),
    ];
    rig.until("connected", |counts| counts.clients.get() == 2);
    rig.begin();
    let queue = rig.stream.queue();
    for n in 0..6 {
        queue.push(rig.image(n));
        rig.until("sent", |counts| counts.sent.get() == n + 1);
    }
    drop(std::mem::replace(
        &mut clients[0],
        Pull::connect(rig.stream.address()),
    ));
    rig.until("back", |counts| {
        counts.connected.get() == 3 && counts.clients.get() == 2
    });
    for n in 6..8 {
        queue.push(rig.image(n));
        rig.until("sent", |counts| counts.sent.get() == n + 1);
    }
    rig.finish(8);
    let [back, stayed] = clients.map(|mut client| client.rest());
    assert_eq!((back.len(), back[0].as_str()), (2, "start"));
    assert_eq!((stayed.len(), stayed[0].as_str()), (5, "start"));
}

#[test]
fn a_client_that_stops_reading_costs_images_and_nothing_else() {
    let stall = Duration::from_millis(700);
    let config = LiveConfig { stall, ..config() };
    let rig = Rig::new(1024, 1024, &config);
    let stopped = Pull::connect(rig.stream.address());
    rig.until("connected", |counts| counts.clients.get() == 1);
    rig.begin();
    let queue = rig.stream.queue();
    let mut pushed = 0;
    let mut longest = Duration::ZERO;
    while rig.stream.counts().stalled_clients.get() == 0 {
        let image = rig.image(pushed);
        pushed += 1;
        let before = Instant::now();
        queue.push(image);
        longest = longest.max(before.elapsed());
        assert!(rig.there.load(Ordering::Relaxed) <= config.held_images());
        std::thread::sleep(Duration::from_millis(2));
    }
    println!("{pushed} images, the longest push took {longest:?}");
    // It is disconnected, and another one is served with new images.
    let counts = rig.stream.counts();
    assert!(
        counts.overrun.get() > 0 && counts.lost.get() == 1,
        "{counts:?}"
    );
    let there = || rig.there.load(Ordering::Relaxed);
    rig.until("dropped", |counts| {
        counts.no_client.get() >= 8 && there() == 0
    });
    let mut next = Pull::connect(rig.stream.address());
    rig.until("connected", |counts| counts.clients.get() == 1);
    queue.push(rig.image(pushed));
    rig.stream.end().unwrap();
    let reader = std::thread::spawn(move || next.rest());
    rig.finish(pushed + 1);
    assert_eq!(
        reader.join().unwrap(),
        ["start", &pushed.to_string(), "end"]
    );
    drop(stopped);
}

#[test]
fn other_peers_are_refused_and_the_stream_goes_on() {
    let rig = Rig::new(ROWS, COLUMNS, &config());
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xFF; 64]] {
        let mut peer = TcpStream::connect(rig.stream.address()).unwrap();
        peer.write_all(bytes).unwrap();
        // The greeting, then the end.
        let mut all = Vec::new();
        let _ = peer.read_to_end(&mut all);
    }
    rig.until("refused", |counts| counts.refused_clients.get() == 2);
    let mut client = Pull::connect(rig.stream.address());
    rig.until("connected", |counts| counts.clients.get() == 1);
    rig.begin();
    let queue = rig.stream.queue();
    let mut wrong = rig.image(0);
    if let Dense::Raw(buffer) = &mut wrong.pixels {
        buffer.bytes.pop();
    }
    queue.push(wrong);
    queue.push(rig.image(1));
    let counts = rig.finish(2);
    assert_eq!(counts.refused.get(), 1);
    assert_eq!(client.rest(), ["start", "1"]);
}

#[test]
fn a_request_that_cannot_be_met_is_refused() {
    let detector = detector(ROWS, COLUMNS, PixelType::I16);
    let start = |config: &LiveConfig| LiveStream::<Vec<u8>>::start(&detector, config);
    let first = start(&config()).unwrap();
    let taken = LiveConfig {
        address: first.address(),
        ..config()
    };
    let error = start(&taken).err().unwrap().to_string();
    assert!(
        error.contains("Address already in use") && error.contains("free port"),
        "{error}"
    );
    let no_queue = LiveConfig {
        queue: 0,
        ..config()
    };
    assert!(matches!(start(&no_queue).err().unwrap(), LiveError::Queue));
    first.finish().unwrap();
}
