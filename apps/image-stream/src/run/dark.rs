//! Dark frames: the pedestals of G0 follow them while loops convert.

use std::mem;
use std::sync::Arc;

use pollux_images::calibration::PedestalTracker;
use pollux_images::convert::Converter;
use pollux_images::receive::{Image, Stored};

use zerocopy::IntoBytes as _;

use super::place::Converters;
use crate::config::DarkConfig;

/// The pedestals of a module.
struct Module {
    tracker: PedestalTracker,
    /// Takes the place of the module's converter, with newer pedestals.
    spare: Arc<Converter>,
}

/// Follows the pedestals of all modules.
pub struct Dark {
    config: DarkConfig,
    converters: Converters,
    modules: Vec<Module>,
}

impl Dark {
    /// `modules` are the tracker and a spare converter of each module.
    pub fn new(
        config: DarkConfig,
        converters: Converters,
        modules: Vec<(PedestalTracker, Converter)>,
    ) -> Self {
        let modules = modules.into_iter().map(|(tracker, spare)| Module {
            tracker,
            spare: Arc::new(spare),
        });
        Self {
            config,
            converters,
            modules: modules.collect(),
        }
    }

    #[inline]
    pub fn is_dark(&self, number: u64) -> bool {
        self.config.is_dark(number)
    }

    /// Takes a dark image, which is raw. Missing packets are no values: their pixels have an error code.
    pub fn follow<P: Stored>(&mut self, image: &Image<P>) {
        for (n, module) in self.modules.iter_mut().enumerate() {
            let Module { tracker, spare } = module;
            if tracker.add(image.module_pixels(n).as_bytes()).is_err() {
                continue;
            }
            // A loop may still convert a packet with the spare one: then the next dark frame does it.
            let Some(next) = Arc::get_mut(spare) else {
                continue;
            };
            if next.follow(tracker) == Ok(true)
                && let Some(converter) = self.converters.get(n)
            {
                let next = Arc::clone(spare);
                let old = converter.swap(next);
                drop(mem::replace(spare, old));
            }
        }
    }
}
