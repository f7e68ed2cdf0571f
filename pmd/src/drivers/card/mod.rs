//! The card whose gateware is in `hw/`: what its registers are, and what it reads and writes in
//! memory. Both come from the sources that its gateware comes from too (`scripts/regen`).

#[allow(dead_code, reason = "made whole, whatever the driver needs of it")]
mod layouts;
#[allow(dead_code, reason = "made whole, whatever the driver needs of it")]
mod registers;
