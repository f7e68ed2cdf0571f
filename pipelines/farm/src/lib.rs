//! Event building at megahertz rates by scheduled traffic, after the LHCb Level-1 farm
//! (D. Atanasov, *Design and Implementation of a System for Data Traffic Management in a Real-Time
//! Processing Farm Operated at 1 MHz*, Heidelberg 2009; "the thesis" below).
//!
//! Feeding nodes hold a fragment of every event. A scheduler gives each event to one computing
//! node, so that no receiver, column or link is overrun.

pub mod time;
