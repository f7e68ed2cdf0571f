//! Translates the RTL of the card and of the event builder's ring to C++ by Verilator, and builds a
//! library of each and of its shim. Only with the feature `verilated`; without Verilator the crate builds
//! without them.

#[cfg_attr(
    not(feature = "verilated"),
    expect(clippy::unnecessary_wraps, reason = "nothing fails")
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rustc-check-cfg=cfg(has_verilator)");
    #[cfg(feature = "verilated")]
    verilate::run()?;
    Ok(())
}

#[cfg(feature = "verilated")]
mod verilate {
    use std::env;
    use std::error::Error;
    use std::fs;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    const RTL: &str = "../rtl";
    const SHIM: &str = "shim";
    /// The commit of the build: `GIT_HASH` of the card's model.
    const GIT_HASH: &str = "-GGIT_HASH=160'h0123456789abcdeffedcba98765432100f1e2d3c";

    /// A module that is simulated.
    struct Top {
        module: &'static str,
        /// Prefix of the C++ classes, and the name of shim and library.
        prefix: &'static str,
        name: &'static str,
        parameters: &'static [&'static str],
    }

    const TOPS: [Top; 3] = [
        Top {
            module: "plx_card",
            prefix: "Vcard",
            name: "card",
            parameters: &[GIT_HASH],
        },
        // A lane of the PCS, which a board has beside the card.
        Top {
            module: "plx_pcs",
            prefix: "Vlane",
            name: "lane",
            parameters: &[],
        },
        Top {
            module: "plx_evb_ring",
            prefix: "Vring",
            name: "ring",
            parameters: &[],
        },
    ];
    const TRACE: bool = cfg!(feature = "trace");
    const COVERAGE: bool = cfg!(feature = "coverage");

    pub(super) fn run() -> Result<(), Box<dyn Error>> {
        for watched in [RTL, SHIM, "build.rs"] {
            println!("cargo::rerun-if-changed={watched}");
        }
        println!("cargo::rerun-if-env-changed=PATH");
        let Some(root) = verilator_root() else {
            println!(
                "cargo::warning=no Verilator, so no simulated card: apt-get install verilator"
            );
            return Ok(());
        };
        let include = root.join("include");
        for top in &TOPS {
            let out = PathBuf::from(env::var("OUT_DIR")?).join(top.name);
            // Files of the previous build would be compiled too.
            if out.exists() {
                fs::remove_dir_all(&out)?;
            }
            generate(top, &out)?;
            compile(top, &out, &include)?;
        }
        runtime(&include);
        println!("cargo::rustc-cfg=has_verilator");
        Ok(())
    }

    /// Verilator's own files, if it is installed.
    fn verilator_root() -> Option<PathBuf> {
        let told = Command::new("verilator")
            .args(["--getenv", "VERILATOR_ROOT"])
            .output();
        let told = told.ok().filter(|told| told.status.success())?;
        Some(PathBuf::from(String::from_utf8(told.stdout).ok()?.trim()))
    }

    /// RTL to C++.
    fn generate(top: &Top, out: &Path) -> Result<(), Box<dyn Error>> {
        let mut folders = vec![PathBuf::from(RTL)];
        let mut packages = Vec::new();
        let mut next = 0;
        while let Some(folder) = folders.get(next).cloned() {
            for path in files(&folder)? {
                if path.is_dir() {
                    folders.push(path);
                } else if path.to_string_lossy().ends_with("_pkg.sv") {
                    packages.push(path);
                }
            }
            next += 1;
        }
        let mut verilator = Command::new("verilator");
        verilator
            .args([
                "--cc",
                "--prefix",
                top.prefix,
                "--top-module",
                top.module,
                "-O3",
                "--Mdir",
            ])
            .arg(out)
            .args(top.parameters);
        // Values that the RTL leaves open, and initial values, are random by the seed.
        verilator.args(["--x-assign", "unique", "--x-initial", "unique"]);
        // Several files, so that several compilers work.
        verilator.args(["--output-split", "20000"]);
        if TRACE {
            verilator.arg("--trace-fst");
        }
        if COVERAGE {
            verilator.arg("--coverage-line");
        }
        for folder in &folders {
            verilator.arg("-y").arg(folder);
        }
        let status = verilator
            .arg(format!("{SHIM}/{}.vlt", top.name))
            .args(packages)
            .arg(format!("{}.sv", top.module))
            .status()?;
        if !status.success() {
            return Err("Verilator refuses the RTL: scripts/gateware lint says why".into());
        }
        Ok(())
    }

    /// C++ to a library.
    fn compile(top: &Top, out: &Path, include: &Path) -> Result<(), Box<dyn Error>> {
        let made = files(out)?
            .into_iter()
            .filter(|path| path.extension().is_some_and(|it| it == "cpp"));
        // Code that runs once, at the start, or writes the waveform.
        let is_slow = |path: &PathBuf| {
            let name = path.to_string_lossy();
            name.ends_with("__Slow.cpp") || name.ends_with("__Syms.cpp")
        };
        let (slow, fast): (Vec<_>, Vec<_>) = made.partition(is_slow);
        let shim = Path::new(SHIM).join(format!("{}.cpp", top.name));
        build(include)
            .include(out)
            .files(fast)
            .file(shim)
            .compile(&format!("pollux_{}", top.name));
        build(include)
            .include(out)
            .opt_level(0)
            .files(slow)
            .compile(&format!("pollux_{}_slow", top.name));
        Ok(())
    }

    /// Verilator's support code, of every model.
    fn runtime(include: &Path) {
        let mut sources = vec![
            "verilated.cpp",
            "verilated_dpi.cpp",
            "verilated_threads.cpp",
        ];
        if TRACE {
            sources.push("verilated_fst_c.cpp");
            println!("cargo::rustc-link-lib=z");
        }
        if COVERAGE {
            sources.push("verilated_cov.cpp");
        }
        build(include)
            .files(sources.into_iter().map(|file| include.join(file)))
            .compile("pollux_verilated");
    }

    /// Optimised by the profile.
    fn build(include: &Path) -> cc::Build {
        let flag = |on| if on { "1" } else { "0" };
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").debug(false).warnings(false);
        build.include(include).include(include.join("vltstd"));
        build
            .define("VM_TRACE", flag(TRACE))
            .define("VM_TRACE_FST", flag(TRACE));
        build.define("VM_COVERAGE", flag(COVERAGE));
        build
    }

    /// What is in a folder, in the order of names.
    fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
        let entries: io::Result<Vec<_>> = fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect();
        let mut entries = entries?;
        entries.sort();
        Ok(entries)
    }
}
