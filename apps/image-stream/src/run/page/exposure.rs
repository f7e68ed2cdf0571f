//! What the page asks the image loop for: it goes to the loop empty and comes back filled, so that the
//! loop allocates nothing.

use pollux_images::Shape;
use pollux_images::peaks::Peak;
use pollux_images::receive::{Loss, Stored};
use pollux_images::statistics::{Snapshot, StatisticsError, View as Projection};
use pollux_mempool::time::Tsc;

/// Most peaks of an image that the page marks.
const PEAKS: usize = 2048;

/// Most losses of an image that the page shows.
const LOSSES: usize = 2048;

/// What the page can show of the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The latest image.
    Latest,
    /// The latest image that was not vetoed.
    Kept,
    /// Mean of all images.
    Mean,
    /// Maximum of each pixel over all images.
    Maximum,
    /// Radial curves.
    Curve,
}

impl View {
    /// All of them, each at its own index.
    pub const ALL: [Self; 5] = [
        Self::Latest,
        Self::Kept,
        Self::Mean,
        Self::Maximum,
        Self::Curve,
    ];

    /// Name of the view in a request.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Kept => "kept",
            Self::Mean => "mean",
            Self::Maximum => "maximum",
            Self::Curve => "curve",
        }
    }
}

/// A copy of an image, and what the stages found in it.
#[derive(Debug)]
pub struct ImageCopy<P> {
    pub pixels: Vec<P>,
    pub vetoed: bool,
    pub missing_packets: usize,
    /// Up to the capacity of the list.
    pub losses: Vec<Loss>,
    /// Up to the capacity of the list.
    pub peaks: Vec<Peak>,
    /// Number of all peaks.
    pub all_peaks: usize,
}

/// Radial curves, a value for each bin.
#[derive(Debug)]
pub struct Curves {
    /// Of one image.
    pub last: Vec<f32>,
    /// Sum of those of all images.
    pub sums: Vec<f64>,
    /// Number of images with a curve.
    pub images: u64,
}

/// What an exposure has.
#[derive(Debug)]
pub enum Content<P> {
    Image(ImageCopy<P>),
    Projection(Snapshot),
    Curves(Curves),
}

/// What the page asks the image loop for.
#[derive(Debug)]
pub struct Exposure<P> {
    pub view: View,
    /// When it was filled.
    pub taken: Tsc,
    /// Number of the frame that was the last one then.
    pub frame: u64,
    /// Images so far.
    pub images: u64,
    pub content: Content<P>,
}

impl<P: Stored> Exposure<P> {
    /// An empty one for images of this shape, and curves of so many bins. The memory is touched here, so
    /// that the loop need not wait for the kernel's pages.
    ///
    /// # Errors
    /// A shape without pixels.
    pub fn new(view: View, shape: Shape, bins: usize) -> Result<Self, StatisticsError> {
        let projection = |of| Ok(Content::Projection(Snapshot::new(shape, 1, of)?));
        let content = match view {
            View::Latest | View::Kept => Content::Image(ImageCopy {
                pixels: vec![P::MISSING; shape.pixels()],
                vetoed: false,
                missing_packets: 0,
                losses: Vec::with_capacity(LOSSES),
                peaks: Vec::with_capacity(PEAKS),
                all_peaks: 0,
            }),
            View::Mean => projection(Projection::Mean)?,
            View::Maximum => projection(Projection::Maximum)?,
            View::Curve => Content::Curves(Curves {
                last: vec![f32::NAN; bins],
                sums: vec![f64::NAN; bins],
                images: 0,
            }),
        };
        Ok(Self {
            view,
            taken: Tsc(0),
            frame: 0,
            images: 0,
            content,
        })
    }
}
