//! With feature `dpdk`: generates the bindings of the installed libdpdk, and compiles the static
//! inline functions of its headers and the timed loops in `c/`. Without it: nothing.

#[cfg(not(feature = "dpdk"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}

#[cfg(feature = "dpdk")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::path::PathBuf;

    for file in [
        "build.rs",
        "c/dpdk.h",
        "c/constant_burst.h",
        "c/timed.h",
        "c/timed.c",
        "c/timed_ports.c",
    ] {
        println!("cargo::rerun-if-changed={file}");
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Shared libraries, as Debian's own programs use them.
    let library = pkg_config::Config::new().atleast_version("22.11").probe("libdpdk").map_err(|error| {
        format!("feature `dpdk` needs DPDK 22.11 or later (Debian: apt-get install libdpdk-dev clang libclang-dev pkg-config): {error}")
    })?;
    // pkg_config gives paths and names; the machine flags that the inline functions need
    // (-march=corei7 in Debian, -include rte_config.h) are read as they are.
    let flags = cflags()?;
    println!("cargo::metadata=version={}", library.version);
    println!("cargo::rustc-env=DPDK_VERSION={}", library.version);
    println!(
        "cargo::rustc-env=DPDK_CFLAGS={}",
        flags
            .iter()
            .filter(|f| f.starts_with("-m"))
            .cloned()
            .collect::<Vec<_>>()
            .join(" ")
    );

    let inlines = out.join("inlines");
    bindgen::Builder::default()
        .header("c/timed.h")
        .clang_args(&flags)
        .allowlist_function("(rte_(eal|dev|extmem|log|mempool|pktmbuf|mbuf_dyn|flow|ring|eth|net_get_ptype|raw_cksum|ipv4_|ipv6_|hash|lcore|strerror|thread_(un)?register)|dpdk_|timed_).*")
        .allowlist_type("rte_(mbuf|pktmbuf_pool_private|net_hdr_lens|hash_parameters|eth_conf|eth_stats|flow_.*)|stream_(count|key)")
        .allowlist_var("RTE_(PTYPE|MBUF|PKTMBUF|RING|RX|ETH|MEMPOOL|LOG|FLOW)_.*|SOCKET_ID_ANY|LCORE_ID_ANY|RTE_MAX_LCORE|RTE_MAX_ETHPORTS|RING_F_.*|DPDK_.*")
        // Packed structs with aligned members: Rust has no such type, and this crate needs none of
        // them.
        .opaque_type("rte_arp_(hdr|ipv4)|rte_ether_addr|rte_l2tpv2_.*|rte_gtp_.*")
        .wrap_static_fns(true)
        .wrap_static_fns_path(&inlines)
        .derive_default(true)
        .layout_tests(false)
        .generate_comments(false)
        .generate()?
        .write_to_file(out.join("bindings.rs"))?;

    let mut build = cc::Build::new();
    build
        .include("c")
        .warnings(false)
        .opt_level(3)
        .file(inlines.with_extension("c"));
    // The generated file includes the header as it was named above.
    build.include(std::env::var("CARGO_MANIFEST_DIR")?);
    build.file("c/timed.c").file("c/timed_ports.c");
    for flag in &flags {
        build.flag(flag);
    }
    build.compile("pollux_dpdk");
    Ok(())
}

/// `pkg-config --cflags libdpdk`.
#[cfg(feature = "dpdk")]
fn cflags() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let program = std::env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let output = std::process::Command::new(program)
        .args(["--cflags", "libdpdk"])
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}
