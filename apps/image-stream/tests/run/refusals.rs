//! Wrong options and configurations: a clear error, status 2, and nothing opened.

use std::fs;

use crate::capture::{Capture, detector};
use crate::{fail, program};

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
        ("[detector]\nhorizon = 0", "horizon = 0"),
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

#[test]
fn a_wrong_calibration_names_the_file() {
    let capture = Capture::new(detector(1));
    let run = |config| {
        let port = capture.port();
        fail(program().args(["--port", &port, "--config"]).arg(config), 1)
    };
    let config = capture.configure("i16", "");
    fs::write(capture.path("p1.bin"), vec![0; 100]).unwrap();
    let error = run(&config);
    assert!(error.contains("p1.bin"), "{error}");
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
