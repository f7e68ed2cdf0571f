//! The suite for shared memory, and what only it has.

use std::os::unix::net::UnixStream;

use pollux_rdma::{Endpoint, shm};

use crate::rig::Fixture;

/// Two endpoints of one process.
pub(crate) struct Shm {
    ends: [(Endpoint, shm::Monitor); 2],
}

impl Fixture for Shm {
    fn new() -> Self {
        let (left, right) = UnixStream::pair().unwrap();
        let other = std::thread::spawn(|| shm::endpoint(right, 8).unwrap());
        let this = shm::endpoint(left, 8).unwrap();
        let ends = [this, other.join().unwrap()];
        Self { ends }
    }

    fn ends(&mut self) -> [&mut Endpoint; 2] {
        let [(a, _), (b, _)] = &mut self.ends;
        [a, b]
    }

    fn poll(&mut self) {}

    fn name() -> &'static str {
        "shm"
    }
}

mod suite {
    crate::suite!(crate::shm::Shm);
}
