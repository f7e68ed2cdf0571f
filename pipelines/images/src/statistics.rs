//! Statistics of a run for its operator: hit rate, mean and maximum image.
