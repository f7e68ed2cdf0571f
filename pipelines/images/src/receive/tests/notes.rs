//! Notes of the conversion against the pixels of the whole image.

use std::array;

use pollux_pipelines::{Batch, Moment, Pipeline, StageEnv};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::little_endian::U16;

use super::super::*;
use super::support::*;
use crate::Shape;
use crate::calibration::{Calibration, Map};
use crate::convert::{Converter, NoteConfig};
use crate::formats::{Header, Layout};
use crate::stages::{Capacity, Desk, Findings, ImagesEnv, StagePixel, Work, image_stages};

const PIXELS: usize = Shape::JUNGFRAU_MODULE.pixels();

fn converter() -> Converter {
    let map = |value| Map::new("map", vec![value; PIXELS]);
    let pedestals = [2500.0, 13_600.0, 14_100.0].map(map);
    let gains = [500.0, -18.0, -1.4].map(map);
    let bad = (0..PIXELS).map(|pixel| pixel % 1009 == 0).collect();
    let calibration = Calibration::new(Shape::JUNGFRAU_MODULE, pedestals, gains, bad);
    Converter::new(&calibration.unwrap())
}

/// Raw pixels of a packet: most have no photon, some have more, in every gain and code.
fn raw(rng: &mut Xoshiro256PlusPlus, intense: f64) -> Vec<u8> {
    let pixels = (0..4096).map(|_| {
        if rng.random_bool(intense) {
            rng.random()
        } else {
            2500 + rng.random_range(0..20_u16)
        }
    });
    pixels.flat_map(u16::to_le_bytes).collect()
}

/// A receiver of one module with two interfaces, in two loops.
struct Receiver<P> {
    placers: [PacketPlacer<P>; 2],
    reader: ImageReader<P>,
    chain: Pipeline<Work<P>, Work<P>>,
    desk: Desk<P>,
}

impl<P: StagePixel> Receiver<P> {
    fn new(notes: NoteConfig, stages: &[toml::Table]) -> Self {
        let config = ReceiveConfig {
            // Nearly each image is in a buffer that an earlier one has left.
            buffers: 2,
            notes,
            ..geometries()[0].config(DiscardPolicy::Nothing)
        };
        let (placer, reader) = images(&config).unwrap();
        let mut env = StageEnv::new();
        env.insert(ImagesEnv::new(Shape::JUNGFRAU_MODULE, 512));
        Self {
            placers: [placer.for_another_loop().unwrap(), placer],
            reader,
            chain: image_stages::<P>().pipeline(stages, &mut env).unwrap(),
            desk: Desk::new(4, &Capacity::default()),
        }
    }

    /// Places a packet in the loop of its interface, as a run does.
    fn place(&mut self, interface: usize, payload: &[u8], converter: &Converter, dark: bool) {
        let stream = geometries()[0].stream(Key {
            frame: 0,
            module: 0,
            interface,
            packet: 0,
        });
        let placer = &mut self.placers[interface];
        // Copies are refused.
        let _ = placer.place_with(stream, payload, Moment(0), |mut to, raw: &[U16], pixels| {
            if dark {
                to.notes.clear();
                pixels.fill(P::SATURATED);
                return;
            }
            let (first, raw) = (to.first_pixel, raw.as_bytes());
            let noted = converter.convert_and_note(first, raw, pixels, &mut to.notes);
            assert_eq!(noted, Ok(()));
        });
    }

    /// The next image after its time, through the stages.
    fn next(&mut self, now: u64) -> Work<P> {
        let image = self.reader.poll(Moment(now)).unwrap();
        let (mut batch, mut done) = (Batch::with_capacity(1), Vec::new());
        let _ = batch.push(self.desk.begin(image).unwrap());
        self.chain.process(&mut batch, &mut done);
        done.pop().unwrap()
    }
}

/// What the stages found, without the room of the lists.
fn found<P: StagePixel>(findings: &Findings<P>) -> impl PartialEq + std::fmt::Debug {
    let values: Vec<u32> = findings.values.iter().map(|value| value.bits()).collect();
    (
        (findings.vetoed, findings.intense, findings.encoding),
        (findings.row_offsets.clone(), findings.columns.clone()),
        (values, findings.chunk().to_vec()),
    )
}

/// The same packets to a receiver with notes and to one without: equal images and findings.
fn compare<P: StagePixel>(veto: f32, sparse: f32, seed: u64, frames: &[(f64, bool)]) {
    let config: toml::Table = format!(
        "stage = [{{ name = \"veto\", min_photons = {veto:?}, min_pixels = 2000 }},
         {{ name = \"compress\", method = \"sparse\", min_photons = {sparse:?} }}]"
    )
    .parse()
    .unwrap();
    let stages: Vec<toml::Table> = config["stage"].clone().try_into().unwrap();
    let notes = NoteConfig {
        count: Some(veto),
        mark: Some(sparse),
    };
    let configs = [notes, NoteConfig::default()];
    let mut receivers: [Receiver<P>; 2] = configs.map(|notes| Receiver::new(notes, &stages));
    let converter = converter();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for (number, &(intense, dark)) in (0..).zip(frames) {
        let mut packets: Vec<(usize, Vec<u8>)> = Vec::new();
        for (interface, packet) in (0..2).flat_map(|i| (0..64).map(move |packet| (i, packet))) {
            let mut header = Header::new(crate::formats::Detector::Jungfrau);
            header.frame_number = number.into();
            header.packet_number = packet.into();
            let copies = *[0, 1, 1, 1, 1, 2].get(rng.random_range(0..6)).unwrap();
            let pixels = raw(&mut rng, intense);
            let payload = [header.as_bytes(), &pixels].concat();
            packets.extend(
                array::from_fn::<_, 2, _>(|_| (interface, payload.clone()))
                    .into_iter()
                    .take(copies),
            );
        }
        packets.shuffle(&mut rng);
        for (interface, payload) in &packets {
            for receiver in &mut receivers {
                receiver.place(*interface, payload, &converter, dark);
            }
        }
        if packets.is_empty() {
            continue;
        }
        let now = (number + 1) * 10 * TIMEOUT;
        let [noted, plain] = receivers.each_mut().map(|receiver| receiver.next(now));
        assert_eq!(noted.image.number(), number);
        assert_eq!(
            noted.image.pixels().as_bytes(),
            plain.image.pixels().as_bytes()
        );
        assert_eq!(
            (plain.image.count_from(veto), plain.image.marks_from(sparse)),
            (None, None)
        );
        let marks = noted.image.marks_from(sparse).unwrap();
        if dark {
            assert_eq!(noted.image.count_from(veto), Some(0));
            assert!(marks.iter().all(|&word| word == 0));
            continue;
        }
        let least = P::threshold(sparse);
        for (word, pixels) in marks.iter().zip(noted.image.pixels().chunks(64)) {
            let above = pixels.iter().enumerate();
            let expected = above.fold(0, |all, (n, &pixel)| all | u64::from(pixel >= least) << n);
            assert_eq!(*word, expected);
        }
        assert_eq!(found(&noted.findings), found(&plain.findings));
    }
}

fn frames() -> impl Strategy<Value = Vec<(f64, bool)>> {
    prop::collection::vec(
        (
            prop::sample::select(vec![0.0, 0.001, 0.01, 0.6]),
            prop::bool::weighted(0.25),
        ),
        1..7,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn notes_are_those_of_the_pixels_of_their_image(
        veto in prop::sample::select(vec![-3.0, 1.0, 2.5, 20.0]),
        sparse in prop::sample::select(vec![0.5, 1.0, 2.5, 20.0]),
        seed: u64,
        frames in frames(),
    ) {
        compare::<i16>(veto, sparse, seed, &frames);
        compare::<f32>(veto, sparse, seed, &frames);
    }
}

/// The marks of packets make up those of the image: words begin at packets.
#[test]
fn packets_of_every_detector_have_whole_words() {
    use crate::formats::{EigerBits::*, EigerLink::*};
    let eiger = [Four, Eight, Sixteen, ThirtyTwo]
        .map(|bits| [OneGigabit, TenGigabit].map(|link| Layout::eiger(1, bits, link).unwrap()));
    let others = [
        Layout::jungfrau(1, 2).unwrap(),
        Layout::moench(1, 2).unwrap(),
    ];
    for layout in eiger.into_iter().flatten().chain(others) {
        assert_eq!(layout.packet_pixels() % 64, 0, "{layout:?}");
    }
}
