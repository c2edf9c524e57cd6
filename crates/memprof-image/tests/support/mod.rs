//! A process with known blocks.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use memprof_image::{Image, waiting_threads};

/// The process of examples/planted.rs; it ends with this.
pub struct Planted {
    child: Child,
    /// A list of three blocks, a large one, one with an alignment.
    #[allow(dead_code, reason = "of one test")]
    pub addresses: Vec<u64>,
}

impl Planted {
    pub fn start() -> Planted {
        let mut program = std::env::current_exe().expect("a path");
        program.pop();
        program.pop();
        program.push("examples/planted");
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("examples/planted is built with the tests");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe"))
            .read_line(&mut line)
            .expect("a line");
        let words = line.split_whitespace().skip(1);
        let addresses = words.map(|word| u64::from_str_radix(word, 16).expect("an address"));
        Planted {
            addresses: addresses.collect(),
            child,
        }
    }

    pub fn image(&self) -> Image {
        Image::of_process(self.child.id(), waiting_threads(self.child.id())).expect("its memory")
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
