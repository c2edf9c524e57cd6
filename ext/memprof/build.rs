//! Defines `cfg(ruby_gte_3_4)` and the like for the sources.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let _ = rb_sys_env::activate()?;
    Ok(())
}
