//! Veto of images without Bragg peaks: pixels above a threshold are counted.
