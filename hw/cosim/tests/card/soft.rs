//! The software card passes the suite.

pollux_cosim::conformance!(pollux_card_model::SoftCard::new());
