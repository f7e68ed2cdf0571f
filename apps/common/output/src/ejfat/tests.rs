//! Tests of the output to EJFAT.
