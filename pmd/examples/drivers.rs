//! Documentation generator for drivers: prints docs/ports.md from the drivers' descriptions, or
//! writes it with `--write`.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;

#[cfg(test)]
use pollux_pmd::PortSpec;
use pollux_pmd::Registry;
use pollux_pmd::driver::{Description, Feature, SpecOption, Support};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ports.md");

const REGENERATE: &str = "cargo run -p pollux-pmd --example drivers -- --write";

fn page(drivers: &[&Description]) -> String {
    let mut page = format!(
        "# Ports and their drivers\n\n\
         Generated from the drivers' descriptions: `{REGENERATE}`.\n\n\
         A port is named by a spec, `driver:target,key=value,...`, as in \
         `af_packet:eth0,promisc=on`:\n\n\
         - A driver without a target takes its options after a comma or a colon: `null,size=0`, \
         `null:size=0`.\n\
         - After the first comma a `key` alone stands for `key=on`.\n\
         - Options of the same name have the same meaning in all drivers.\n\
         - A spec is checked before anything is opened.\n\
         - `rps=QUEUES` (2 to 64), of all drivers but `pcap`: receive packet steering. The port has so \
         many receive queues in software. The loop of the first one polls the device's one queue and \
         distributes flows over all; fragments and what is no UDP stay in the first. A queue whose \
         ring is full loses frames, as `ring-full`. No loop can sleep on these queues.\n\n\
         A user who names a port of `pci`, `dpdk` or, as the front end, `vhost-user` vouches for its \
         device or peer, which writes into packet memory by itself \
         ([devices and peers](operations.md#10-devices-and-peers)); a program that embeds them makes \
         a `MemoryGrant` ([embedding](embedding.md#granting-memory)). Such a program can also write a \
         spec by types: `Port::pci(\"0000:03:00.0\").mtu(9000)` (`pollux_pmd::builders`). All drivers need Linux on \
         x86-64. How to add one: [drivers](drivers.md).\n\n\
         ## Features\n\n"
    );
    features(&mut page, drivers);
    for driver in drivers {
        section(&mut page, driver);
    }
    page
}

/// The table of features: the driver's section explains `partly`, and features that users may
/// expect.
fn features(page: &mut String, drivers: &[&Description]) {
    let columns = |cell: &dyn Fn(&Description) -> String| {
        let cells: Vec<_> = drivers.iter().map(|driver| cell(driver)).collect();
        cells.join(" | ")
    };
    let names = columns(&|driver| format!("[{0}](#{0})", driver.name));
    writeln!(page, "| | {names} |").unwrap();
    writeln!(page, "| --- | {} |", columns(&|_| "---".into())).unwrap();
    for &feature in Feature::ALL {
        let cells = columns(&|driver| match driver.support(feature) {
            Support::No | Support::NotOffered(_) => String::new(),
            Support::Yes => "yes".into(),
            Support::Partly(_) => "partly".into(),
        });
        if feature != Feature::Needs {
            writeln!(page, "| {} | {cells} |", feature.text()).unwrap();
        }
    }
}

fn section(page: &mut String, driver: &Description) {
    let (name, summary) = (driver.name, driver.summary);
    writeln!(page, "\n## {name}\n\n`{}`: {summary}.", driver.form()).unwrap();
    if !driver.options.is_empty() {
        writeln!(
            page,
            "\n| option | default | meaning |\n| --- | --- | --- |"
        )
        .unwrap();
    }
    for option in driver.options {
        let SpecOption {
            key,
            values,
            default,
            text,
        } = option;
        let values = values.replace('|', "\\|");
        writeln!(page, "| `{key}={values}` | {default} | {text} |").unwrap();
    }
    let explained = Feature::ALL.iter().filter_map(|&feature| {
        let support = driver.support(feature);
        let has_words = matches!(support, Support::Partly(_) | Support::NotOffered(_));
        has_words.then(|| format!("- {}: {support}", feature.text()))
    });
    let explained: Vec<_> = explained.collect();
    if !explained.is_empty() {
        writeln!(page, "\n{}", explained.join("\n")).unwrap();
    }
}

fn main() -> std::io::Result<()> {
    let registry = Registry::builtin();
    let page = page(&registry.descriptions().collect::<Vec<_>>());
    if std::env::args()
        .nth(1)
        .is_some_and(|argument| argument == "--write")
    {
        return std::fs::write(PAGE, page);
    }
    print!("{page}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of an option, from its documented forms.
    fn value(option: &SpecOption) -> &str {
        let first = option.values.split('|').next().unwrap();
        match first {
            _ if option.key == "multicast" => "01:00:5e:00:00:fb",
            "MAC" | "MAC+MAC..." => "02:00:00:00:00:01",
            "UUID" => "00000000-0000-0000-0000-000000000001",
            "LO-HI" => "5000-5099",
            "PORT:QUEUE+..." => "5000:0",
            "HEX" => {
                "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"
            }
            "QUEUE+QUEUE..." => "0+1",
            "ID+ID..." => "5",
            "IP+IP..." => "10.0.0.1",
            "0-7" => "2",
            "FILE" => "x.pcap",
            "ARG+ARG..." => "--no-pci",
            _ if option.key == "mtu" => "1500",
            _ if first.bytes().all(|byte| byte.is_ascii_uppercase()) => "64",
            _ => first,
        }
    }

    /// `null,size=64` and `null:size=64`; `af_packet:eth0,frame=64`.
    #[test]
    fn every_form_of_the_page_is_a_spec() {
        let registry = Registry::builtin();
        let mut refused = Vec::new();
        for driver in registry.descriptions() {
            let name = driver.name;
            let target = driver.target.map(|target| target.example);
            let port = target.map_or_else(|| name.into(), |target| format!("{name}:{target}"));
            for option in driver.options {
                let option = format!("{}={}", option.key, value(option));
                let more = match option.as_str() {
                    // Options that require others.
                    "pace=fast" | "loop=64" => ",rx=x.pcap",
                    "vf-macs=02:00:00:00:00:01" | "vf-vlans=5" => ",vfs=1",
                    _ if name == "unix" && option.starts_with("peer=") => "",
                    _ if name == "unix" => ",peer=/run/b.sock",
                    _ => "",
                };
                let mut specs = vec![format!("{port},{option}{more}")];
                if target.is_none() {
                    specs.push(format!("{name}:{option}{more}"));
                }
                for spec in specs {
                    let parsed: PortSpec = spec.parse().unwrap();
                    assert_eq!(parsed.driver(), name, "{spec}");
                    refused.extend((driver.check)(&parsed).err().map(|error| error.to_string()));
                    refused.extend(registry.check(&spec).err().map(|error| error.to_string()));
                }
            }
        }
        assert!(refused.is_empty(), "{refused:#?}");
    }

    #[test]
    fn the_page_is_what_the_drivers_say() {
        let registry = Registry::builtin();
        let page = page(&registry.descriptions().collect::<Vec<_>>());
        let there = std::fs::read_to_string(PAGE).unwrap_or_default();
        assert!(there == page, "docs/ports.md is out of date: {REGENERATE}");
    }
}
