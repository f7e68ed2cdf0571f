//! Values of options.

use std::fmt;
use std::ops::RangeInclusive;

use crate::driver::filter::Multicast;

macro_rules! choices {
    ($(
        $(#[$about:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        /// As in a spec.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)* })
            }
        }
    )*};
}

choices! {
    /// How fast a capture is received.
    Pace {
        /// As fast as polled.
        Fast = "fast",
        /// At the recorded spacing.
        Recorded = "recorded",
    }

    /// How an interface's frames are shared out to receive queues.
    Fanout {
        /// By flow.
        Hash = "hash",
        /// By the core that got the interrupt.
        Cpu = "cpu",
        /// By the NIC's queue.
        Queue = "queue",
    }

    /// Source of time stamps.
    Stamps {
        /// The kernel.
        Kernel = "kernel",
        /// The clock of the NIC.
        Hardware = "hardware",
    }

    /// Whether an AF_XDP device reaches the pool's memory by itself.
    XdpMode {
        /// Where it can.
        Auto = "auto",
        /// No: the kernel copies.
        Copy = "copy",
        /// Yes.
        Zerocopy = "zerocopy",
    }

    /// Where the XDP program runs.
    Attach {
        /// In the NIC's driver where that has a place for it.
        Auto = "auto",
        /// In the NIC's driver.
        Native = "native",
        /// Behind the NIC's driver.
        Skb = "skb",
    }

    /// Where frames go that are no UDP datagrams for the port.
    OtherFrames {
        /// To the port too.
        Port = "port",
        /// On to the kernel.
        Kernel = "kernel",
        /// Nowhere (counted).
        Drop = "drop",
    }

    /// What is made of the checksums of received frames.
    Checksums {
        /// They are verified.
        Verify = "verify",
        /// All frames are marked as verified.
        Trust = "trust",
    }

    /// End of the rings of `vhost-user`.
    Role {
        /// The front end, which shares its memory.
        Driver = "driver",
        /// The back end, which reaches into the peer's memory.
        Device = "device",
    }

    /// Format of receive descriptors of the 82574L.
    Descriptors {
        /// Extended.
        Extended = "extended",
        /// Legacy.
        Legacy = "legacy",
    }
}

pub(super) fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.into()
}

/// Values with a + between.
pub(super) fn list(values: &[impl ToString]) -> String {
    let values: Vec<_> = values.iter().map(ToString::to_string).collect();
    values.join("+")
}

pub(super) fn groups(groups: &Multicast) -> String {
    match groups {
        Multicast::All => "all".into(),
        Multicast::Listed(groups) => list(groups),
    }
}

pub(super) fn range(range: &RangeInclusive<u16>) -> String {
    format!("{}-{}", range.start(), range.end())
}
