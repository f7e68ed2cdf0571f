//! Placement, selection and configuration of transfers; the fan-out is in [`fan_out`].

mod fan_out;

use pollux_pipelines::Moment;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Shape;

const SHAPE: Shape = Shape {
    rows: 8,
    columns: 10,
};

/// Not a pixel of any image below: marks what is not written.
const UNTOUCHED: u32 = u32::MAX;

fn image(number: u32, shape: Shape) -> Vec<u32> {
    let first = number * 1_000_000;
    (first..).take(shape.pixels()).collect()
}

fn region(rows: (usize, usize), columns: (usize, usize)) -> Region {
    Region {
        first_row: rows.0,
        rows: rows.1,
        first_column: columns.0,
        columns: columns.1,
        offset: 0,
        stride: None,
    }
}

fn with_regions(regions: &[Region]) -> TransferConfig {
    TransferConfig {
        region: regions.to_vec(),
        ..TransferConfig::new("test")
    }
}

/// Brute force: for each pixel of the buffer, the pixel of the image that belongs there.
fn expected(image: &[u32], shape: Shape, regions: &[Region], len: usize) -> Vec<u32> {
    let pixel = |place: usize| {
        regions.iter().find_map(|region| {
            let (row, column) = (0..region.rows)
                .flat_map(|row| (0..region.columns).map(move |column| (row, column)))
                .find(|(row, column)| region.offset + row * region.stride() + column == place)?;
            let (row, column) = (region.first_row + row, region.first_column + column);
            Some(image[row * shape.columns + column])
        })
    };
    (0..len)
        .map(|place| pixel(place).unwrap_or(UNTOUCHED))
        .collect()
}

/// A region of an image of up to 12 x 12 pixels, with some place in a buffer.
fn regions() -> impl Strategy<Value = (Shape, Vec<Region>)> {
    (1..12_usize, 1..12_usize).prop_flat_map(|(rows, columns)| {
        let region = (0..rows, 0..columns).prop_flat_map(move |(first_row, first_column)| {
            let sizes = (1..=rows - first_row, 1..=columns - first_column);
            (sizes, 0..40_usize, proptest::option::of(0..6_usize)).prop_map(
                move |((rows, columns), offset, pad)| Region {
                    first_row,
                    rows,
                    first_column,
                    columns,
                    offset,
                    stride: pad.map(|pad| columns + pad),
                },
            )
        });
        (Just(Shape { rows, columns }), vec(region, 1..4))
    })
}

fn overlaps(regions: &[Region]) -> bool {
    let mut places: Vec<usize> = Vec::new();
    for region in regions {
        for row in 0..region.rows {
            for column in 0..region.columns {
                places.push(region.offset + row * region.stride() + column);
            }
        }
    }
    let all = places.len();
    places.sort_unstable();
    places.dedup();
    places.len() < all
}

proptest! {
    #[test]
    fn regions_are_placed_as_by_brute_force((shape, regions) in regions(), slack in 0..5_usize) {
        let made = Transfer::new(&with_regions(&regions), shape);
        prop_assert_eq!(made.is_err(), overlaps(&regions), "{:?}", made);
        if let Ok(transfer) = made {
            let image = image(1, shape);
            let len = transfer.buffer_pixels() + slack;
            let mut buffer = vec![UNTOUCHED; len];
            transfer.copy(&image, &mut buffer).unwrap();
            let expected = expected(&image, shape, &regions, len);
            // No place behind the last pixel.
            prop_assert!(expected[transfer.buffer_pixels() - 1] != UNTOUCHED);
            prop_assert_eq!(buffer, expected);
            let pixels: usize = regions.iter().map(|region| region.rows * region.columns).sum();
            let counts = transfer.view().counts();
            prop_assert_eq!((counts.images, counts.bytes), (1, 4 * pixels as u64));
            prop_assert_eq!(counts.region, regions);
            let short = transfer.copy(&image, &mut vec![0; transfer.buffer_pixels() - 1]);
            let is_named = matches!(short, Err(TransferError::BufferLength { .. }));
            prop_assert!(is_named, "{short:?}");
        }
    }

    /// Whatever the numbers are, there is no panic, and what is accepted lies in the image.
    #[test]
    fn any_region_is_checked(
        numbers in proptest::array::uniform6(prop_oneof![0..9_usize, any::<usize>()]),
        has_stride in any::<bool>(),
    ) {
        let [first_row, rows, first_column, columns, offset, stride] = numbers;
        let stride = has_stride.then_some(stride);
        let region = Region { first_row, rows, first_column, columns, offset, stride };
        match with_regions(&[region]).check(SHAPE) {
            Ok(pixels) => {
                prop_assert!(rows > 0 && columns > 0 && pixels <= MAX_BUFFER_PIXELS);
                prop_assert!(first_row + rows <= SHAPE.rows);
                prop_assert!(first_column + columns <= SHAPE.columns);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    /// At most one image of each period, and one of each period that has a candidate.
    #[test]
    fn the_rate_is_that_of_the_first_images_of_periods(
        steps in vec(0..40_000_000_u64, 1..200),
        every in 1..4_u64,
        rate in 20.0..80.0_f64,
    ) {
        let config = TransferConfig { every, rate_hz: Some(rate), ..TransferConfig::new("slow") };
        let mut transfer = Transfer::new(&config, SHAPE).unwrap();
        let period = (1e9 / rate).round() as u64;
        let (mut at, mut taken) = (0, std::collections::BTreeSet::new());
        let mut candidates = taken.clone();
        for (number, step) in steps.iter().enumerate() {
            at += step;
            let number = number as u64;
            if number.is_multiple_of(every) {
                candidates.insert(at / period);
            }
            if transfer.wants(number, Moment(at)) {
                prop_assert_eq!(number % every, 0);
                prop_assert!(taken.insert(at / period), "two of a period");
            }
        }
        prop_assert_eq!(taken, candidates);
    }
}

#[test]
fn one_image_in_n_is_wanted() {
    let config = TransferConfig {
        every: 5,
        phase: 3,
        ..TransferConfig::new("fifth")
    };
    let mut transfer = Transfer::new(&config, SHAPE).unwrap();
    let wanted: Vec<u64> = (0..20).filter(|&n| transfer.wants(n, Moment(0))).collect();
    assert_eq!(wanted, [3, 8, 13, 18]);
    // Frame numbers may jump and are never large enough to matter.
    assert!(transfer.wants(u64::MAX / 5 * 5 - 2, Moment(0)));
}

#[test]
fn a_rate_is_kept_on_the_average() {
    let config = TransferConfig {
        rate_hz: Some(30.0),
        ..TransferConfig::new("30 Hz")
    };
    let mut transfer = Transfer::new(&config, SHAPE).unwrap();
    // 10 s at 100 Hz.
    let wanted = (0..1000).filter(|&n| transfer.wants(n, Moment(n * 10_000_000)));
    assert_eq!(wanted.count(), 300);
    // Time that is behind selects nothing, and the end of time does no harm.
    assert!(!transfer.wants(1000, Moment(5)));
    assert!(transfer.wants(1001, Moment(u64::MAX)));
    assert!(!transfer.wants(1002, Moment(u64::MAX)));
}

#[test]
fn wrong_configurations_are_named() {
    let refused = |config: TransferConfig| config.check(SHAPE).unwrap_err().to_string();
    let of_region = |region| refused(with_regions(&[region]));
    let text = of_region(region((4, 5), (0, 1)));
    assert_eq!(
        text,
        "region rows 4..9, columns 0..1: an image has 8 x 10 pixels; give at least one row and one \
         column inside it"
    );
    assert!(of_region(region((0, 1), (9, 2))).contains("columns 9..11"));
    assert!(of_region(region((0, 0), (0, 1))).contains("at least one row"));
    let stride = Region {
        stride: Some(3),
        ..region((0, 2), (0, 4))
    };
    assert!(of_region(stride).contains("stride = 3: rows of 4 pixels overlap; give 4 or more"));
    let far = Region {
        offset: MAX_BUFFER_PIXELS,
        ..region((0, 1), (0, 1))
    };
    assert!(of_region(far).contains("beyond the largest buffer"));
    let twice = [region((0, 2), (0, 2)), region((4, 2), (0, 2))];
    let text = refused(with_regions(&twice));
    assert!(text.contains("pixel 0 of the buffer has a place in two regions"));
    let base = || TransferConfig::new("x");
    for (config, said) in [
        (
            TransferConfig { every: 0, ..base() },
            "every = 0, phase = 0",
        ),
        (
            TransferConfig {
                every: 3,
                phase: 3,
                ..base()
            },
            "`phase` less than `every`",
        ),
        (
            TransferConfig {
                rate_hz: Some(0.0),
                ..base()
            },
            "rate_hz = 0",
        ),
        (
            TransferConfig {
                rate_hz: Some(f64::NAN),
                ..base()
            },
            "rate_hz = NaN",
        ),
        (
            TransferConfig {
                buffers: 0,
                ..base()
            },
            "0 buffers: give 1 to 65536",
        ),
        (
            TransferConfig::new(""),
            "name = \"\": give 1 to 64 bytes without control characters",
        ),
        (TransferConfig::new("a\nb"), "name = \"a\\nb\""),
        (with_regions(&[region((0, 1), (0, 1)); 65]), "65 regions"),
    ] {
        let text = refused(config);
        assert!(text.contains(said), "{text}");
    }
    let all = |configs: &[TransferConfig], memory| {
        let refused = check_all(configs, SHAPE, 2, memory);
        refused.map_err(|error| error.to_string())
    };
    assert_eq!(all(&[base()], 2560), Ok(16 * 80 * 2));
    let text = all(&[base()], 2559).unwrap_err();
    assert!(text.contains("2560 bytes of memory, and 2559 are allowed"));
    assert_eq!(all(&[], 0), Ok(0));
    let many: Vec<_> = (0..65)
        .map(|n| TransferConfig::new(n.to_string()))
        .collect();
    let text = all(&many, 1 << 20).unwrap_err();
    assert!(text.contains("65 receivers: give 1 to 64"));
    assert!(
        all(&[base(), base()], 1 << 20)
            .unwrap_err()
            .contains("named `x`")
    );
    let outside = with_regions(&[region((8, 1), (0, 1))]);
    let text = all(&[base(), outside], 1 << 20).unwrap_err();
    assert!(
        text.starts_with("receiver `test`: region rows 8..9"),
        "{text}"
    );
}

#[test]
fn a_table_is_read() {
    let read = |text: &str| toml::from_str::<TransferConfig>(text);
    assert_eq!(read("name = \"all\"").unwrap(), TransferConfig::new("all"));
    let text = "name = \"viewer\"\nevery = 10\nphase = 1\nrate_hz = 5.0\nbuffers = 4\n\
                region = [{ first_row = 2, rows = 3, columns = 4, offset = 8, stride = 16 }]\n";
    let config = read(text).unwrap();
    let region = Region {
        first_row: 2,
        rows: 3,
        first_column: 0,
        columns: 4,
        offset: 8,
        stride: Some(16),
    };
    assert_eq!(config.region, [region]);
    assert_eq!((config.every, config.phase), (10, 1));
    assert_eq!((config.rate_hz, config.buffers), (Some(5.0), 4));
    let again = toml::to_string(&config).unwrap();
    assert_eq!(read(&again).unwrap(), config);
    for (text, said) in [
        ("every = 2", "name"),
        ("name = \"a\"\nevrey = 2", "evrey"),
        ("name = \"a\"\nevery = -1", "-1"),
        (
            "name = \"a\"\nregion = [{ rows = 1, columns = 1, x = 2 }]",
            "x",
        ),
        ("name = \"a\"\nregion = [{ rows = 1 }]", "columns"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn an_image_of_another_shape_is_refused() {
    let transfer = Transfer::new(&TransferConfig::new("all"), SHAPE).unwrap();
    let mut buffer = vec![UNTOUCHED; 80];
    let refused = transfer.copy(&[1; 79], &mut buffer).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("79 pixels, and transfers of images of 8 x 10")
    );
    assert_eq!(buffer, [UNTOUCHED; 80]);
    assert_eq!(transfer.view().counts().images, 0);
}

/// Whole rows are copied in one piece.
#[test]
fn whole_rows_are_placed() {
    let image = image(1, SHAPE);
    for (stride, offset) in [(None, 0), (Some(10), 7), (Some(11), 7)] {
        let region = Region {
            offset,
            stride,
            ..region((2, 3), (0, 10))
        };
        let transfer = Transfer::new(&with_regions(&[region]), SHAPE).unwrap();
        let mut buffer = vec![UNTOUCHED; 50];
        transfer.copy(&image, &mut buffer).unwrap();
        assert_eq!(buffer, expected(&image, SHAPE, &[region], 50));
    }
}
