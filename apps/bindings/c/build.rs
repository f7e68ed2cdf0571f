//! Names the shared library for the linker: programs load the ABI that they were built with.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpollux.so.0");
}
