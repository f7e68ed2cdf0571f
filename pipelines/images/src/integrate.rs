//! Azimuthal integration: images to radial curves.
