//! Lossless compression: bit transpose, then LZ4.
