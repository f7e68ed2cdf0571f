//! Promiscuous mode of measuring tools. They receive frames to other stations, since the tool at
//! the other end may send to arbitrary addresses.

use pollux_app::user_message;
use pollux_pmd::{Port, PortError, Registry, port::Probed};

/// Option of sub-commands that measure received frames.
#[derive(clap::Args)]
pub(crate) struct Promisc {
    /// Receive only frames addressed to the interface
    ///
    /// Without it, interfaces of the kernel (af_packet, af_xdp) are promiscuous while they are
    /// open, unless their spec has promisc=off. The mode of other ports depends on the spec alone.
    #[arg(long)]
    no_promisc: bool,
}

/// Ports that receive only frames to their own address.
pub(crate) struct Filtered(Vec<String>);

impl Promisc {
    /// Opens all ports, or none.
    pub(crate) fn open<S: AsRef<str>>(
        &self,
        registry: &Registry,
        specs: &[S],
    ) -> Result<(Vec<Port<Probed>>, Filtered), PortError> {
        // A malformed spec is reported before a port that cannot be opened.
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
    /// Prints for each filtered port why no frame may have arrived.
    pub(crate) fn tell(&self) {
        for port in &self.0 {
            user_message(format_args!(
                "hint: nothing came; {port}, and to groups that it has joined: send to that \
                 (--dst-mac), or leave out --no-promisc and promisc=off"
            ));
        }
    }
}
