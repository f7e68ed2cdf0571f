//! The suite for RoCEv2, over a loopback port.

use pollux_rdma::Endpoint;

#[allow(dead_code)] // its own tests use the rest
#[path = "../roce/rig.rs"]
mod rig;

use crate::rig::Fixture;

/// Two endpoints on a loopback port.
pub(crate) struct Roce(rig::Pair);

impl Fixture for Roce {
    fn new() -> Self {
        Self(rig::Pair::new())
    }

    fn ends(&mut self) -> [&mut Endpoint; 2] {
        let [a, b] = &mut self.0.hosts;
        [&mut a.endpoint, &mut b.endpoint]
    }

    fn poll(&mut self) {
        self.0.step();
    }

    fn name() -> &'static str {
        "roce"
    }
}

mod suite {
    crate::suite!(crate::roce::Roce);
}
