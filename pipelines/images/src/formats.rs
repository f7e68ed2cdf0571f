//! UDP packets of SLS/PSI detectors; geometry of their modules.
