//! Network interfaces.

use serde::Serialize;

use crate::Sys;

// linux/if_arp.h: Ethernet and compatible types; the loopback carries such frames too.
const ARPHRD_ETHER: u32 = 1;
const ARPHRD_LOOPBACK: u32 = 772;

/// A network interface of this network namespace.
#[derive(Clone, Debug, Serialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Whether it carries Ethernet frames.
    #[serde(skip)]
    pub ethernet: bool,
    /// Whether it is up (IFF_UP).
    pub up: bool,
    /// Whether it has a carrier.
    pub carrier: bool,
    /// Its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Its MTU in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Mbit/s, where the link has a speed.
    #[serde(rename = "speed_mbit", skip_serializing_if = "Option::is_none")]
    pub speed: Option<u32>,
    /// Driver of the underlying device; `None` for software interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

/// All interfaces.
#[must_use]
pub fn interfaces(sys: &Sys) -> Vec<Interface> {
    let names = sys.names("/sys/class/net").into_iter();
    names.map(|name| interface(sys, name)).collect()
}

fn interface(sys: &Sys, name: String) -> Interface {
    let of = |attribute: &str| format!("/sys/class/net/{name}/{attribute}");
    let flags = sys.text(&of("flags")).unwrap_or_default();
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or_default();
    Interface {
        ethernet: matches!(sys.parse(&of("type")), Ok(ARPHRD_ETHER | ARPHRD_LOOPBACK)),
        up: flags & libc::IFF_UP as u32 != 0,
        carrier: sys.parse(&of("carrier")) == Ok(1_u32),
        mac: sys.text(&of("address")).ok(),
        mtu: sys.parse(&of("mtu")).ok(),
        // -1 without a speed.
        speed: sys.parse(&of("speed")).ok(),
        driver: sys.link(&of("device/driver")),
        name,
    }
}
