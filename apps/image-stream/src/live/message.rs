//! Messages of DECTRIS stream v2: start, image, end (github.com/dectris/documentation, stream_v2), in
//! CBOR (RFC 8949) with typed arrays (RFC 8746) and compressed byte strings (tag 56500).

use std::time::SystemTime;

use ciborium_io::Write as _;
use ciborium_ll::{Encoder, Header, simple};
use pollux_images::peaks::Peak;
use pollux_images::stages::RadialAxis;

use crate::detector::{Detector, LossLayout};
use crate::image::{Dense, Found, ImageFacts, PixelType};

/// Ticks of the detector's clock in a second: the time base of a series.
const CLOCK: u64 = 10_000_000;

/// Tags: standard date and time, multi-dimensional array by rows, compressed byte string.
const DATE_TIME: u64 = 0;
const ARRAY: u64 = 40;
const COMPRESSED: u64 = 56_500;

/// Tags of arrays of numbers, little-endian (RFC 8746, table 1).
const U64_ARRAY: u64 = 71;
const F32_ARRAY: u64 = 85;
const F64_ARRAY: u64 = 86;

/// A series of images: a run, or a part of it.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its number.
    pub id: u64,
    /// Its name, which no other series has.
    pub unique_id: String,
    /// Number of images that are expected.
    pub images: u64,
    /// When it was armed.
    pub start: SystemTime,
    /// Frame number of image 0.
    pub first_frame: u64,
    /// Time of image 0, in units of 100 ns.
    pub first_timestamp: u64,
    /// Name of the channel, of which there is one.
    pub channel: String,
    /// Radial coordinate of the curves, if images have any.
    pub axis: Option<RadialAxis>,
}

/// A series with what its messages have in common.
pub(super) struct SeriesMessages {
    series: Series,
    date: String,
    detector: Detector,
}

/// CBOR that is being written.
struct Cbor<'a>(Encoder<&'a mut Vec<u8>>);

impl Cbor<'_> {
    fn push(&mut self, header: Header) {
        // A vector takes any number of bytes.
        let _ = self.0.push(header);
    }

    fn text(&mut self, text: &str) {
        let _ = self.0.text(text, None);
    }

    fn key(&mut self, key: &str) -> &mut Self {
        self.text(key);
        self
    }

    fn map(&mut self, pairs: usize) {
        self.push(Header::Map(Some(pairs)));
    }

    fn array(&mut self, items: usize) {
        self.push(Header::Array(Some(items)));
    }

    fn unsigned(&mut self, value: u64) {
        self.push(Header::Positive(value));
    }

    fn float(&mut self, value: f64) {
        self.push(Header::Float(value));
    }

    fn no(&mut self) {
        self.push(Header::Simple(simple::FALSE));
    }

    fn date(&mut self, date: &str) {
        self.push(Header::Tag(DATE_TIME));
        self.text(date);
    }

    fn bytes(&mut self, bytes: impl Iterator<Item = u8>, len: usize) {
        self.push(Header::Bytes(Some(len)));
        for byte in bytes {
            let _ = self.0.write_all(&[byte]);
        }
    }

    /// An array of rows of the same length: numbers of the type of that tag.
    fn rows<const N: usize>(
        &mut self,
        (rows, columns): (usize, usize),
        tag: u64,
        numbers: impl Iterator<Item = [u8; N]>,
    ) {
        self.push(Header::Tag(ARRAY));
        self.array(2);
        self.array(2);
        self.unsigned(rows as u64);
        self.unsigned(columns as u64);
        self.push(Header::Tag(tag));
        self.bytes(numbers.flatten(), rows * columns * N);
    }

    /// A time as the ratio of ticks to the time base.
    fn ticks(&mut self, ticks: u64) {
        self.array(2);
        self.unsigned(ticks);
        self.unsigned(CLOCK);
    }
}

/// Tag of an array of that type in little-endian order (RFC 8746, table 1).
const fn typed_array(pixel: PixelType) -> u64 {
    match pixel {
        PixelType::U8 => 64,
        PixelType::U16 => 69,
        PixelType::U32 => 70,
        PixelType::I16 => 77,
        PixelType::I32 => 78,
        PixelType::F32 => 85,
    }
}

impl SeriesMessages {
    pub(super) fn new(series: &Series, detector: &Detector) -> Self {
        let start = series.start.max(SystemTime::UNIX_EPOCH);
        Self {
            series: series.clone(),
            date: humantime::format_rfc3339_micros(start).to_string(),
            detector: detector.clone(),
        }
    }

    pub(super) const fn detector(&self) -> &Detector {
        &self.detector
    }

    /// The start message.
    pub(super) fn start(&self) -> Vec<u8> {
        let (series, detector) = (&self.series, &self.detector);
        let mut message = Vec::with_capacity(1024);
        let mut cbor = Cbor(Encoder::from(&mut message));
        let saturation = detector.pixel.largest();
        cbor.map(31 + usize::from(saturation.is_some()));
        cbor.key("type").text("start");
        cbor.key("arm_date").date(&self.date);
        cbor.key("beam_center_x").float(detector.beam_center[0]);
        cbor.key("beam_center_y").float(detector.beam_center[1]);
        cbor.key("channels").array(1);
        cbor.text(&series.channel);
        cbor.key("count_time").float(detector.count_time);
        cbor.key("countrate_correction_enabled").no();
        cbor.key("detector_description").text(&detector.description);
        cbor.key("detector_serial_number")
            .text(&detector.serial_number);
        cbor.key("detector_translation").array(3);
        for metres in [0.0, 0.0, detector.distance] {
            cbor.float(metres);
        }
        for (name, has) in [
            ("flatfield", "flatfield_enabled"),
            ("pixel_mask", "pixel_mask_enabled"),
        ] {
            cbor.key(name).map(0);
            cbor.key(has).no();
        }
        cbor.key("frame_time").float(detector.frame_time);
        cbor.key("goniometer").map(0);
        cbor.key("image_dtype").text(detector.pixel.name());
        cbor.key("image_size_x")
            .unsigned(detector.shape.columns as u64);
        cbor.key("image_size_y")
            .unsigned(detector.shape.rows as u64);
        cbor.key("incident_energy").float(detector.photon_energy);
        cbor.key("incident_wavelength").float(detector.wavelength());
        cbor.key("number_of_images").unsigned(series.images);
        cbor.key("pixel_size_x").float(detector.pixel_size[0]);
        cbor.key("pixel_size_y").float(detector.pixel_size[1]);
        if let Some(largest) = saturation {
            cbor.key("saturation_value").unsigned(largest.into());
        }
        cbor.key("sensor_material").text(&detector.sensor_material);
        cbor.key("sensor_thickness")
            .float(detector.sensor_thickness);
        cbor.key("series_id").unsigned(series.id);
        cbor.key("series_unique_id").text(&series.unique_id);
        cbor.key("threshold_energy").map(0);
        cbor.key("user_data");
        axis(&mut cbor, series.axis.as_ref());
        cbor.key("virtual_pixel_interpolation_enabled").no();
        message
    }

    /// Everything of an image message but the bytes of its pixels, which are its end. Replaces
    /// `message`.
    pub(super) fn image<B: AsRef<[u8]>>(
        &self,
        facts: &ImageFacts,
        pixels: &Dense<B>,
        found: Option<&dyn Found>,
        message: &mut Vec<u8>,
    ) {
        message.clear();
        let (series, detector) = (&self.series, &self.detector);
        let mut cbor = Cbor(Encoder::from(message));
        let start = facts.timestamp.saturating_sub(series.first_timestamp);
        let exposure = facts.exposure.into();
        cbor.map(10);
        cbor.key("type").text("image");
        cbor.key("image_id")
            .unsigned(facts.frame.saturating_sub(series.first_frame));
        cbor.key("real_time").ticks(exposure);
        cbor.key("series_date").date(&self.date);
        cbor.key("series_id").unsigned(series.id);
        cbor.key("series_unique_id").text(&series.unique_id);
        cbor.key("start_time").ticks(start);
        cbor.key("stop_time").ticks(start.saturating_add(exposure));
        cbor.key("user_data");
        user_data(&mut cbor, facts, detector.loss, found);
        cbor.key("data").map(1);
        cbor.text(&series.channel);
        cbor.push(Header::Tag(ARRAY));
        cbor.array(2);
        cbor.array(2);
        cbor.unsigned(detector.shape.rows as u64);
        cbor.unsigned(detector.shape.columns as u64);
        cbor.push(Header::Tag(typed_array(detector.pixel)));
        if matches!(pixels, Dense::BitshuffleLz4(_)) {
            cbor.push(Header::Tag(COMPRESSED));
            cbor.array(3);
            cbor.text("bslz4");
            cbor.unsigned(detector.pixel.bytes() as u64);
        }
        cbor.push(Header::Bytes(Some(pixels.bytes().len())));
    }

    /// The end message.
    pub(super) fn end(&self) -> Vec<u8> {
        let mut message = Vec::with_capacity(128);
        let mut cbor = Cbor(Encoder::from(&mut message));
        cbor.map(3);
        cbor.key("type").text("end");
        cbor.key("series_id").unsigned(self.series.id);
        cbor.key("series_unique_id").text(&self.series.unique_id);
        message
    }
}

/// Values of a peak in the stream: row, column, intensity and signal to noise.
const PEAK: [fn(&Peak) -> f32; 4] = [
    |peak| peak.row,
    |peak| peak.column,
    |peak| peak.intensity,
    |peak| peak.snr,
];

/// User data of the start: the radial coordinate.
fn axis(cbor: &mut Cbor<'_>, axis: Option<&RadialAxis>) {
    let Some(axis) = axis else {
        cbor.map(0);
        return;
    };
    let values = axis.values.iter().map(|value| value.to_le_bytes());
    cbor.map(2);
    cbor.key("radial_unit").text(axis.unit.name());
    cbor.key("radial");
    cbor.push(Header::Tag(F64_ARRAY));
    cbor.bytes(values.flatten(), axis.values.len() * size_of::<f64>());
}

/// User data of an image: facts that the format has no place for, and what stages found.
fn user_data(cbor: &mut Cbor<'_>, facts: &ImageFacts, loss: LossLayout, found: Option<&dyn Found>) {
    let peaks = found.map_or(&[][..], Found::peaks);
    let curve = found.map_or([&[][..]; 2], Found::curve);
    let bins = curve[0].len();
    cbor.map(9 + usize::from(!peaks.is_empty()) + usize::from(bins > 0));
    cbor.key("frame_number").unsigned(facts.frame);
    cbor.key("bunch_id").unsigned(facts.bunch);
    cbor.key("peak_count").unsigned(facts.peaks.into());
    cbor.key("packets_missing")
        .unsigned(facts.loss.missing().into());
    let words = facts.loss.words(loss.words()).iter();
    let words = words.map(|word| word.to_le_bytes());
    cbor.key("loss_map");
    cbor.rows((loss.modules, loss.module_words()), U64_ARRAY, words);
    let stack = &facts.stack;
    cbor.key("stack").unsigned(stack.number);
    cbor.key("stack_images").unsigned(stack.images.into());
    cbor.key("stack_incomplete")
        .unsigned(stack.incomplete.into());
    cbor.key("stack_packets_missing")
        .unsigned(stack.missing.into());
    if !peaks.is_empty() {
        let values = peaks.iter().flat_map(|peak| PEAK.map(|of| of(peak)));
        let values = values.map(f32::to_le_bytes);
        cbor.key("peaks");
        cbor.rows((peaks.len(), PEAK.len()), F32_ARRAY, values);
    }
    if bins > 0 {
        let values = curve.into_iter().flatten();
        let values = values.map(|value| value.to_le_bytes());
        cbor.key("curve");
        cbor.rows((curve.len(), bins), F32_ARRAY, values);
    }
}

#[cfg(test)]
mod tests;
