//! Defines `cfg(ruby_gte_3_4)` and the like for the sources, and says where a platform gem has the shared library.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let _ = rb_sys_env::activate()?;
    if std::env::var_os("CARGO_FEATURE_SHARED").is_some() {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
    }
    Ok(())
}
