//! TAP tests in network namespaces of their own, against the kernel's own UDP.

mod faults;
mod traffic;

use pollux_pmd::{PortError, Registry};
use pollux_pmd_testkit::netns::Namespace;

use crate::common::Port;

/// The port, with the address that the kernel's end has as a neighbour entry.
const TAP: &str = "tap:pol0,up,mac=02:00:00:00:00:0a";

/// A namespace with the kernel's end of a tap, and the port at the other end.
fn tap(options: &str, rx_queues: u16, buffers: usize) -> Option<(Namespace, Port)> {
    let namespace = Namespace::new()?;
    let port = Port::try_open(&namespace, &format!("{TAP}{options}"), rx_queues, buffers).unwrap();
    namespace.make_kernel_end("pol0");
    Some((namespace, port))
}

fn refused(namespace: &Namespace, spec: &str) -> PortError {
    let opened = namespace.within(|| Registry::builtin().open(spec).map(drop));
    opened.expect_err(spec)
}
