//! Capture files: what is sent comes back byte for byte, files of other makers are read, damaged
//! ones are survived, and every record is accounted for.

mod disk;
mod faults;
mod files;
mod maker;
mod packed;
mod queues;
mod support;
