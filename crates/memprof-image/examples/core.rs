//! Prints the contents of a core file: `cargo run --release --example core -- FILE`.
use memprof_image::*;
use std::time::Instant;
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("no file")?;
    let start = Instant::now();
    let image = Image::of_core(std::fs::File::open(path)?)?;
    let a = Analysis::new(image);
    println!("{:?}", start.elapsed());
    for (question, parameters) in
        std::env::args().skip(2).collect::<Vec<_>>().chunks(2).map(|p| (p[0].clone(), p[1].clone()))
    {
        println!(
            "{question}: {}",
            questions::ask(&a, &question, serde_json::from_str(&parameters)?)?
        );
        println!("{:?}", start.elapsed());
    }
    Ok(())
}
