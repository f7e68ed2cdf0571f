//! Compiles the C that conversion is compared with: at -O3 for every x86-64, and again for the
//! instruction sets of later levels, of which the program takes the best that the CPU has.

const SOURCE: &str = "src/peer/convert.c";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed=build.rs");
    for level in ["", "_v3", "_v4"] {
        let mut build = cc::Build::new();
        build.file(SOURCE).opt_level(3).warnings(true);
        if !level.is_empty() {
            build.flag(format!("-march=x86-64{}", level.replace('_', "-")));
            for function in ["peer_convert", "peer_convert_veto_csr"] {
                build.define(function, &*format!("{function}{level}"));
            }
        }
        build.try_compile(&format!("convert{level}"))?;
    }
    let version = cc::Build::new().try_get_compiler()?.to_command();
    println!("cargo::rustc-env=C_COMPILER={}", name(version));
    Ok(())
}

/// The first line that the compiler has for its version.
fn name(mut compiler: std::process::Command) -> String {
    let said = compiler.arg("--version").output().map(|done| done.stdout);
    let said = String::from_utf8(said.unwrap_or_default()).unwrap_or_default();
    said.lines().next().unwrap_or("C compiler").to_owned()
}
