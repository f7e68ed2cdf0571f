use proptest::prelude::*;

use super::*;
use crate::calibration::tests::Recorded;

const PEDESTALS: [f32; 3] = [2400.0, 13500.0, 14100.0];

/// Raw pixels of a gain.
fn raw(gain: Gain, adu: u16) -> u16 {
    [0x0000, 0x4000, 0xC000][gain as usize] | adu
}

/// Pedestals of so many pixels.
fn pedestals(pixels: usize) -> [Map; 3] {
    PEDESTALS.map(|value| Map::new("pedestals", vec![value; pixels]))
}

/// One pixel in G1 and one in G2, each with the gain of the module, so that all gains have a mean:
/// 12500 and 13100 ADU.
const OTHERS: [(u16, f32); 2] = [(0x70D4, 50.0), (0xF32C, 500.0)];

/// Fits frames of pixels, followed by [`OTHERS`].
fn fit(frames: &[Vec<(u16, f32)>]) -> Result<Fit, FitError> {
    let frames: Vec<_> = frames
        .iter()
        .map(|frame| frame.iter().chain(&OTHERS).copied().unzip())
        .collect();
    let pairs: Vec<_> = frames
        .iter()
        .map(|(raw, photons): &(Vec<u16>, Vec<f32>)| Pair { raw, photons })
        .collect();
    fit_gains(&pedestals(frames[0].0.len()), &pairs, FitOptions::default())
}

#[test]
fn pixels_without_a_fit_have_the_mean_of_the_others() {
    let frame = vec![
        (2900, 1.0),             // 500 ADU a photon
        (2920, 1.0),             // 520
        (2401, 0.002),           // too little signal
        (3400, 1.0),             // 1000: too far from the others
        (2900, f32::NAN),        // no photons
        (2900, f32::INFINITY),   // saturated
        (0x8B54, 1.0),           // no gain
        (2900, 0.0),             // no signal
        (raw(Gain::G1, 0), 1.0), // an error code
        (raw(Gain::G2, 0), 1.0), // saturated
    ];
    let fit = fit(&[frame]).unwrap();
    assert_eq!(
        fit.means.map(f32::to_bits),
        [510.0f32, -20.0, -2.0].map(f32::to_bits)
    );
    assert_eq!((fit.fitted, fit.far), ([2, 1, 1], [1, 0, 0]));
    assert!(fit.is_implausible(Gain::G0) && !fit.is_implausible(Gain::G1));
    let mut g0 = vec![510.0; 12];
    g0[..2].copy_from_slice(&[500.0, 520.0]);
    let expected = [g0, vec![-20.0; 12], vec![-2.0; 12]];
    assert_eq!(fit.gains.map(|map| map.values().to_vec()), expected);
}

#[test]
fn frames_count_by_the_square_of_their_signal() {
    // 10 ADU more than 500 a photon: of 1 photon and of 20.
    let fit = fit(&[vec![(2910, 1.0)], vec![(12_410, 20.0)]]).unwrap();
    let expected = (510.0 + 20.0 * 10_010.0) / 401.0;
    assert!((f64::from(fit.gains[0].values()[0]) - expected).abs() < 1e-4);
}

#[test]
fn data_that_does_not_fit_is_refused() {
    let error = fit(&[vec![]]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no pixel of 1 frames has 0.5 photons in G0: give frames with more signal, or a gain map"
    );
    let none = fit_gains(&pedestals(1), &[], FitOptions::default());
    assert!(matches!(none, Err(FitError::NoSignal { frames: 0, .. })));
    for (raw, photons) in [(2, 3), (3, 2)] {
        let pair = Pair {
            raw: &vec![0; raw],
            photons: &vec![0.0; photons],
        };
        let error = fit_gains(&pedestals(3), &[pair], FitOptions::default()).unwrap_err();
        assert!(error.to_string().contains("of 2 pixels for pedestals of 3"));
    }
}

#[test]
fn a_gain_without_signal_has_its_usual_ratio_to_g0() {
    let (raw, photons) = ([2900, 2920, raw(Gain::G1, 12_500)], [1.0, 1.0, 50.0]);
    let pair = Pair {
        raw: &raw,
        photons: &photons,
    };
    let fit = fit_gains(&pedestals(3), &[pair], FitOptions::default()).unwrap();
    assert_eq!(fit.fitted, [2, 1, 0]);
    let usual = 510.0 * -1.430 / 506.7;
    assert!((fit.means[2] - usual).abs() < 1e-6, "{:?}", fit.means);
    assert_eq!(fit.gains[2].values(), [fit.means[2]; 3]);
    assert_eq!(fit.gains[1].values(), [-20.0; 3]);
}

proptest! {
    #[test]
    fn gains_of_exact_frames_are_found(
        gains in prop::collection::vec(470.0..540.0f32, 1..50),
        adu in prop::collection::vec(prop::collection::vec(3400..16000u16, 50), 1..4),
    ) {
        let frames: Vec<Vec<_>> = adu
            .iter()
            .map(|adu| {
                let pixels = adu.iter().zip(&gains);
                let photons = |(&adu, &gain)| (adu, (f32::from(adu) - PEDESTALS[0]) / gain);
                pixels.map(photons).collect()
            })
            .collect();
        let fit = fit(&frames).unwrap();
        prop_assert_eq!(fit.fitted[0], gains.len());
        for (fitted, gain) in fit.gains[0].values().iter().zip(&gains) {
            prop_assert!((fitted / gain - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn the_means_of_a_recorded_module_are_as_published() {
    let Some(recorded) = Recorded::read() else {
        return;
    };
    let fit = recorded.fit(&[0, 1, 2]);
    println!("means {:?} of {:?} pixels", fit.means, fit.fitted);
    for (mean, expected) in fit.means.into_iter().zip([506.7, -17.97, -1.430]) {
        assert!((mean / expected - 1.0f32).abs() < 0.01);
    }
}
