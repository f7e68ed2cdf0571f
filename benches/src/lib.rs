//! Criterion benchmarks of Pollux on loopback.
