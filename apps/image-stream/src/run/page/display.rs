//! Display of the images: the page's side of the tap, which renders what the loop has filled.

use std::array;

use pollux_images::Shape;
use pollux_images::receive::Stored;
use pollux_mempool::ring::RingError;
use pollux_mempool::time::Ns;
use pollux_mempool::{BoxConsumer, BoxProducer, box_ring};
use pollux_pmd::{Clock as _, TscClock};
use serde::Serialize;
use zerocopy::IntoBytes as _;

use super::axis::Axis;
use super::exposure::{Content, Exposure, ImageCopy, View};
use super::picture::{Levels, Picture, Region, Shown, Square};
use super::query::Query;
use super::tap::Tap;

/// What is younger is not asked for again on a page: clients share it.
pub const FRESH: Ns = Ns(200_000_000);

/// Pictures and curves for the page, of images of any type.
pub trait Pictures: Send + 'static {
    /// Asks the loop for a view unless it is fresh; returns whether it is.
    fn ask(&mut self, view: View) -> bool;

    /// The picture that is there: a header and its pixels. `None` before the first one, or if it is of
    /// another frame than the one that is asked for.
    fn picture(&self, query: &Query) -> Option<Vec<u8>>;

    /// The curves that are there.
    fn curves(&self) -> Option<CurvesAnswer<'_>>;
}

/// `/curve.json`.
#[derive(Serialize)]
pub struct CurvesAnswer<'a> {
    unit: &'a str,
    /// Radial coordinate of the middle of each bin.
    radial: &'a [f64],
    /// Frame of the last curve, and its age.
    frame: u64,
    age_s: f64,
    last: &'a [f32],
    /// Number of images of the mean.
    images: u64,
    mean: Vec<f32>,
}

/// Header of a picture.
#[derive(Serialize)]
struct Header<'a> {
    view: &'static str,
    frame: u64,
    age_s: f64,
    /// Images so far.
    images: u64,
    /// Shape of the picture.
    rows: usize,
    columns: usize,
    factor: usize,
    /// Part of the image that it shows: row, column, rows, columns.
    region: [usize; 4],
    levels: &'a Levels,
    image: Option<ImageHeader>,
}

/// What is known of an image beside its pixels.
#[derive(Serialize)]
struct ImageHeader {
    vetoed: bool,
    missing_packets: usize,
    /// First row and number of rows of each loss.
    missing_rows: Vec<[usize; 2]>,
    /// Row, column and photons of each peak.
    peaks: Vec<[f32; 3]>,
    /// Number of peaks, with those that are not listed.
    all_peaks: usize,
}

/// What is there of a view.
struct Shelf<P> {
    shown: Option<(Box<Exposure<P>>, Levels)>,
    /// The one before, for the next time.
    spare: Option<Box<Exposure<P>>>,
    is_asked: bool,
}

/// The page's side of a tap.
pub struct Display<P: Stored> {
    ask: BoxProducer<Exposure<P>>,
    filled: BoxConsumer<Exposure<P>>,
    shelves: [Shelf<P>; View::ALL.len()],
    shape: Shape,
    /// Rows of a module.
    module_rows: usize,
    axis: Option<Axis>,
    /// What is younger is not asked for again.
    fresh: Ns,
    clock: TscClock,
}

impl<P: Stored + Shown> Display<P> {
    /// A display and its tap, for images of this shape of modules of so many rows. What is younger than
    /// `fresh` is not asked for again.
    ///
    /// # Errors
    /// None: the rings have a valid size.
    pub fn new(
        shape: Shape,
        module_rows: usize,
        axis: Option<Axis>,
        fresh: Ns,
        clock: TscClock,
    ) -> Result<(Self, Tap<P>), RingError> {
        let (ask, asked) = box_ring(View::ALL.len())?;
        let (fill, filled) = box_ring(View::ALL.len())?;
        let bins = axis.as_ref().map_or(0, |axis| axis.radial.len());
        let shelf = |_| Shelf {
            shown: None,
            spare: None,
            is_asked: false,
        };
        let display = Self {
            ask,
            filled,
            shelves: array::from_fn(shelf),
            shape,
            module_rows,
            axis,
            fresh,
            clock,
        };
        Ok((display, Tap::new(asked, fill, bins, clock)))
    }

    /// Takes what the loop has filled.
    fn collect(&mut self) {
        while let Some(exposure) = self.filled.pop() {
            let levels = match &exposure.content {
                Content::Image(copy) => Levels::of(&copy.pixels),
                Content::Projection(snapshot) => Levels::of(snapshot.values()),
                Content::Curves(_) => Levels::default(),
            };
            let shelf = &mut self.shelves[exposure.view as usize];
            let old = shelf.shown.replace((exposure, levels));
            shelf.spare = old.map(|(exposure, _)| exposure);
            shelf.is_asked = false;
        }
    }

    fn age(&self, exposure: &Exposure<P>) -> Ns {
        let now = self.clock.now();
        self.clock.to_ns(now.since(exposure.taken))
    }

    fn shown(&self, view: View) -> Option<&(Box<Exposure<P>>, Levels)> {
        self.shelves[view as usize].shown.as_ref()
    }

    fn image_header(&self, copy: &ImageCopy<P>) -> ImageHeader {
        let rows = copy.losses.iter().map(|loss| {
            let first = loss.module * self.module_rows + loss.rows.start;
            [first, loss.rows.len()]
        });
        let peaks = copy.peaks.iter();
        ImageHeader {
            vetoed: copy.vetoed,
            missing_packets: copy.missing_packets,
            missing_rows: rows.collect(),
            peaks: peaks
                .map(|peak| [peak.row, peak.column, peak.intensity])
                .collect(),
            all_peaks: copy.all_peaks,
        }
    }
}

impl<P: Stored + Shown> Pictures for Display<P> {
    fn ask(&mut self, view: View) -> bool {
        self.collect();
        if let Some((exposure, _)) = self.shown(view)
            && self.age(exposure) < self.fresh
        {
            return true;
        }
        let (shape, bins) = (
            self.shape,
            self.axis.as_ref().map_or(0, |axis| axis.radial.len()),
        );
        let shelf = &mut self.shelves[view as usize];
        if shelf.is_asked {
            return false;
        }
        let exposure = match shelf.spare.take() {
            Some(mut exposure) => {
                if let Content::Projection(snapshot) = &mut exposure.content {
                    snapshot.restart();
                }
                exposure
            }
            None => match Exposure::new(view, shape, bins) {
                Ok(exposure) => Box::new(exposure),
                // Images of this shape were received.
                Err(_) => return false,
            },
        };
        shelf.is_asked = true;
        // There is a place for each view.
        drop(self.ask.push(exposure));
        false
    }

    fn picture(&self, query: &Query) -> Option<Vec<u8>> {
        let (exposure, levels) = self.shown(query.view)?;
        if query.frame.is_some_and(|frame| frame != exposure.frame) {
            return None;
        }
        let (shape, region, factor) = (self.shape, query.region, query.factor);
        let (picture, image) = match &exposure.content {
            Content::Image(copy) => (
                Picture::new(&copy.pixels, shape, region, factor, Square::Largest),
                Some(self.image_header(copy)),
            ),
            Content::Projection(snapshot) => {
                let square = if query.view == View::Mean {
                    Square::Mean
                } else {
                    Square::Largest
                };
                let picture = Picture::new(snapshot.values(), shape, region, factor, square);
                (picture, None)
            }
            Content::Curves(_) => return None,
        };
        let Region {
            row,
            column,
            rows,
            columns,
        } = picture.region;
        let header = Header {
            view: query.view.name(),
            frame: exposure.frame,
            age_s: self.age(exposure).0 as f64 / 1e9,
            images: exposure.images,
            rows: picture.shape.rows,
            columns: picture.shape.columns,
            factor: picture.factor,
            region: [row, column, rows, columns],
            levels,
            image,
        };
        Some(encode(&header, &picture.values))
    }

    fn curves(&self) -> Option<CurvesAnswer<'_>> {
        let axis = self.axis.as_ref()?;
        let (exposure, _) = self.shown(View::Curve)?;
        let Content::Curves(curves) = &exposure.content else {
            return None;
        };
        let images = curves.images.max(1) as f64;
        Some(CurvesAnswer {
            unit: &axis.unit,
            radial: &axis.radial,
            frame: exposure.frame,
            age_s: self.age(exposure).0 as f64 / 1e9,
            last: &curves.last,
            images: curves.images,
            mean: curves
                .sums
                .iter()
                .map(|sum| (sum / images) as f32)
                .collect(),
        })
    }
}

/// Length of the header as u32, the header as JSON with spaces up to a multiple of 4 bytes, pixels as
/// f32; all little-endian, as browsers have it.
fn encode(header: &Header<'_>, values: &[f32]) -> Vec<u8> {
    let mut text = serde_json::to_vec(header).unwrap_or_default();
    text.resize(text.len().next_multiple_of(4), b' ');
    let pixels = values.as_bytes();
    let mut bytes = Vec::with_capacity(4 + text.len() + pixels.len());
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text);
    bytes.extend(pixels);
    bytes
}
