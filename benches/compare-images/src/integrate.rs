//! Rows of the azimuthal integration. The peer, pyFAI, is in a process of Python.

use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Result, bail};
use pollux_images::integrate::{Geometry, IntegrationConfig, Integrator, Split, Variance};
use serde_json::json;
use zerocopy::IntoBytes as _;

use crate::data::{Data, SHAPE};
use crate::row::{Facts, Row, Turn, timed};

/// Images of a turn: integration takes much longer than conversion.
const IMAGES: usize = 4;

/// The detector near the sample, the beam beside its middle, tilted.
const GEOMETRY: Geometry = Geometry {
    dist: 0.1,
    poni1: 0.02,
    poni2: 0.03,
    rot1: 0.05,
    rot2: -0.02,
    rot3: 0.0,
    pixel1: 75e-6,
    pixel2: 75e-6,
    wavelength: Some(1e-10),
};

/// Integration with one way of splitting pixels.
pub(crate) struct Integrate {
    name: &'static str,
    folder: PathBuf,
    images: Vec<Vec<f32>>,
    integrator: Integrator,
}

impl Integrate {
    /// Writes the images and the geometry for the peer.
    pub(crate) fn new(
        name: &'static str,
        split: Split,
        data: &Rc<Data>,
        folder: PathBuf,
    ) -> Result<Self> {
        let mut images = data.photons::<f32>()?;
        images.truncate(IMAGES);
        let config = IntegrationConfig {
            split,
            ..IntegrationConfig::default()
        };
        for (n, image) in images.iter().enumerate() {
            fs::write(folder.join(format!("{name}-{n}.f32")), image.as_bytes())?;
        }
        let request = json!({
            "shape": [SHAPE.rows, SHAPE.columns],
            "images": images.len(),
            "geometry": GEOMETRY,
            "integration": config,
        });
        fs::write(folder.join(format!("{name}.json")), request.to_string())?;
        Ok(Self {
            name,
            folder,
            images,
            integrator: Integrator::new(SHAPE, &GEOMETRY, &config, None)?,
        })
    }
}

impl Row for Integrate {
    fn facts(&self) -> Facts {
        Facts {
            name: self.name,
            unit: "Gpixel/s",
            peer_name: None,
        }
    }

    fn ours(&mut self) -> Result<Turn> {
        timed(self.images.len() * SHAPE.pixels(), || {
            for image in &self.images {
                self.integrator.integrate(image, Variance::Poisson)?;
            }
            Ok(())
        })
    }

    fn peer(&mut self) -> Result<Turn> {
        bail!("{} has its peer in another process", self.name)
    }

    fn check(&mut self) -> Result<()> {
        for (n, image) in self.images.iter().enumerate() {
            let curve = self.integrator.integrate(image, Variance::Poisson)?;
            let curve = json!({
                "sum_signal": curve.signal,
                "sum_normalization": curve.normalisation,
                "sum_variance": curve.variance,
                "count": curve.count,
                "intensity": curve.mean,
                "sem": curve.sigma,
            });
            let path = self.folder.join(format!("{}-{n}.curve", self.name));
            fs::write(path, curve.to_string())?;
        }
        Ok(())
    }
}
