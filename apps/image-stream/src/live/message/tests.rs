//! User data of the messages, decoded by the crate ciborium.
#![allow(clippy::unwrap_used, clippy::panic)]

use ciborium::Value;
use pollux_images::integrate::RadialUnit;
use pollux_images::stages::StackFacts;

use super::*;
use crate::detector::tests::detector;
use crate::image::LossMap;

/// Two peaks and a curve of three bins.
#[derive(Debug)]
struct Findings([Peak; 2]);

impl Found for Findings {
    fn peaks(&self) -> &[Peak] {
        &self.0
    }

    fn curve(&self) -> [&[f32]; 2] {
        [&[1.0, 2.0, 3.0], &[0.5, 0.25, 0.125]]
    }
}

fn get<'a>(map: &'a Value, key: &str) -> Option<&'a Value> {
    let pairs = map.as_map().unwrap().iter();
    let mut found = pairs.filter(|(name, _)| name.as_text() == Some(key));
    found.next().map(|(_, value)| value)
}

/// Shape, tag and bytes of an array of rows.
fn array(value: &Value) -> (Vec<u64>, u64, Vec<u8>) {
    let (tag, parts) = value.as_tag().unwrap();
    assert_eq!(tag, 40);
    let [shape, typed] = &parts.as_array().unwrap()[..] else {
        panic!("{parts:?}")
    };
    let shape = shape.as_array().unwrap().iter();
    let shape = shape.map(|n| n.as_integer().unwrap().try_into().unwrap());
    let (tag, bytes) = typed.as_tag().unwrap();
    (shape.collect(), tag, bytes.as_bytes().unwrap().clone())
}

fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[test]
fn user_data_has_what_was_found_and_what_is_missing() {
    let axis = RadialAxis {
        unit: RadialUnit::QPerNm,
        values: vec![0.5, 1.5, 2.5],
    };
    let series = Series {
        id: 1,
        unique_id: "1".into(),
        images: 0,
        start: SystemTime::UNIX_EPOCH,
        first_frame: 0,
        first_timestamp: 0,
        channel: "photons".into(),
        axis: Some(axis),
    };
    let messages = SeriesMessages::new(&series, &detector(2, 3, PixelType::U8));
    let start: Value = ciborium::from_reader(&messages.start()[..]).unwrap();
    let user = get(&start, "user_data").unwrap();
    assert_eq!(get(user, "radial_unit").unwrap().as_text(), Some("q_nm^-1"));
    let (tag, radial) = get(user, "radial").unwrap().as_tag().unwrap();
    let values = [0.5_f64, 1.5, 2.5].map(f64::to_le_bytes).concat();
    assert_eq!((tag, radial.as_bytes()), (86, Some(&values)));

    let peak = |row| Peak {
        row,
        column: 7.5,
        intensity: 90.0,
        snr: 12.0,
        ..Peak::default()
    };
    let found = Findings([peak(1.25), peak(300.0)]);
    let facts = ImageFacts {
        peaks: 2,
        loss: LossMap::new(&[1 << 5, 1 << 63]),
        stack: StackFacts {
            number: 9,
            images: 4,
            incomplete: 1,
            missing: 2,
        },
        ..ImageFacts::default()
    };
    for found in [Some(&found as &dyn Found), None] {
        let (pixels, mut message) = (Dense::Raw(vec![1_u8; 6]), Vec::new());
        messages.image(&facts, &pixels, found, &mut message);
        message.extend(pixels.bytes());
        let image: Value = ciborium::from_reader(&message[..]).unwrap();
        let user = get(&image, "user_data").unwrap();
        let number = |key: &str| -> u64 {
            let value = get(user, key).unwrap().as_integer().unwrap();
            value.try_into().unwrap()
        };
        let keys = [
            "stack",
            "stack_images",
            "stack_incomplete",
            "stack_packets_missing",
        ];
        assert_eq!(keys.map(number), [9, 4, 1, 2]);
        let words = [1_u64 << 5, 1 << 63].map(u64::to_le_bytes).concat();
        assert_eq!(
            array(get(user, "loss_map").unwrap()),
            (vec![1, 2], 71, words)
        );
        assert_eq!(get(user, "peaks").is_some(), found.is_some());
        if found.is_some() {
            let peaks = floats(&[1.25, 7.5, 90.0, 12.0, 300.0, 7.5, 90.0, 12.0]);
            assert_eq!(array(get(user, "peaks").unwrap()), (vec![2, 4], 85, peaks));
            let curve = floats(&[1.0, 2.0, 3.0, 0.5, 0.25, 0.125]);
            assert_eq!(array(get(user, "curve").unwrap()), (vec![2, 3], 85, curve));
        }
        let data = get(get(&image, "data").unwrap(), "photons").unwrap();
        assert_eq!(array(data), (vec![2, 3], 64, vec![1; 6]));
    }
}
