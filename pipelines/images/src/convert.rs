//! Raw JUNGFRAU pixels to photons.
