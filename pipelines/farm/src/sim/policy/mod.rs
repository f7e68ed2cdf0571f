//! Policies: when a source sends which fragment.

mod choice;
mod credits;
mod free;
mod ring;
mod rules;
mod slots;

pub use choice::{Plan, PolicyName};
pub use credits::Credits;
pub use free::Free;
pub use ring::Ring;
pub use rules::{Orders, Policy, Traffic};
pub use slots::Slots;
