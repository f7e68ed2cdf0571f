//! Types of pixels in an image: raw ones, and converted ones.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::Pixel;

/// Type of the pixels in an image: raw ([`Raw`]) or converted ([`Pixel`]).
pub trait Stored:
    FromBytes + IntoBytes + Immutable + Copy + PartialEq + Send + Sync + 'static
{
    /// Value of the pixels whose packet is missing. All bits are set in raw ones, as slsReceiver has it,
    /// which is an error code of JUNGFRAU; converted ones are [`Pixel::BAD`].
    const MISSING: Self;
    /// Whether the type is of raw pixels.
    const IS_RAW: bool;
}

/// Type of raw pixels: as many bits as the detector sends. Pixels of 4 bits are stored two a byte, in
/// `u8`.
pub trait Raw: Stored {}

macro_rules! raw {
    ($($type:ty)*) => {
        $(
            impl Stored for $type {
                const MISSING: Self = <$type>::MAX;
                const IS_RAW: bool = true;
            }

            impl Raw for $type {}
        )*
    };
}

macro_rules! converted {
    ($($type:ty)*) => {
        $(
            impl Stored for $type {
                const MISSING: Self = <$type as Pixel>::BAD;
                const IS_RAW: bool = false;
            }
        )*
    };
}

raw!(u8 u16 u32);
converted!(i16 i32 f32);
