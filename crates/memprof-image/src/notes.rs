//! Notes of a core file: threads, mapped files, the command.

use std::ops::Range;

use object::elf;

use crate::image::{Machine, Thread};

/// The offset of the registers in `struct elf_prstatus`.
const REGISTERS: usize = 112;
const THREAD_ID: usize = 32;
const SIGNAL: usize = 12;
/// `struct elf_prpsinfo`: the process, and 80 bytes of its command line.
const PID: usize = 24;
const ARGUMENTS: Range<usize> = 56..136;
/// Files have names of at most 4 KiB, and a process 65,530 mappings by default.
const MAX_FILES: u64 = 1 << 22;

#[derive(Default)]
pub(crate) struct Notes {
    pub threads: Vec<Thread>,
    pub files: Vec<String>,
    pub mapped: Vec<(Range<u64>, u32)>,
    pub command: String,
    pub pid: Option<u32>,
    pub signal: Option<u32>,
}

impl Notes {
    /// Reads a note. Unknown and truncated notes are skipped.
    pub fn add(&mut self, kind: elf::NoteType, name: &[u8], content: &[u8], machine: Machine) {
        match (name, kind) {
            (b"CORE", elf::NT_PRSTATUS) => self.add_thread(content, machine),
            (b"CORE", elf::NT_PRPSINFO) => self.add_process(content),
            (b"CORE", elf::NT_FILE) => {
                let _ = self.add_files(content);
            }
            (b"LINUX", elf::NT_ARM_TLS) => {
                if let Some(thread) = self.threads.last_mut() {
                    thread.thread_pointer = word(content, 0);
                }
            }
            _ => {}
        }
    }

    fn add_thread(&mut self, content: &[u8], machine: Machine) {
        let registers = (REGISTERS..).step_by(8).map_while(|at| word(content, at));
        let thread = half(content, THREAD_ID)
            .and_then(|id| Thread::of_registers(id, registers.collect(), machine));
        let Some(thread) = thread else {
            return;
        };
        if self.threads.is_empty() {
            let signal = content.get(SIGNAL..SIGNAL + 2);
            self.signal = signal
                .map(|bytes| u32::from(u16::from_le_bytes([bytes[0], bytes[1]])))
                .filter(|signal| *signal > 0);
        }
        self.threads.push(thread);
    }

    fn add_process(&mut self, content: &[u8]) {
        self.pid = half(content, PID);
        let text = content.get(ARGUMENTS).unwrap_or_default();
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        self.command = String::from_utf8_lossy(text).trim_end().to_owned();
    }

    /// A count, the page size, then start, end and offset of each mapping, then their paths.
    fn add_files(&mut self, content: &[u8]) -> Option<()> {
        let count = word(content, 0)?.min(MAX_FILES) as usize;
        let mut names = content.get(16 + count * 24..)?.split(|byte| *byte == 0);
        for number in 0..count {
            let at = 16 + number * 24;
            let range = word(content, at)?..word(content, at + 8)?;
            let name = String::from_utf8_lossy(names.next()?).into_owned();
            // Mappings of a file are adjacent.
            if self.files.last() != Some(&name) {
                self.files.push(name);
            }
            self.mapped.push((range, self.files.len() as u32 - 1));
        }
        Some(())
    }
}

fn word(content: &[u8], at: usize) -> Option<u64> {
    let bytes = content.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn half(content: &[u8], at: usize) -> Option<u32> {
    let bytes = content.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
