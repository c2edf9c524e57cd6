//! A process with known blocks.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use memprof_image::{Image, waiting_threads};

/// The process of examples/planted.rs, killed on drop.
pub struct Planted {
    child: Child,
    /// A list of three blocks, a large one, an aligned one.
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
        let planted = Planted { addresses: addresses.collect(), child };
        planted.wait();
        planted
    }

    /// Waits until both threads are blocked: after the line is printed, they still allocate.
    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while waiting_threads(self.child.id()).len() < 2 {
            assert!(Instant::now() < deadline, "its threads run on");
            thread::sleep(Duration::from_millis(1));
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
