//! Capture files: sent frames are read back byte for byte, files of other writers are read, damaged
//! ones are handled, and every record is accounted for.

mod disk;
mod faults;
mod files;
mod maker;
mod packed;
mod queues;
mod support;
