//! Seeded frames that can be made again from their number, and the loop that sends and checks
//! them: for the programs that hold our ports against others.

pub mod exchange;
pub mod frames;
