//! Emulated RICH readout boards.
