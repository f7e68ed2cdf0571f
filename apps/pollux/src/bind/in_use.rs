//! Check whether a device carries the machine's network. Unbinding such a device may cut off the
//! remote access to the machine.

use std::net::Ipv4Addr;

use pollux_machine::ethtool::Ethtool;
use pollux_machine::pci::{self, Function};
use pollux_machine::{Sys, Unread};

/// Use that the kernel makes of a device; `None` if there is none.
pub(super) fn reason(sys: &Sys, device: &Function) -> Option<String> {
    let functions = format!("{}/sriov_numvfs", pci::folder(device.address));
    if let Ok(count @ 1..) = sys.parse::<u32>(&functions) {
        return Some(format!(
            "has {count} virtual functions in use (echo 0 > {functions})"
        ));
    }
    if device.driver.is_none() || device.is_for_programs() {
        return None;
    }
    if !device.is_network() {
        return Some(format!(
            "is not a network controller (class {:06x}) and in use by a driver of the kernel",
            device.class
        ));
    }
    if device.interfaces.is_empty() {
        return Some("has no interface here: it may be in use in another namespace".into());
    }
    // Interfaces below another root do not belong to this kernel.
    let ethtool = sys.is_live().then(Ethtool::new).and_then(Result::ok);
    // Bridges, bonds and VLANs on top of an interface count as the interface.
    let mut names = device.interfaces.clone();
    let mut i = 0;
    while let Some(name) = names.get(i).cloned() {
        if let Some(why) = carries(sys, ethtool.as_ref(), &name) {
            return Some(format!("carries the network: {name} {why}"));
        }
        for upper in sys.names(&format!("/sys/class/net/{name}")) {
            if let Some(upper) = upper.strip_prefix("upper_")
                && !names.iter().any(|known| known == upper)
            {
                names.push(upper.to_owned());
            }
        }
        i += 1;
    }
    None
}

/// Routes and addresses of an interface.
fn carries(sys: &Sys, ethtool: Option<&Ethtool>, name: &str) -> Option<String> {
    // A missing IPv6 table is not an error; a missing IPv4 table is.
    let routes = match network(sys, "route") {
        Ok(text) => text,
        Err(unread) => return Some(format!("may have routes, but {unread}")),
    };
    let routes6 = network(sys, "ipv6_route").unwrap_or_default();
    let mut routes = routes.lines().filter_map(|line| ipv4_route(line, name));
    let default6 = routes6.lines().any(|line| is_ipv6_default(line, name));
    let mut first = routes.next();
    if first.is_some_and(|(to, bits)| to.is_unspecified() && bits == 0)
        || routes.any(|(to, bits)| to.is_unspecified() && bits == 0)
        || default6
    {
        return Some("has a default route".into());
    }
    if let Some((to, bits)) = first.take() {
        return Some(format!("has a route to {to}/{bits}"));
    }
    // An address may exist without a route.
    if let Some(address) = ethtool.and_then(|ethtool| ethtool.ipv4_address(name)) {
        return Some(format!("has the address {address}"));
    }
    match network(sys, "if_inet6") {
        Ok(text) => text
            .lines()
            .any(|line| is_global_ipv6(line, name))
            .then(|| "has an IPv6 address".into()),
        Err(Unread::Missing(_)) => None,
        Err(unread) => Some(format!("may have IPv6 addresses, but {unread}")),
    }
}

/// A table of the network namespace of the devices. Below another root this is the namespace of its
/// first process: /proc/net resolves to the namespace of the reading process, thus to the
/// container's own.
fn network(sys: &Sys, table: &str) -> Result<String, Unread> {
    if !sys.is_live() {
        match sys.text(&format!("/proc/1/net/{table}")) {
            Err(Unread::Missing(_)) => {}
            found => return found,
        }
    }
    sys.text(&format!("/proc/net/{table}"))
}

/// Destination and prefix length of a route through an interface. Columns: interface, destination,
/// gateway, flags, three numbers, mask; addresses are hexadecimal in memory order.
fn ipv4_route(line: &str, name: &str) -> Option<(Ipv4Addr, u32)> {
    let columns: Vec<_> = line.split_whitespace().collect();
    let hex = |i: usize| u32::from_str_radix(columns.get(i)?, 16).ok();
    (*columns.first()? == name).then_some(())?;
    let to = Ipv4Addr::from(hex(1)?.to_le_bytes());
    Some((to, hex(7)?.count_ones()))
}

/// Columns: destination, prefix length, source, its prefix length, next hop, metric, two counts,
/// flags, interface.
fn is_ipv6_default(line: &str, name: &str) -> bool {
    let columns: Vec<_> = line.split_whitespace().collect();
    columns.last() == Some(&name)
        && columns.get(1) == Some(&"00")
        && columns[0].bytes().all(|byte| byte == b'0')
}

/// Columns: address, interface number, prefix length, scope, flags, interface. Every interface has
/// an address of link scope (0x20), so that one is ignored.
fn is_global_ipv6(line: &str, name: &str) -> bool {
    let columns: Vec<_> = line.split_whitespace().collect();
    columns.last() == Some(&name) && columns.get(3).is_some_and(|&scope| scope != "20")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_machine::pci::DEVICES;
    use pollux_machine::testing::Tree;

    const A: &str = "0000:03:00.0";

    fn at(attribute: &str) -> String {
        format!("{DEVICES}/{A}/{attribute}")
    }

    /// A network controller with an unused interface.
    fn idle() -> Tree {
        let tree = Tree::new();
        tree.file(&at("class"), "0x020000")
            .link(&at("driver"), "drivers/ixgbe")
            .folder(&at("net/eth1"))
            .file("/proc/net/route", "Iface\tDestination\tGateway\tFlags\n");
        tree
    }

    fn why(tree: &Tree) -> Option<String> {
        let sys = tree.sys();
        let device = pci::bus(&sys).function(A.parse().unwrap());
        reason(&sys, &device.unwrap())
    }

    #[test]
    fn an_idle_interface_is_free() {
        let tree = idle();
        tree.file(
            "/proc/net/route",
            "eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0",
        )
        .file(
            "/proc/net/if_inet6",
            "fe800000000000000000000000000001 03 40 20 80 eth1\n",
        );
        assert_eq!(why(&tree), None);
    }

    #[test]
    fn routes_and_addresses_are_reasons() {
        let with = |path: &str, text: &str| {
            let tree = idle();
            tree.file(path, text);
            why(&tree).unwrap()
        };
        let route = "eth1 0000000A 00000000 0001 0 0 0 000000FF 0 0 0";
        let default = "eth1 00000000 0100000A 0003 0 0 0 00000000 0 0 0";
        let reason = with("/proc/net/route", route);
        assert_eq!(
            reason,
            "carries the network: eth1 has a route to 10.0.0.0/8"
        );
        let reason = with("/proc/net/route", &format!("{route}\n{default}"));
        assert_eq!(reason, "carries the network: eth1 has a default route");
        let zeros = "0".repeat(32);
        let default6 = format!("{zeros} 00 {zeros} 00 {zeros} 400 1 0 3 eth1");
        assert!(with("/proc/net/ipv6_route", &default6).ends_with("a default route"));
        let global = "20010db8000000000000000000000001 03 40 00 80 eth1";
        assert!(with("/proc/net/if_inet6", global).ends_with("an IPv6 address"));
    }

    #[test]
    fn below_another_root_the_first_process_counts() {
        let tree = idle();
        let route = "eth1 00000000 0100000A 0003 0 0 0 00000000 0 0 0";
        tree.file("/proc/1/net/route", route);
        assert!(why(&tree).unwrap().ends_with("a default route"));
        tree.file("/proc/1/net/route", "");
        assert_eq!(why(&tree), None);
        let hidden = idle();
        hidden.unreadable("/proc/1/net/route");
        assert!(why(&hidden).unwrap().contains("cannot be read"));
    }

    #[test]
    fn what_stands_on_an_interface_counts() {
        let tree = idle();
        tree.folder("/sys/class/net/eth1/upper_bond0")
            .folder("/sys/class/net/bond0/upper_vlan7")
            .folder("/sys/class/net/vlan7/upper_eth1")
            .file(
                "/proc/net/route",
                "vlan7 0000000A 00000000 0001 0 0 0 000000FF 0 0 0",
            );
        assert!(why(&tree).unwrap().contains("vlan7 has a route"));
    }

    #[test]
    fn what_cannot_be_told_is_a_reason() {
        let tree = idle();
        tree.unreadable("/proc/net/if_inet6");
        assert!(why(&tree).unwrap().contains("cannot be read"));
        let hidden = Tree::new();
        hidden
            .file(&at("class"), "0x020000")
            .link(&at("driver"), "drivers/ixgbe");
        assert!(why(&hidden).unwrap().contains("another namespace"));
        hidden.folder(&at("net/eth1"));
        assert!(
            why(&hidden)
                .unwrap()
                .contains("there is no /proc/net/route")
        );
        let disk = Tree::new();
        disk.file(&at("class"), "0x010802")
            .link(&at("driver"), "drivers/nvme");
        assert!(
            why(&disk)
                .unwrap()
                .contains("not a network controller (class 010802)")
        );
        let parent = idle();
        parent.file(&at("sriov_numvfs"), "4");
        assert!(why(&parent).unwrap().contains("4 virtual functions"));
    }

    #[test]
    fn rubbish_is_no_reason_and_no_panic() {
        let tree = idle();
        for path in [
            "/proc/net/route",
            "/proc/net/ipv6_route",
            "/proc/net/if_inet6",
        ] {
            tree.file(
                path,
                b"eth1\neth1 x\n\xff\xfe eth1\n \n00 eth1\neth1 zz zz zz zz zz zz zz\n",
            );
        }
        assert_eq!(why(&tree), None);
    }
}
