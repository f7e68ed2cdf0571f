//! Tests of the azimuthal integration.
