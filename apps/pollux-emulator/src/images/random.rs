//! Independent random generators for each part of an image.

use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

/// What random numbers are drawn for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// Pedestals, gains and bad pixels of a module.
    Response = 1,
    /// Bragg peaks of an image.
    Scene = 2,
    /// Photons and noise of a module in an image.
    Readout = 3,
    /// Noise of a module in a dark image.
    Dark = 4,
}

/// The generator of one purpose in one module and one image, whatever is drawn elsewhere.
pub(super) fn generator(
    seed: u64,
    purpose: Purpose,
    module: u64,
    image: u64,
) -> Xoshiro256PlusPlus {
    // The generator is seeded through SplitMix64, which scatters neighbouring numbers; the odd
    // factors keep the combinations apart.
    let place = (purpose as u64) << 56 | module << 32 | image;
    Xoshiro256PlusPlus::seed_from_u64(
        seed.wrapping_mul(0xD1B5_4A32_D192_ED03) ^ place.wrapping_mul(0x9E37_79B9_7F4A_7C15),
    )
}
