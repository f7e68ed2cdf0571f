//! Pedestals, gains and masks of JUNGFRAU modules.
