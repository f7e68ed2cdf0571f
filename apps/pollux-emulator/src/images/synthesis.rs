//! Synthetic raw images from a seed, and the truth about them.

use pollux_images::Shape;
use pollux_images::formats::Layout;
use serde::Serialize;

use super::config::ImagesConfig;
use super::order::{StackImage, StackOrder};
use super::random::{Purpose, generator};
use super::response::Response;
use super::scene::{Diffuse, Peak, Ring, Scene};
use crate::config::ConfigError;

/// Makes the images of a stack. Each module of each image depends on the configuration alone, not on
/// what was made before.
#[derive(Clone, Debug)]
pub struct Synthesis {
    config: ImagesConfig,
    layout: Layout,
    order: StackOrder,
    diffuse: Diffuse,
    scenes: Vec<Scene>,
}

/// The truth about a stack of synthetic images.
#[derive(Clone, Debug, Serialize)]
pub struct Truth<'a> {
    /// The configuration, from which all of it can be made again.
    pub config: &'a ImagesConfig,
    /// Rows and columns of an image: the modules one below the other.
    pub shape: [usize; 2],
    /// Which image a frame shows.
    pub order: StackOrder,
    /// Row and column of the beam centre.
    pub centre: (f64, f64),
    /// Mean number of photons a pixel of the diffuse background.
    pub background: f64,
    /// Powder rings, the same in all images with beam.
    pub rings: &'a [Ring],
    /// Images with beam, in the order of the stack.
    pub images: Vec<ImageTruth<'a>>,
}

/// The truth about an image.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ImageTruth<'a> {
    /// Its Bragg peaks.
    pub peaks: &'a [Peak],
}

impl Synthesis {
    /// Prepares the images of a configuration.
    ///
    /// # Errors
    /// A configuration that is not valid.
    pub fn new(config: &ImagesConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let layout = config.layout()?;
        let order = StackOrder::new(config.stack, config.dark_every);
        let scene = |n| Scene::new(&config.pattern, layout.image(), config.seed, n);
        Ok(Self {
            layout,
            order,
            diffuse: Diffuse::new(&config.pattern, layout.image()),
            scenes: (0..order.images()).map(scene).collect(),
            config: config.clone(),
        })
    }

    /// How packets make up the images.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The order of the images.
    #[must_use]
    pub fn order(&self) -> StackOrder {
        self.order
    }

    /// The mean number of photons of each pixel, without Bragg peaks.
    #[must_use]
    pub fn diffuse(&self) -> &Diffuse {
        &self.diffuse
    }

    /// The truth about all images.
    #[must_use]
    pub fn truth(&self) -> Truth<'_> {
        let Shape { rows, columns } = self.layout.image();
        let image = |scene| ImageTruth {
            peaks: Scene::peaks(scene),
        };
        Truth {
            config: &self.config,
            shape: [rows, columns],
            order: self.order,
            centre: self.diffuse.centre(),
            background: self.diffuse.background(),
            rings: self.diffuse.rings(),
            images: self.scenes.iter().map(image).collect(),
        }
    }

    /// The pixels of a module.
    #[must_use]
    pub fn response(&self, module: usize) -> Response {
        Response::new(&self.config, self.layout.module(), module)
    }

    /// Makes a module of an image: the photons of its pixels, and the raw values that `response`, its
    /// own, gives for them. Both slices have the pixels of a module.
    pub fn module(
        &self,
        image: StackImage,
        module: usize,
        response: &Response,
        photons: &mut [u32],
        raw: &mut [u16],
    ) {
        let (purpose, n) = match image {
            StackImage::Light(n) => (Purpose::Readout, n),
            StackImage::Dark(n) => (Purpose::Dark, n),
        };
        let mut rng = generator(self.config.seed, purpose, module as u64, n.into());
        match image {
            StackImage::Light(n) => {
                let first = module * self.layout.module().pixels();
                self.diffuse.draw(first, &mut rng, photons);
                if let Some(scene) = self.scenes.get(n as usize) {
                    scene.add(first, photons);
                }
            }
            StackImage::Dark(_) => photons.fill(0),
        }
        response.read(photons, &mut rng, raw);
    }
}
