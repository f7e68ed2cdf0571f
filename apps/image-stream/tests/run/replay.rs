//! Captures: every frame and packet is accounted for, and the results do not depend on how they are
//! processed.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::capture::{Capture, detector, report};
use crate::{fail, json, program, succeed};

const STAGES: &str = "[[stage]]\nname = \"veto\"\nmin_photons = 10.0\nmin_pixels = 5\n\
                      [[stage]]\nname = \"peaks\"\nmin_peaks = 3\n[[stage]]\nname = \"compress\"\n";

/// Replays a capture; its report.
pub(crate) fn replay(capture: &Capture, config: &std::path::Path, more: &[&str]) -> Value {
    let report = report(capture.folder.path());
    let mut command = program();
    command.args(["--quiet", "--force", "--port", &capture.port(), "--config"]);
    command.arg(config).arg("--report").arg(&report).args(more);
    succeed(&mut command);
    json(&report)
}

fn counts(report: &Value, of: &str) -> Vec<(String, u64)> {
    let counts = report[of].as_object().unwrap();
    let mut counts: Vec<_> = counts
        .iter()
        .map(|(name, count)| (name.clone(), count.as_u64().unwrap()))
        .collect();
    counts.sort();
    counts
}

#[test]
fn a_capture_without_faults_gives_all_its_images() {
    let capture = Capture::new(detector(20));
    let config = capture.configure("i16", STAGES);
    let run = replay(&capture, &config, &[]);
    assert_eq!(run["end"], "exhausted");
    let frames = [
        ("complete", 20),
        ("discarded", 0),
        ("early", 0),
        ("empty", 0),
        ("partial", 0),
        ("received", 20),
    ];
    let frames: Vec<_> = frames.map(|(name, n)| (name.to_owned(), n)).into();
    assert_eq!(counts(&run, "frames"), frames);
    assert_eq!(run["packets"]["placed"], 20 * 128);
    assert_eq!(run["packets"]["missing"], 0);
    assert_eq!(run["images"]["built"], 20);
    assert_eq!(run["ledger"]["balanced"], true);
    assert_eq!(run["ledger"]["delivered"], 20 * 128);
    assert!(run["images"]["peaks"].as_u64().unwrap() > 20 * 10, "{run}");
    for stage in ["veto", "peaks", "compress", "total"] {
        assert!(run["latency_us"][stage].is_object(), "{stage}: {run}");
    }
}

/// The same images, peaks and vetoes by any number of workers, and with any type of pixels.
#[test]
fn results_do_not_depend_on_workers() {
    let mut emulated = detector(24);
    emulated.pattern.hit_rate = 0.5;
    let capture = Capture::new(emulated);
    let config = capture.configure("i16", STAGES);
    let alone = replay(&capture, &config, &[]);
    assert!(alone["images"]["vetoed"].as_u64().unwrap() > 0, "{alone}");
    assert!(alone["images"]["kept"].as_u64().unwrap() > 0, "{alone}");
    for workers in ["1", "2"] {
        let run = replay(&capture, &config, &["--workers", workers]);
        assert_eq!(counts(&run, "images"), counts(&alone, "images"));
        assert_eq!(counts(&run, "frames"), counts(&alone, "frames"));
        let by_workers: u64 = run["workers"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_u64)
            .sum();
        assert_eq!(by_workers, 24);
    }
    for pixels in ["i32", "f32"] {
        let config = capture.configure(pixels, STAGES);
        let run = replay(&capture, &config, &[]);
        assert_eq!(run["images"]["kept"], alone["images"]["kept"], "{pixels}");
    }
}

/// Exactly the frames whose packets were lost are partial, and each policy discards what it says.
#[test]
fn lost_packets_make_their_frames_partial() {
    let mut emulated = detector(100);
    emulated.faults.lost = 0.01;
    let capture = Capture::new(emulated);
    let done = &capture.report.done;
    assert_eq!(done.faults_not_listed, 0);
    let lost: Vec<_> = done.fault_list.iter().collect();
    let frames: BTreeSet<u64> = lost.iter().map(|fault| fault.frame).collect();
    assert!(frames.len() > 50, "{}", frames.len());
    let config = capture.configure("i16", "");
    let run = replay(&capture, &config, &[]);
    assert_eq!(run["frames"]["partial"], frames.len());
    assert_eq!(run["frames"]["complete"], 100 - frames.len());
    assert_eq!(run["packets"]["missing"], lost.len());
    assert_eq!(run["packets"]["placed"], 100 * 128 - lost.len());
    assert_eq!(run["images"]["built"], 100);
    assert_eq!(run["ledger"]["balanced"], true);

    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("[detector]", "[detector]\ndiscard = \"partial\"");
    std::fs::write(&config, text).unwrap();
    let run = replay(&capture, &config, &[]);
    assert_eq!(run["frames"]["discarded"], frames.len());
    assert_eq!(run["images"]["built"], 100 - frames.len());
}

/// A lost packet costs its own frame alone, also if the image buffers last for less than the timeout; the run says
/// that they do.
#[test]
fn a_lost_packet_costs_one_frame_whose_buffer_is_needed_before_its_time() {
    // Of 64 images half are being received, and a frame is closed four frames before its buffer is needed.
    const LATER: u64 = 28;
    const FRAMES: u64 = 120;
    let mut emulated = detector(FRAMES);
    emulated.rate = 1000.0;
    emulated.faults.lost = 0.002;
    let capture = Capture::new(emulated);
    let lost = &capture.report.done.fault_list;
    let frames: BTreeSet<u64> = lost.iter().map(|fault| fault.frame).collect();
    // The first frame is number 1.
    let early = frames.iter().filter(|&&frame| frame + LATER <= FRAMES);
    let early = early.count();
    assert!((8..60).contains(&early), "{frames:?}");
    let config = capture.write("timeout_us = 60000000\n");
    let path = report(capture.folder.path());
    let mut command = program();
    command.args(["--force", "--port", &capture.port(), "--config"]);
    let output = succeed(command.arg(config).arg("--report").arg(&path));
    let run = json(&path);
    assert_eq!(run["frames"]["partial"], frames.len(), "{run}");
    assert_eq!(run["frames"]["complete"], FRAMES as usize - frames.len());
    assert_eq!(run["frames"]["early"], early);
    assert_eq!(run["packets"]["missing"], lost.len());
    assert_eq!(run["ledger"]["dropped"], serde_json::json!({}));
    let errors = String::from_utf8_lossy(&output.stderr);
    let warning = "were closed before [detector] timeout_us = 60000000";
    assert_eq!(errors.matches(warning).count(), 1, "{errors}");
}

/// The loss map of the file says which packets of which frames were lost, and no others.
#[cfg(feature = "hdf5")]
#[test]
fn the_loss_map_of_the_file_names_the_lost_packets() {
    let mut emulated = detector(60);
    emulated.faults.lost = 0.005;
    let capture = Capture::new(emulated);
    let interfaces = 2;
    let expected: BTreeSet<(u64, usize)> = capture
        .report
        .done
        .fault_list
        .iter()
        .map(|fault| {
            let interface = usize::from(fault.interface) % interfaces;
            (fault.frame, interface * 64 + usize::from(fault.packet))
        })
        .collect();
    assert!(expected.len() > 10);
    let config = capture.configure("i16", "[[stage]]\nname = \"compress\"\n");
    let file = capture.path("run.h5");
    let run = replay(&capture, &config, &["--out", file.to_str().unwrap()]);
    assert_eq!(run["images"]["written"], 60);
    let file = hdf5_metno::File::open(&file).unwrap();
    let frames: Vec<u64> = file
        .dataset("entry/images/frame_number")
        .unwrap()
        .read_raw()
        .unwrap();
    let losses: Vec<u64> = file
        .dataset("entry/images/packets_missing")
        .unwrap()
        .read_raw()
        .unwrap();
    let words = losses.len() / frames.len();
    let mut found = BTreeSet::new();
    for (frame, words) in frames.iter().zip(losses.chunks(words)) {
        for packet in 0..128 {
            if words[packet / 64] >> (packet % 64) & 1 == 1 {
                found.insert((*frame, packet));
            }
        }
    }
    assert_eq!(found, expected);
}

/// More images than there are buffers, of which a slow file has many at a time: a recording waits.
#[cfg(feature = "hdf5")]
#[test]
fn a_recording_waits_for_its_outputs() {
    let capture = Capture::new(detector(60));
    let text = std::fs::read_to_string(capture.write("[memory]\nimages = 8\n")).unwrap();
    let config = capture.path("small.toml");
    std::fs::write(&config, text).unwrap();
    let file = capture.path("run.h5");
    let run = replay(&capture, &config, &["--out", file.to_str().unwrap()]);
    assert_eq!(run["frames"]["complete"], 60, "{run}");
    assert_eq!(run["images"]["written"], 60, "{run}");
    assert_eq!(run["images"]["overrun"], 0);
    assert_eq!(run["ledger"]["dropped"].as_object().unwrap().len(), 0);
}

/// Copies, reordering, late and damaged packets: each ends under its cause, and nothing is lost.
#[test]
fn every_fault_is_counted_under_its_cause() {
    let mut emulated = detector(60);
    emulated.faults.duplicated = 0.01;
    emulated.faults.reordered = 0.02;
    emulated.faults.corrupted = 0.01;
    let capture = Capture::new(emulated);
    let faults = &capture.report.done.faults;
    assert!(faults.duplicated > 0 && faults.corrupted > 0);
    let config = capture.configure("i16", "");
    let run = replay(&capture, &config, &[]);
    assert_eq!(run["images"]["built"], 60, "{run}");
    assert_eq!(run["ledger"]["balanced"], true);
    // A damaged packet fails its checksum, and its place is empty unless a copy came too.
    let damaged = run["ledger"]["dropped"]["bad-checksum"]
        .as_u64()
        .unwrap_or(0);
    assert!(damaged > 0, "{run}");
    assert!(run["packets"]["missing"].as_u64().unwrap() <= damaged);
    assert!(run["packets"]["duplicate"].as_u64().unwrap() <= faults.duplicated);
    assert!(run["packets"]["duplicate"].as_u64().unwrap() > 0);
}

/// Dark frames are not images: the pedestals follow them.
#[test]
fn dark_frames_are_kept_apart() {
    let mut emulated = detector(40);
    emulated.dark_every = 4;
    let capture = Capture::new(emulated);
    let config = capture.configure("i16", &format!("[dark]\nevery = 4\n{STAGES}"));
    let run = replay(&capture, &config, &[]);
    assert_eq!(run["images"]["dark"], 10, "{run}");
    assert_eq!(run["images"]["built"], 30);
    assert_eq!(run["images"]["kept"], 30);
    let of = |outcome: &str| run["dark_pixels"][outcome].as_u64().unwrap();
    assert!(
        of("used") > 9 * (of("implausible") + of("other_gain")),
        "{run}"
    );
}

/// A pixel that is too far from its pedestal never counts: then the pedestals stay wrong, which is said.
#[test]
fn pedestals_that_do_not_follow_are_told() {
    let mut emulated = detector(80);
    emulated.dark_every = 4;
    let capture = Capture::new(emulated);
    let config = capture.configure("i16", &format!("[dark]\nevery = 4\n{STAGES}"));
    let map = capture.path("p0.bin");
    let mut pedestals = std::fs::read(&map).unwrap();
    for pedestal in pedestals.as_chunks_mut().0 {
        *pedestal = (f32::from_le_bytes(*pedestal) - 300.0).to_le_bytes();
    }
    std::fs::write(&map, pedestals).unwrap();
    let report = report(capture.folder.path());
    let mut command = program();
    command.args(["--force", "--port", &capture.port(), "--config"]);
    let output = succeed(command.arg(&config).arg("--report").arg(&report));
    let said = String::from_utf8_lossy(&output.stderr);
    let run = json(&report);
    let of = |outcome: &str| run["dark_pixels"][outcome].as_u64().unwrap();
    assert!(of("implausible") > 9 * of("used"), "{run}");
    assert!(
        said.contains("the pedestals do not follow the dark frames"),
        "{said}"
    );
}

/// A module that does not exist: every image lacks its packets.
#[test]
fn a_run_that_discards_all_images_fails() {
    let capture = Capture::new(detector(10));
    let config = capture.write("");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("modules = 1", "modules = 2\ndiscard = \"partial\"");
    std::fs::write(&config, text).unwrap();
    let mut command = program();
    command.args(["--quiet", "--port", &capture.port(), "--config"]);
    let error = fail(command.arg(&config), 1);
    assert!(error.contains("none of 10 images was built"), "{error}");
}

/// Without a calibration images are raw.
#[test]
fn raw_images_need_no_calibration() {
    let capture = Capture::new(detector(10));
    let config = capture.write("");
    let run = replay(&capture, &config, &[]);
    assert_eq!(run["frames"]["complete"], 10);
    assert_eq!(run["images"]["kept"], 10);
}

/// Two receivers at once: each gets exactly the pixels of its regions, of the images that are its own.
#[test]
fn receivers_get_their_regions() {
    let capture = Capture::new(detector(12));
    let all = capture.path("all.raw");
    let part = capture.path("part.raw");
    let receivers = format!(
        "[[receiver]]\nfile = \"{}\"\ntransfer = {{ name = \"all\" }}\n\
         [[receiver]]\nfile = \"{}\"\ntransfer = {{ name = \"part\", every = 3, \
         region = [{{ first_row = 100, rows = 20, first_column = 500, columns = 30 }}] }}\n",
        all.display(),
        part.display()
    );
    let run = replay(&capture, &capture.write(&receivers), &[]);
    let of = |n: usize| &run["receivers"][n];
    assert_eq!(
        (&of(0)["images"], &of(0)["overrun"]),
        (&12.into(), &0.into())
    );
    assert_eq!(
        (&of(1)["images"], &of(1)["overrun"]),
        (&4.into(), &0.into())
    );
    let (all, part) = (std::fs::read(all).unwrap(), std::fs::read(part).unwrap());
    let bytes = 512 * 1024 * 2;
    assert_eq!((all.len(), part.len()), (12 * bytes, 4 * 20 * 30 * 2));
    // The frames are numbered from 1: 3, 6, 9 and 12 have the remainder 0.
    let expected: Vec<u8> = [2, 5, 8, 11]
        .into_iter()
        .flat_map(|image| (100..120).map(move |row| image * bytes + (row * 1024 + 500) * 2))
        .flat_map(|first| all[first..first + 60].to_vec())
        .collect();
    assert_eq!(part, expected);
    // It is what the detector sends: a raw image.
    assert!(all[..bytes].chunks(2).any(|pixel| pixel != [0, 0]));
}
