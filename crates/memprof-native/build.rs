//! Sets `cfg(interposed)` where calls can be interposed.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(interposed)");
    let target = |key: &str| var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    let known = matches!(target("ARCH").as_str(), "x86_64" | "aarch64");
    if target("OS") == "linux" && known && target("POINTER_WIDTH") == "64" {
        println!("cargo::rustc-cfg=interposed");
    }
}
