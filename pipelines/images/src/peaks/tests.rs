//! Cases with known results; `oracle` compares with a plain implementation, `truth` with theory.

use pollux_pmd_testkit::guard::listen;

use super::*;

mod oracle;
mod scene;
mod truth;

const SMALL: Shape = Shape {
    rows: 64,
    columns: 75,
};

fn finder(shape: Shape, module_rows: usize, config: PeakConfig) -> PeakFinder {
    let centre = distance_from(shape.rows as f64 / 2.0, shape.columns as f64 / 2.0);
    PeakFinder::new(shape, module_rows, centre, config).unwrap()
}

/// An empty image with some pixels.
fn image<P: Pixel>(shape: Shape, zero: P, pixels: &[(usize, usize, P)]) -> Vec<P> {
    let mut image = vec![zero; shape.pixels()];
    for &(row, column, value) in pixels {
        image[row * shape.columns + column] = value;
    }
    image
}

#[test]
fn a_peak_has_the_sum_and_the_centre_of_its_pixels() {
    let mut finder = finder(SMALL, 64, PeakConfig::default());
    let pixels = [(9, 30, 10), (9, 31, 30), (10, 31, 20), (11, 32, 40)];
    let peaks = finder.find(&image(SMALL, 0i16, &pixels)).unwrap();
    let [peak] = peaks.list() else {
        panic!("{peaks:?}")
    };
    let near = |value: f32, expected: f64| (f64::from(value) - expected).abs() < 1e-5;
    assert!(
        near(peak.row, f64::from(9 * 40 + 10 * 20 + 11 * 40) / 100.0),
        "{peak:?}"
    );
    assert!(
        near(peak.column, f64::from(30 * 10 + 31 * 50 + 32 * 40) / 100.0),
        "{peak:?}"
    );
    assert!(
        near(peak.intensity, 100.0) && near(peak.background, 0.0),
        "{peak:?}"
    );
    assert!(
        near(peak.sigma, 0.3) && near(peak.maximum, 40.0),
        "{peak:?}"
    );
    assert!((peak.snr - 100.0 / (0.3 * 2.0)).abs() < 1e-3, "{peak:?}");
    assert_eq!((peak.pixels, peak.saturated, peak.module), (4, 0, 0));
    assert_eq!((peaks.candidates, peaks.small, peaks.large), (4, 0, 0));
}

#[test]
fn a_peak_ends_at_the_border_of_its_module() {
    let pixels = [(31, 40, 20), (31, 41, 20), (32, 40, 50), (32, 41, 50)];
    let image = image(SMALL, 0i32, &pixels);
    let whole = finder(SMALL, 64, PeakConfig::default())
        .find(&image)
        .unwrap()
        .clone();
    assert_eq!(whole.list().len(), 1);
    let halves = finder(SMALL, 32, PeakConfig::default())
        .find(&image)
        .unwrap()
        .clone();
    let found: Vec<_> = halves
        .list()
        .iter()
        .map(|p| (p.module, p.row.to_bits(), p.maximum))
        .collect();
    assert_eq!(
        found,
        [(0, 31f32.to_bits(), 20.0), (1, 32f32.to_bits(), 50.0)]
    );
}

#[test]
fn the_ends_of_rows_do_not_touch() {
    let last = SMALL.columns - 1;
    let pixels = [(20, last, 20), (21, last, 20), (22, 0, 20), (23, 0, 20)];
    let mut finder = finder(SMALL, 64, PeakConfig::default());
    let peaks = finder.find(&image(SMALL, 0i16, &pixels)).unwrap();
    let columns: Vec<_> = peaks
        .list()
        .iter()
        .map(|peak| peak.column as usize)
        .collect();
    assert_eq!(columns, [last, 0]);
}

#[test]
fn bad_pixels_take_part_in_nothing_and_saturated_ones_count() {
    fn check<P: Pixel>(zero: P, ten: P) {
        let config = PeakConfig {
            saturation: 100.0,
            ..PeakConfig::default()
        };
        let mut finder = finder(SMALL, 64, config);
        let pixels = [
            (20, 20, ten),
            (20, 21, P::SATURATED),
            (20, 22, ten),
            // Two peaks, with a bad pixel between them.
            (40, 20, ten),
            (40, 21, ten),
            (40, 22, P::BAD),
            (40, 23, ten),
            (40, 24, ten),
        ];
        let peaks = finder.find(&image(SMALL, zero, &pixels)).unwrap().clone();
        let found = peaks
            .list()
            .iter()
            .map(|p| (p.pixels, p.saturated, p.maximum as i32, p.intensity as i32));
        assert_eq!(
            found.collect::<Vec<_>>(),
            [(3, 1, 100, 120), (2, 0, 10, 20), (2, 0, 10, 20)]
        );
        // An image of bad pixels has no background, and no peak.
        let all_bad = finder.find(&vec![P::BAD; SMALL.pixels()]).unwrap();
        assert_eq!((all_bad.list().len(), all_bad.candidates), (0, 0));
        assert!(
            finder
                .background()
                .iter()
                .all(|ring| ring.samples == 0 && ring.mean.is_nan())
        );
        let all_saturated = finder.find(&vec![P::SATURATED; SMALL.pixels()]).unwrap();
        assert_eq!(
            (all_saturated.list().len(), all_saturated.candidates),
            (0, 0)
        );
    }
    check(0i16, 10);
    check(0i32, 10);
    check(0f32, 10.0);
}

#[test]
fn groups_beyond_a_limit_are_counted() {
    let config = PeakConfig {
        min_pixels: 2,
        max_pixels: 5,
        max_peaks: 2,
        min_snr: 20.0,
        ..PeakConfig::default()
    };
    let mut finder = finder(SMALL, 64, config);
    let pair = |row, value| [(row, 10, value), (row, 11, value)];
    let mut pixels = vec![(2, 60, 100)];
    pixels.extend((50..56).map(|column| (50, column, 100)));
    pixels.extend(pair(4, 4));
    for row in [10, 20, 30, 40] {
        pixels.extend(pair(row, 100 + row as i16));
    }
    let peaks = finder.find(&image(SMALL, 0i16, &pixels)).unwrap();
    assert_eq!(
        (peaks.small, peaks.large, peaks.weak, peaks.beyond),
        (1, 1, 1, 2)
    );
    let rows: Vec<_> = peaks.list().iter().map(|peak| peak.row as usize).collect();
    assert_eq!(rows, [10, 20]);
    assert_eq!(peaks.candidates, 1 + 6 + 2 + 8);
    // Nothing of one image is left for the next.
    let peaks = finder.find(&image(SMALL, 0i16, &[])).unwrap();
    assert_eq!(
        (
            peaks.list().len(),
            peaks.candidates,
            peaks.beyond,
            peaks.small
        ),
        (0, 0, 0, 0)
    );
}

#[test]
fn the_largest_group_that_there_can_be_is_found() {
    let config = PeakConfig {
        max_pixels: u32::MAX,
        clip_iterations: 0,
        pixel_snr: 0.5,
        local_outer: 64,
        ..PeakConfig::default()
    };
    // A comb: all columns but every second pixel of the rows that are not the first.
    let mut comb = vec![0i16; SMALL.pixels()];
    for row in 0..SMALL.rows {
        for column in 0..SMALL.columns {
            if row == 0 || column % 2 == 0 {
                comb[row * SMALL.columns + column] = 100;
            }
        }
    }
    let mut finder = finder(SMALL, 64, config);
    let peaks = finder.find(&comb).unwrap();
    let pixels = comb.iter().filter(|&&value| value > 0).count();
    assert!(peaks.candidates as usize > pixels * 9 / 10, "{peaks:?}");
    assert!(
        peaks
            .list()
            .iter()
            .any(|peak| peak.pixels as usize > pixels / 2),
        "{peaks:?}"
    );
}

#[test]
fn an_image_takes_no_memory() {
    let (found, noise) = listen(|ear| {
        let config = PeakConfig {
            max_peaks: 3,
            ..PeakConfig::default()
        };
        let mut finder = finder(SMALL, 32, config);
        let mut image = vec![1i16; SMALL.pixels()];
        image.iter_mut().step_by(100).for_each(|pixel| *pixel = 50);
        image
            .iter_mut()
            .skip(1)
            .step_by(100)
            .for_each(|pixel| *pixel = 40);
        ear.during(|| {
            finder
                .find(&image)
                .map(|peaks| (peaks.list().len(), peaks.beyond))
        })
    });
    assert!(
        found.is_ok_and(|(listed, beyond)| listed == 3 && beyond > 0),
        "{found:?}"
    );
    noise.assert_none();
}

#[test]
fn rings_are_of_the_given_radius() {
    let config = PeakConfig {
        min_radius: 8.0,
        max_radius: 30.0,
        ring_width: 2.0,
        ..PeakConfig::default()
    };
    let finder = finder(SMALL, 64, config);
    assert_eq!(finder.ring(32, 37), None);
    assert_eq!(finder.ring(32, 29), Some(0));
    assert_eq!(finder.ring(32, 27), Some(1));
    assert_eq!(finder.ring(3, 3), None);
    assert_eq!(finder.ring(64, 0), None);
    assert_eq!(finder.ring(0, 75), None);
    assert_eq!(finder.background().len(), 11);
}

#[test]
fn what_cannot_be_is_refused() {
    let new = |shape, module_rows, config| {
        PeakFinder::new(shape, module_rows, distance_from(0.0, 0.0), config).map(|_| ())
    };
    let default = PeakConfig::default();
    let shape = |rows, columns| Shape { rows, columns };
    assert_eq!(new(SMALL, 64, default), Ok(()));
    for bad in [
        shape(0, 5),
        shape(5, 0),
        shape(1 << 16, 1),
        shape(1, 1 << 16),
    ] {
        assert_eq!(new(bad, 1, default), Err(PeakError::Shape(bad)));
    }
    for module_rows in [0, 63, 65, 128] {
        let error = new(SMALL, module_rows, default).unwrap_err();
        assert!(matches!(error, PeakError::Modules { .. }), "{error}");
    }
    let far = PeakConfig {
        min_radius: 1000.0,
        ..default
    };
    assert!(matches!(
        new(SMALL, 64, far),
        Err(PeakError::NoPixels { .. })
    ));
    let narrow = PeakConfig {
        ring_width: 1e-3,
        ..default
    };
    assert!(matches!(
        new(SMALL, 64, narrow),
        Err(PeakError::Rings { .. })
    ));

    let mut finder = finder(SMALL, 64, default);
    let error = finder.find(&vec![0i16; SMALL.pixels() - 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "image of 4799 pixels: the finder was made for 64 x 75"
    );
}

#[test]
fn options_out_of_range_are_refused() {
    type Change = fn(&mut PeakConfig);
    let options: [(&str, Change); 19] = [
        ("ring_width", |c| c.ring_width = 0.0),
        ("ring_width", |c| c.ring_width = f64::NAN),
        ("min_radius", |c| c.min_radius = -1.0),
        ("max_radius", |c| c.max_radius = 0.0),
        ("max_radius", |c| c.max_radius = f64::NAN),
        ("ring_samples", |c| c.ring_samples = 31),
        ("clip_sigma", |c| c.clip_sigma = 0.9),
        ("clip_sigma", |c| c.clip_sigma = f64::INFINITY),
        ("clip_iterations", |c| c.clip_iterations = 101),
        ("noise", |c| c.noise = 0.0),
        ("pixel_snr", |c| c.pixel_snr = f64::NAN),
        ("min_photons", |c| c.min_photons = f64::NAN),
        ("min_pixels", |c| c.min_pixels = 0),
        ("max_pixels", |c| c.max_pixels = 1),
        ("min_snr", |c| c.min_snr = -1.0),
        ("local_outer", |c| c.local_outer = 3),
        ("local_outer", |c| c.local_outer = 65),
        ("saturation", |c| c.saturation = 0.0),
        ("max_peaks", |c| c.max_peaks = 0),
    ];
    for (option, change) in options {
        let mut config = PeakConfig::default();
        change(&mut config);
        match config.check() {
            Err(PeakError::Option { name, .. }) => assert_eq!(name, option),
            other => panic!("{option}: {other:?}"),
        }
    }
}
