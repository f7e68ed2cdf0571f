//! Wrong options and configurations: a clear error, status 2, and nothing opened.

use std::fs;
use std::path::Path;

use crate::capture::{Capture, detector};
use crate::{fail, program, succeed};

#[test]
fn a_wrong_configuration_names_what_is_wrong() {
    let capture = Capture::new(detector(1));
    let cases = [
        ("[detector]\nmodules = 0", "0 modules"),
        ("[detector]\ninterfaces = 3", "interfaces"),
        ("[detector]\nudp_port = 65535", "65535"),
        ("[detector]\nstack = 40", "stack = 40"),
        ("[detector]\nkind = \"pilatus\"", "pilatus"),
        (
            "[detector]\nkind = \"eiger\"\ninterfaces = 1\nbits = 4",
            "bits = 4",
        ),
        ("[detector]\nbits = 8", "bits = 8"),
        (
            "[detector]\nkind = \"eiger\"\ninterfaces = 1\nlink_gbit = 2",
            "link_gbit = 2",
        ),
        (
            "[memory]\nimages = 1099511627776",
            "[memory] images = 1099511627776",
        ),
        ("[memory]\nimages = 0", "[memory] images = 0"),
        ("[memory]\nbuffers = 0", "buffers = 0: this run needs 288"),
        ("[memory]\nbuffers = 1", "buffers = 1: this run needs 288"),
        (
            "[detector]\ntimeout_us = 0",
            "[detector] timeout_us = 0: 100",
        ),
        ("[[stage]]\nmin_photons = 1.0", "number 1: no `name`"),
        ("[detector]\nhorizon = 0", "and horizon = 0: 1 to"),
        ("[beam]\ndistance_m = nan", "[beam] distance_m = NaN"),
        ("[beam]\npixel_m = 0.0", "[beam] pixel_m = 0"),
        ("[beam]\ncentre = [inf, 1.0]", "[beam] centre = [inf, 1]"),
        ("[dark]\nevery = 1", "every = 1"),
        ("[dark]\nevery = 2", "[calibration]"),
        ("[[stage]]\nname = \"veto\"", "[calibration]"),
        ("[detector]\nmodule = 1", "unknown field `module`"),
        (
            "[[receiver]]\nfile = \"x.raw\"\ntransfer = { name = \"r\", region = [{ rows = 513, columns = 1 }] }",
            "region",
        ),
        ("not toml", "TOML"),
    ];
    for (text, expected) in cases {
        let path = capture.path("wrong.toml");
        fs::write(&path, text).unwrap();
        let port = capture.port();
        let error = fail(program().args(["--port", &port, "--config"]).arg(&path), 2);
        assert!(error.contains(expected), "{text}: {error}");
        assert!(error.contains("wrong.toml"), "{text}: {error}");
    }
}

/// What packets of several modules need not have, stacks do.
#[test]
fn stacks_of_several_modules_need_time_and_images() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (
            "modules = 2\ntimeout_us = 19999",
            "timeout_us = 19999: 20000",
        ),
        ("modules = 2\nstack = 13", "stack = 13: 1 to 12 with --rdma"),
    ];
    for (text, expected) in cases {
        let path = folder.path().join("wrong.toml");
        fs::write(&path, format!("[detector]\n{text}\n")).unwrap();
        let mut command = program();
        command.args(["--port", "null", "--rdma", "127.0.0.1:18600", "--config"]);
        let error = fail(command.arg(&path), 2);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_wrong_calibration_names_the_file() {
    let capture = Capture::new(detector(1));
    let run = |config| {
        let port = capture.port();
        fail(program().args(["--port", &port, "--config"]).arg(config), 2)
    };
    let config = capture.configure("i16", "");
    fs::write(capture.path("p1.bin"), vec![0; 100]).unwrap();
    let error = run(&config);
    assert!(error.contains("p1.bin"), "{error}");
    fs::remove_file(capture.path("p1.bin")).unwrap();
    fs::create_dir(capture.path("p1.bin")).unwrap();
    let error = run(&config).to_lowercase();
    assert!(error.contains("is a directory"), "{error}");
    fs::remove_dir(capture.path("p1.bin")).unwrap();
    pipe(&capture.path("p1.bin"));
    let error = run(&config);
    assert!(error.contains("not a regular file"), "{error}");
    fs::remove_file(capture.path("p1.bin")).unwrap();
    capture.configure("i16", "");
    fs::remove_file(capture.path("mask.bin")).unwrap();
    pipe(&capture.path("mask.bin"));
    let error = run(&config);
    assert!(error.contains("mask.bin: not a regular file"), "{error}");
    fs::remove_file(capture.path("mask.bin")).unwrap();
    let config = capture.configure("i16", "");
    fs::write(capture.path("g0.bin"), vec![0; 512 * 1024 * 4]).unwrap();
    let error = run(&config);
    assert!(
        error.contains("gain G0") && error.contains("g0.bin"),
        "{error}"
    );
    fs::remove_file(capture.path("mask.bin")).unwrap();
    let config = capture.write(
        "[calibration]\npedestals = [\"p0.bin\", \"p0.bin\", \"p2.bin\"]\n\
         gains = [\"p0.bin\", \"p0.bin\", \"p2.bin\"]\nmask = \"mask.bin\"\n",
    );
    let error = run(&config);
    assert!(
        error.contains("mask.bin") || error.contains("gain"),
        "{error}"
    );
}

/// A named pipe, of which an open waits for a writer.
fn pipe(path: &Path) {
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, path, fifo, 0o600.into(), 0).unwrap();
}

#[test]
fn memory_that_no_machine_has_is_a_wrong_configuration() {
    let capture = Capture::new(detector(1));
    for (text, expected) in [
        ("data_room = 0", "buffers of 0 B data room"),
        ("numa_node = 99", "no memory on NUMA node 99"),
    ] {
        let config = capture.write(&format!("[memory]\n{text}\n"));
        let port = capture.port();
        let mut command = program();
        let error = fail(command.args(["--port", &port, "--config"]).arg(&config), 2);
        assert!(
            error.contains(expected) && error.contains("[memory]"),
            "{error}"
        );
    }
    let config = capture.path("few.toml");
    fs::write(&config, "[memory]\nbuffers = 575\n").unwrap();
    let error = fail(program().arg("--config").arg(&config), 2);
    assert!(error.contains("needs 576 or more"), "{error}");
}

/// With --force too, and before anything is opened.
#[test]
fn a_file_that_is_written_is_no_other_file_of_the_run() {
    let capture = Capture::new(detector(1));
    let receiver = |file: &str, name: &str| {
        format!(
            "[[receiver]]\nfile = {:?}\ntransfer = {{ name = \"{name}\", region = [{{ rows = 1, columns = 1 }}] }}\n",
            capture.path(file)
        )
    };
    let config = capture.configure("i16", "");
    let text = fs::read_to_string(&config).unwrap();
    fs::hard_link(capture.path("run.pcapng"), capture.path("link")).unwrap();
    let cases = [
        ("x.raw", "./x.raw", "x.raw name the same file"),
        ("run.toml", "y.raw", "--config"),
        ("link", "y.raw", "port pcap:rx="),
        ("p1.bin", "y.raw", "[calibration]"),
        ("r.json", "y.raw", "--report"),
    ];
    for (first, second, expected) in cases {
        let more = [receiver(first, "a"), receiver(second, "b")].concat();
        fs::write(&config, format!("{text}{more}")).unwrap();
        let before = fs::read(capture.path("run.pcapng")).unwrap();
        let mut command = program();
        command.args(["--force", "--port", &capture.port(), "--config"]);
        command
            .arg(&config)
            .arg("--report")
            .arg(capture.path("r.json"));
        let error = fail(&mut command, 2);
        assert!(
            error.contains(expected) && error.contains(first),
            "{first}: {error}"
        );
        assert_eq!(fs::read(capture.path("run.pcapng")).unwrap(), before);
    }
}

/// clap has a line break for `{n}`.
#[test]
fn the_help_has_placeholders_as_they_are_written() {
    let help = succeed(program().arg("--help")).stdout;
    let help = String::from_utf8(help).unwrap();
    for text in [
        "NAME-{n}.raw",
        "{n}, the",
        "{n} in the name of a file is the next free number",
    ] {
        let words = text.split(' ').collect::<Vec<_>>().join(" ");
        let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&words), "{text}: {help}");
    }
    assert!(!help.contains('\u{1b}'));
    let vetoed = help.split("--vetoed").nth(1).unwrap();
    assert!(
        vetoed
            .trim_start()
            .starts_with("Write the images that are vetoed"),
        "{help}"
    );
    let short = succeed(program().arg("-h")).stdout;
    assert!(String::from_utf8(short).unwrap().contains("NAME-{n}.raw"));
}

#[test]
fn wrong_stages_are_named() {
    let capture = Capture::new(detector(1));
    let cases = [
        ("[[stage]]\nname = \"vetoo\"", "no stage `vetoo`"),
        (
            "[[stage]]\nname = \"veto\"\nmin_photons = 1.0",
            "min_pixels",
        ),
        (
            "[[stage]]\nname = \"peaks\"\ncriteria = { min_snrr = 1 }",
            "min_snrr",
        ),
        (
            "[[stage]]\nname = \"compress\"\nmethod = \"sparse\"",
            "min_photons",
        ),
        (
            "[[stage]]\nname = \"integrate\"\ngeometry = { dist = 0.1, poni1 = 0, poni2 = 0, rot1 = 0, \
             rot2 = 0, rot3 = 0, pixel1 = 75e-6, pixel2 = 75e-6 }\ncurve = { unit = \"r_mm\", \
             range = [900, 1000] }",
            "no pixel is in a bin",
        ),
    ];
    for (stages, expected) in cases {
        let config = capture.configure("i16", stages);
        let port = capture.port();
        let error = fail(
            program().args(["--port", &port, "--config"]).arg(&config),
            2,
        );
        assert!(error.contains(expected), "{stages}: {error}");
    }
}

/// Everything is lost and accounted for: that is a failure, with the cause.
#[test]
fn packets_of_another_detector_are_a_failure() {
    let capture = Capture::new(detector(2));
    let config = capture.path("other.toml");
    fs::write(&config, "[detector]\nkind = \"moench\"\n").unwrap();
    let port = capture.port();
    let error = fail(
        program().args(["--port", &port, "--config"]).arg(&config),
        1,
    );
    assert!(
        error.contains("dropped as detector-type") || error.contains("dropped as packet-size"),
        "{error}"
    );
}

#[test]
fn wrong_options_are_refused() {
    for (options, expected) in [
        (&["--port", "nothing:x"][..], "nothing"),
        (&["--port", "loopback", "--port", "null"], "loopback"),
        (&["--rx-loops", "2"], "demonstration"),
        (&["--config", "/nowhere/run.toml"], "/nowhere/run.toml"),
        (&["--config", "/dev/zero"], "/dev/zero: more than"),
        (&["--images", "0"], "0"),
        (&["--file-size", "1MB"], "--out"),
        (&["--cores", "0,0"], "twice"),
        (&["--control", "./control"], "--control: give a --port"),
        (&["--control", "here", "--port", "null"], "unix:PATH"),
        (&["--transfers", ".", "--port", "null"], "--control"),
        (
            &["--rdma", "127.0.0.1:0", "--port", "null"],
            "--rdma 127.0.0.1:0: give the port",
        ),
    ] {
        let error = fail(program().args(options), 2);
        assert!(error.contains(expected), "{options:?}: {error}");
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let capture = Capture::new(detector(2));
    let config = capture.write("");
    let out = capture.path("run.h5");
    fs::write(&out, "mine").unwrap();
    let port = capture.port();
    let mut command = program();
    command.args(["--port", &port, "--config"]).arg(&config);
    let error = fail(command.arg("--out").arg(&out), 2);
    assert!(error.contains("run.h5"), "{error}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
}
