//! The roles of the farm on an SCI torus: the thesis' prototype (chapter IV) and its simulation
//! (chapter V).

mod bus;
mod busy;
mod cpu;
mod farm;
mod plan;
mod post;
mod roles;
mod store;

pub use bus::Gaps;
pub use farm::Farm;
pub use plan::{FarmError, Plan, Triggers};
