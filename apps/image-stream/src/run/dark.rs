//! Dark frames: the pedestals of G0 follow them while loops convert.

use std::mem;
use std::sync::Arc;

use pollux_images::calibration::PedestalTracker;
use pollux_images::convert::Converter;
use pollux_images::receive::{Image, Stored};

use zerocopy::IntoBytes as _;

use super::counters::{DarkPixels, ImageCounts};
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

    /// Takes a dark image, which is raw, and counts its pixels. Missing packets are no values: their
    /// pixels have an error code.
    pub fn follow<P: Stored>(&mut self, image: &Image<P>, counts: &DarkPixels) {
        for (n, module) in self.modules.iter_mut().enumerate() {
            let Module { tracker, spare } = module;
            let Ok(frame) = tracker.add(image.module_pixels(n).as_bytes()) else {
                continue;
            };
            counts.add(frame);
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

/// Dark frames after which their pixels are judged.
const JUDGED: u64 = 16;

/// Warns, once, of pedestals that do not follow dark frames: then they stay wrong, as a pixel that is too
/// far from its pedestal never counts.
#[derive(Default)]
pub struct DarkWatch {
    has_warned: bool,
}

impl DarkWatch {
    /// For the thread that attends to the run.
    pub fn look(&mut self, counts: &ImageCounts) {
        let frames = counts.dark.get();
        let [(_, used), (_, other_gain), (_, implausible)] = counts.dark_pixels.outcomes();
        let all = used + other_gain + implausible;
        if self.has_warned || frames < JUDGED || 2 * used >= all {
            return;
        }
        self.has_warned = true;
        tracing::warn!(
            "the pedestals do not follow the dark frames: of {all} pixels of {frames} dark frames \
             {implausible} are too far from their pedestals, and {other_gain} are not in G0: take a newer \
             calibration, look at every and phase of [dark], or raise plausible in its tracking"
        );
    }
}
