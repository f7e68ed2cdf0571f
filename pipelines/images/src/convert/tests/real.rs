//! Recorded frames, with gains that were fitted on others.

use super::*;

/// A calibration with gains of other frames, and no bad pixel.
fn fitted(recorded: &Recorded, frames: &[usize]) -> Calibration {
    Calibration::new(
        Shape::JUNGFRAU_MODULE,
        recorded.pedestals.clone(),
        recorded.fit(frames).gains,
        vec![false; Shape::JUNGFRAU_MODULE.pixels()],
    )
    .unwrap()
}

fn rms(errors: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = errors.fold((0.0, 0), |(sum, n), error| (sum + error * error, n + 1));
    (sum / f64::from(n)).sqrt()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn photons_of_other_frames_agree_with_another_program() {
    let Some(recorded) = Recorded::read() else {
        return;
    };
    for frames in [&[0, 1, 2][..], &[1, 2, 3], &[0, 1], &[2, 3]] {
        let calibration = fitted(&recorded, frames);
        for n in (0..4).filter(|n| !frames.contains(n)) {
            let raw = &recorded.raw[n];
            let photons = to_f32(&calibration, raw);
            let reference = recorded.photons[n].values();
            let of = |gain| {
                let pixels = raw.iter().zip(photons.iter().zip(reference));
                pixels.filter_map(move |(&raw, (&photons, &reference))| {
                    let in_gain = matches!(Reading::from(raw), Reading::Adu(g, _) if g == gain);
                    in_gain.then_some((f64::from(photons), f64::from(reference)))
                })
            };
            let g0 = rms(of(Gain::G0).map(|(photons, reference)| photons - reference));
            let relative = |(photons, reference): (f64, f64)| (photons / reference - 1.0).abs();
            let g1 = median(of(Gain::G1).map(relative).collect());
            println!("gains of {frames:?}: frame {n}: {g0:.4} photons RMS in G0, {g1:.4} in G1");
            assert!(g0 <= 0.03);
            assert!(g1 <= 0.03);
            // What a fit in double precision reaches.
            assert!(frames.len() < 3 || g0 <= 0.0103 && g1 <= 0.013);
        }
    }
}

#[test]
fn compact_tables_cost_next_to_nothing() {
    let Some(recorded) = Recorded::read() else {
        return;
    };
    let calibration = fitted(&recorded, &[0, 1, 2]);
    let raw = &recorded.raw[3];
    let photons = to_f32(&calibration, raw);
    let errors = photons.iter().enumerate().map(|(n, &photons)| {
        let values = Values {
            pedestals: Gain::ALL.map(|gain| calibration.pedestals(gain)[n]),
            gains: Gain::ALL.map(|gain| calibration.gains(gain)[n]),
            bad: false,
        };
        (f64::from(photons) - oracle(raw[n], &values), raw[n])
    });
    let errors: Vec<_> = errors.filter(|&(_, raw)| raw < 0x4000).collect();
    let largest = errors
        .iter()
        .fold(0.0, |most: f64, (error, _)| most.max(error.abs()));
    let rms = rms(errors.iter().map(|&(error, _)| error));
    println!("compact tables: {rms:.6} photons RMS, at most {largest:.6}");
    assert!(rms < 0.0002 && largest < 0.0007);
}

#[test]
fn packets_give_the_same_as_the_image() {
    let Some(recorded) = Recorded::read() else {
        return;
    };
    let converter = Converter::new(&fitted(&recorded, &[1, 2, 3]));
    let raw = recorded.raw[0].as_bytes();
    let pixels = Shape::JUNGFRAU_MODULE.pixels();
    let (mut image, mut parts) = (vec![0i16; pixels], vec![0i16; pixels]);
    let (mut marks, mut part_marks) = (vec![0; pixels / 64], vec![0; pixels / 64]);
    let count = converter.convert_and_mark(0, raw, 10.0, &mut image, &mut marks);
    let mut sum = 0;
    for packet in (0..128).rev() {
        let first = packet * 4096;
        let (out, marks) = (
            &mut parts[first..][..4096],
            &mut part_marks[packet * 64..][..64],
        );
        let raw = &raw[2 * first..][..8192];
        sum += converter
            .convert_and_mark(first, raw, 10.0, out, marks)
            .unwrap();
    }
    assert_eq!(count, Ok(sum));
    assert_eq!(image, parts);
    assert_eq!(marks, part_marks);
}
