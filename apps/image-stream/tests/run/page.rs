//! The page of a run, without a browser: its pictures and curves are those of the detector's images, and
//! no client can harm the run. scripts/page-test tests it with a browser.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use pollux_emulator::images::config::ImagesConfig;
use serde_json::Value;

use crate::capture::{Capture, detector};
use crate::{fail, json, program};

/// Longest wait, on a machine with other work.
const PATIENCE: Duration = Duration::from_mins(1);

const STAGES: &str = "[[stage]]\nname = \"peaks\"\n[[stage]]\nname = \"integrate\"\n\
                      geometry = { dist = 0.1, poni1 = 0.0192, poni2 = 0.0384, pixel1 = 75e-6, pixel2 = 75e-6 }\n\
                      curve = { unit = \"r_mm\", bins = 400, range = [0.0, 40.0], solid_angle = false }\n";

/// A run with a page, which is interrupted when it is dropped.
struct Running {
    child: Child,
    address: String,
    report: tempfile::TempPath,
}

impl Running {
    fn new(arguments: &[&str], config: Option<&Path>) -> Self {
        let report = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mut command = program();
        command.args(["--http", "127.0.0.1:0", "--force", "--report"]);
        command.arg(&report).args(arguments);
        if let Some(config) = config {
            command.arg("--config").arg(config);
        }
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(errors.read_line(&mut line).unwrap() > 0, "it has no page");
            if let Some((_, address)) = line.split_once("the run page is at http://") {
                break address.trim().trim_end_matches('/').to_owned();
            }
        };
        // It must not wait for a reader.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        Self {
            child,
            address,
            report,
        }
    }

    /// The answer to a request: its head and its body.
    fn ask(&self, path: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let head = answer.windows(4).position(|end| end == b"\r\n\r\n");
        let body = answer.split_off(head.unwrap() + 4);
        (String::from_utf8(answer).unwrap(), body)
    }

    fn json(&self, path: &str) -> Value {
        let (head, body) = self.ask(path);
        assert!(head.contains("application/json"), "{path}: {head}");
        serde_json::from_slice(&body).unwrap()
    }

    /// A picture: its header and its pixels. Waits for the first one.
    fn picture(&self, query: &str) -> (Value, Vec<f32>) {
        let mut picture = None;
        until("there is a picture", || {
            let (head, body) = self.ask(&format!("/image.bin?{query}"));
            if head.starts_with("HTTP/1.1 204") {
                return false;
            }
            assert!(head.contains("application/octet-stream"), "{query}: {head}");
            picture = Some(parsed(&body));
            true
        });
        picture.unwrap()
    }

    /// Interrupts the run; its report.
    fn end(mut self) -> Value {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        let report = json(&self.report);
        assert_eq!(report["ledger"]["balanced"], true);
        report
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended where the test has.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let from = Instant::now();
    while !holds() {
        assert!(from.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Header and pixels of a picture.
fn parsed(body: &[u8]) -> (Value, Vec<f32>) {
    let length = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&body[4..4 + length]).unwrap();
    let (pixels, rest) = body[4 + length..].as_chunks();
    assert!(length.is_multiple_of(4) && rest.is_empty());
    let pixels: Vec<_> = pixels.iter().map(|&b| f32::from_le_bytes(b)).collect();
    let shape = number(&header["rows"]) * number(&header["columns"]);
    assert_eq!(pixels.len(), shape);
    (header, pixels)
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// A detector whose capture takes a while at its own pace.
fn slow(frames: u64, rate: f64) -> ImagesConfig {
    ImagesConfig {
        rate,
        ..detector(frames)
    }
}

/// The port that reads a capture at the pace of the detector.
fn paced(capture: &Capture) -> String {
    format!("{},pace=recorded", capture.port())
}

#[test]
fn a_picture_of_a_raw_image_is_what_the_detector_sends() {
    let capture = Capture::new(slow(100, 5.0));
    let config = capture.write("");
    let run = Running::new(&["--port", &paced(&capture)], Some(&config));
    let (header, pixels) = run.picture("view=latest");
    assert_eq!(header["region"], serde_json::json!([0, 0, 512, 1024]));
    assert_eq!(
        (&header["view"], &header["factor"]),
        (&"latest".into(), &1.into())
    );
    let expected = capture.raw(header["frame"].as_u64().unwrap());
    // An error code has no value.
    let value = |raw: &u16| match *raw {
        0xFFFF => None,
        raw => Some(f32::from(raw)),
    };
    assert!(
        pixels
            .iter()
            .map(|v| (!v.is_nan()).then_some(*v))
            .eq(expected.iter().map(value))
    );

    // A part of it, and the largest of squares.
    let (header, part) = run.picture("view=latest&row=100&column=1000&rows=9&columns=99&factor=4");
    assert_eq!(header["region"], serde_json::json!([100, 1000, 9, 24]));
    assert_eq!(
        (number(&header["rows"]), number(&header["columns"])),
        (3, 6)
    );
    let raw = capture.raw(header["frame"].as_u64().unwrap());
    for (i, &value) in part.iter().enumerate() {
        let (row, column) = (100 + i / 6 * 4, 1000 + i % 6 * 4);
        let rows = row..(row + 4).min(109);
        let square = rows.flat_map(|row| raw[row * 1024 + column..][..4].iter());
        let largest = square.filter(|&&raw| raw != 0xFFFF).max();
        assert_eq!(value.to_bits(), f32::from(*largest.unwrap()).to_bits());
    }

    // Raw images have no statistics and no stages.
    for path in ["/image.bin?view=mean", "/curve.json"] {
        assert!(run.ask(path).0.starts_with("HTTP/1.1 404"), "{path}");
    }
    let facts = &run.json("/run.json")["detector"];
    assert_eq!(
        (&facts["unit"], &facts["statistics"]),
        (&"raw".into(), &false.into())
    );
    run.end();
}

/// Photons of an image of the detector, in double precision; bad and saturated ones have none.
fn photons(capture: &Capture, frame: u64) -> Vec<Option<f64>> {
    let response = capture.response();
    let mask = response.mask();
    let raw = capture.raw(frame);
    let pixel = |(i, &raw): (usize, &u16)| {
        let gain = [0, 1, 3, 2][usize::from(raw >> 14)];
        let is_code = [0xC000, 0xFFFF, 0x4000].contains(&raw);
        (mask[i] == 0 && gain < 3 && !is_code).then(|| {
            let pedestal = f64::from(response.pedestals(gain)[i]);
            (f64::from(raw & 0x3FFF) - pedestal) / f64::from(response.gains(gain)[i])
        })
    };
    raw.iter().enumerate().map(pixel).collect()
}

#[test]
fn pictures_peaks_and_curves_are_those_of_the_photons() {
    let mut emulated = slow(120, 6.0);
    emulated.pattern.rings = 3;
    emulated.pattern.ring_photons = 10.0;
    let capture = Capture::new(emulated);
    let config = capture.configure("i16", STAGES);
    let run = Running::new(&["--port", &paced(&capture)], Some(&config));
    let (header, pixels) = run.picture("view=kept");
    let frame = header["frame"].as_u64().unwrap();
    for (pixel, photons) in pixels.iter().zip(photons(&capture, frame)) {
        match photons {
            Some(photons) => assert!(
                (f64::from(*pixel) - photons).abs() < 0.502,
                "{pixel} {photons}"
            ),
            None => assert!(!pixel.is_finite(), "{pixel}"),
        }
    }
    let bad = pixels.iter().filter(|pixel| pixel.is_nan()).count();
    assert_eq!(number(&header["levels"]["bad"]), bad);
    assert_eq!(header["image"]["vetoed"], false);

    // Peaks are where the detector has them.
    let found: Vec<Vec<f64>> = serde_json::from_value(header["image"]["peaks"].clone()).unwrap();
    let truth = capture.peaks(frame);
    let near = |row: f64, column: f64| {
        truth
            .iter()
            .any(|peak| (peak.row - row).hypot(peak.column - column) < 2.0)
    };
    let right = found.iter().filter(|peak| near(peak[0], peak[1])).count();
    assert!(
        found.len() > 10 && right * 10 >= found.len() * 9,
        "{right} of {}",
        found.len()
    );

    // All images of the detector have been seen: the maximum is that of each of them.
    until("all images were seen", || {
        number(&run.json("/run.json")["images"]["built"]) > 12
    });
    let all: Vec<_> = (0..4).map(|frame| photons(&capture, frame)).collect();
    until("the maximum includes them", || {
        let (header, pixels) = run.picture("view=maximum");
        let is_new = number(&header["images"]) > 12;
        for (i, pixel) in pixels.iter().enumerate().filter(|_| is_new) {
            let of_pixel = all.iter().filter_map(|image| image[i]);
            let largest = of_pixel.fold(f64::NEG_INFINITY, f64::max);
            let pixel = f64::from(*pixel);
            assert!(
                !pixel.is_finite() || (pixel - largest).abs() < 0.502,
                "{pixel} {largest}"
            );
        }
        is_new
    });
    let (header, mean) = run.picture("view=mean");
    let images = header["images"].as_f64().unwrap();
    for (i, mean) in mean.iter().enumerate() {
        let of_pixel: Vec<f64> = all.iter().filter_map(|image| image[i]).collect();
        if of_pixel.len() == 4 && mean.is_finite() {
            let expected = of_pixel.iter().sum::<f64>() / 4.0;
            let spread = of_pixel.iter().copied().fold(0.0, f64::max);
            // Each image was seen up to three times more than another one; pixels are rounded.
            let tolerance = 0.51 + 4.0 * spread / images;
            assert!(
                (f64::from(*mean) - expected).abs() < tolerance,
                "{mean} {expected}"
            );
        }
    }

    // The curves are largest on the innermost ring.
    until("there are curves", || {
        run.ask("/curve.json").0.starts_with("HTTP/1.1 200")
    });
    let curves = run.json("/curve.json");
    let radius = capture.rings()[0].radius * 0.075;
    assert_eq!(curves["unit"], "r_mm");
    for curve in ["last", "mean"] {
        let curve: Vec<f64> = serde_json::from_value(curves[curve].clone()).unwrap();
        // Within the beam there are few pixels.
        let bins = (50..curve.len()).max_by(|&a, &b| curve[a].total_cmp(&curve[b]));
        let at = curves["radial"][bins.unwrap()].as_f64().unwrap();
        assert!((at - radius).abs() < 0.2, "{at} mm, not {radius}");
    }
    let report = run.end();
    assert_eq!(report["hit_rate"], 1.0);
}

#[test]
fn rows_of_lost_packets_are_named() {
    let mut emulated = slow(100, 10.0);
    emulated.faults.lost = 0.02;
    let capture = Capture::new(emulated);
    let config = capture.configure("i16", "");
    let run = Running::new(&["--port", &paced(&capture)], Some(&config));
    until("an image lacks packets", || {
        let (header, pixels) = run.picture("view=latest");
        let frame = header["frame"].as_u64().unwrap();
        let missing: Vec<[usize; 2]> =
            serde_json::from_value(header["image"]["missing_rows"].clone()).unwrap();
        let rows: Vec<usize> = missing
            .iter()
            .flat_map(|[first, n]| *first..first + n)
            .collect();
        let faults = capture.report.done.fault_list.iter();
        let mut lost: Vec<usize> = faults
            .filter(|fault| fault.frame == frame)
            .flat_map(|fault| {
                let first = (usize::from(fault.interface) * 64 + usize::from(fault.packet)) * 4;
                first..first + 4
            })
            .collect();
        lost.sort_unstable();
        assert_eq!(rows, lost, "frame {frame}");
        assert!(
            rows.iter()
                .all(|row| pixels[row * 1024..][..1024].iter().all(|v| v.is_nan()))
        );
        !rows.is_empty()
    });
    run.end();
}

#[test]
fn the_demonstration_has_all_of_the_page() {
    let run = Running::new(&["--images", "1000000"], None);
    let (head, page) = run.ask("/");
    assert!(head.contains("default-src 'none'"), "{head}");
    let page = String::from_utf8(page).unwrap();
    let assets = [
        "page.css",
        "image.css",
        "parts.js",
        "plots.js",
        "poll.js",
        "colours.js",
        "image.js",
        "curve.js",
        "page.js",
    ];
    for asset in assets {
        assert!(page.contains(&format!("\"{asset}\"")), "{page}");
        assert!(
            run.ask(&format!("/{asset}")).0.starts_with("HTTP/1.1 200"),
            "{asset}"
        );
    }
    for view in ["latest", "kept", "mean", "maximum"] {
        let (header, _) = run.picture(&format!("view={view}&factor=4"));
        assert_eq!(header["view"], view);
    }
    let now = run.json("/run.json");
    assert_eq!(
        (&now["end"], &now["detector"]["curves"]),
        (&"running".into(), &true.into())
    );
    until("the past is noted", || {
        let minute = run.json("/minute.json");
        let notes = minute["notes"].as_array().unwrap();
        notes.len() > 2 && notes[notes.len() - 1]["kept"].as_u64().unwrap() > 0
    });
    until("there are curves", || {
        let (head, body) = run.ask("/curve.json");
        head.starts_with("HTTP/1.1 200") && !body.is_empty()
    });
    let (_, metrics) = run.ask("/metrics");
    let metrics = String::from_utf8(metrics).unwrap();
    for images in ["run", "last-1000"] {
        let name = format!("pollux_image_hit_rate{{images=\"{images}\"}} 0.");
        assert!(metrics.contains(&name), "{metrics}");
    }
    let report = run.end();
    let rate = report["hit_rate"].as_f64().unwrap();
    assert!((0.05..0.6).contains(&rate), "{rate}");
}

#[test]
fn who_asks_badly_does_not_hurt_the_run() {
    let run = Running::new(&["--images", "1000000"], None);
    for (query, named) in [
        ("view=newest", "give latest, kept, mean or maximum"),
        ("row=-1", "row=-1: give a whole number"),
        ("factor=0", "at least 1"),
        ("size=4", "`size=4`: give view"),
    ] {
        let (head, body) = run.ask(&format!("/image.bin?{query}"));
        assert!(head.starts_with("HTTP/1.1 400"), "{query}: {head}");
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains(named), "{query}: {body}");
    }
    // Numbers that are too large are those of the border.
    let far = "view=latest&row=4000000000&column=4000000000&rows=0&columns=0&factor=4000000000";
    let (header, pixels) = run.picture(far);
    assert_eq!(header["region"], serde_json::json!([511, 1023, 1, 1]));
    assert_eq!(pixels.len(), 1);
    // More clients than are served at a time, who ask for large pictures and never read them.
    let open: Vec<_> = (0..60)
        .map(|_| {
            let mut stream = TcpStream::connect(&run.address).unwrap();
            let _ = stream.write_all(b"GET /image.bin HTTP/1.1\r\nHost: x\r\n\r\n");
            stream
        })
        .collect();
    let built = |now: &Value| number(&now["images"]["built"]);
    let before = built(&run.json("/run.json"));
    until("images are processed", || {
        built(&run.json("/run.json")) > before
    });
    let report = run.end();
    assert_eq!(report["end"], "stopped");
    drop(open);
}

#[test]
fn an_address_that_cannot_be_served_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let errors = fail(program().args(["--images", "10", "--http", &address]), 1);
    assert!(
        errors.contains("the run page") && errors.contains(&address),
        "{errors}"
    );
    fail(program().args(["--http", "localhost"]), 2);
}
