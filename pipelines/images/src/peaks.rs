//! Bragg peaks in an image.
