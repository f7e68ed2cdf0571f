//! Cables between namespaces.

use std::net::UdpSocket;

use crate::netns::namespace::Namespace;

/// Two namespaces with a veth pair between them: `va` in the first is the port's, `vb` in the
/// second the kernel's.
#[derive(Debug)]
pub struct Cable {
    /// Where `va` is.
    pub a: Namespace,
    /// Where `vb` is.
    pub b: Namespace,
}

impl Cable {
    /// A cable whose far end is [the kernel's](Namespace::make_kernel_end). `None` as for
    /// [`Namespace::new`].
    #[must_use]
    pub fn new(mtu: u32) -> Option<Self> {
        let cable = Self::bare(mtu)?;
        cable.b.make_kernel_end("vb");
        Some(cable)
    }

    /// A cable between ends that are up but have no IP addresses.
    #[must_use]
    pub fn bare(mtu: u32) -> Option<Self> {
        let (a, b) = (Namespace::new()?, Namespace::new()?);
        a.ip(&format!(
            "link add va mtu {mtu} address 02:00:00:00:00:0a type veth \
             peer name vb mtu {mtu} address 02:00:00:00:00:0b netns {}",
            b.name()
        ));
        a.ip("link set va up");
        b.ip("link set vb up");
        Some(Self { a, b })
    }

    /// See [`Namespace::peer`]: at the far end.
    #[must_use]
    pub fn peer(&self, port: u16) -> UdpSocket {
        self.b.peer(port)
    }
}
