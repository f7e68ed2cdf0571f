//! Frames for other stations: tools that measure take them, as they are sent to whom a tool at the
//! other end makes up.

use pollux_pmd::{Port, PortError, Registry, port::Probed};
use pollux_program::say;

/// The option of sub-commands that measure what comes.
#[derive(clap::Args)]
pub(crate) struct Promisc {
    /// Receive only what is addressed to an interface
    ///
    /// Without it, interfaces of the kernel (af_packet, af_xdp) are promiscuous as long as they are
    /// open, if their spec does not say promisc=off. Of other ports, the spec alone decides.
    #[arg(long)]
    no_promisc: bool,
}

/// Ports that receive what is addressed to them, and nothing else.
pub(crate) struct Filtered(Vec<String>);

impl Promisc {
    /// Opens all ports, or none.
    pub(crate) fn open<S: AsRef<str>>(
        &self,
        registry: &Registry,
        specs: &[S],
    ) -> Result<(Vec<Port<Probed>>, Filtered), PortError> {
        // A spec that is wrong is reported before one that cannot be opened.
        for spec in specs {
            registry.check(spec.as_ref())?;
        }
        let (mut ports, mut filtered) = (Vec::new(), Vec::new());
        for spec in specs.iter().map(AsRef::as_ref) {
            let port = if self.no_promisc {
                registry.open(spec)?
            } else {
                registry.open_promiscuous(spec)?
            };
            if registry.filters(spec, !self.no_promisc)? {
                let own = port.capabilities().mac;
                let own = own.map_or_else(String::new, |mac| format!(", {mac}"));
                filtered.push(format!(
                    "{spec} receives what is sent to its own address{own}"
                ));
            }
            ports.push(port);
        }
        Ok((ports, Filtered(filtered)))
    }
}

impl Filtered {
    /// Tells of each port why nothing may have come.
    pub(crate) fn tell(&self) {
        for port in &self.0 {
            say(format_args!(
                "hint: nothing came; {port}, and to groups that it has joined: send to that \
                 (--dst-mac), or leave out --no-promisc and promisc=off"
            ));
        }
    }
}
