//! The memory of a process by address.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use crate::recent::Recent;
use crate::segment::Segment;

/// Bytes of a word. Only 64-bit processes are supported.
pub(crate) const WORD: u64 = 8;

/// Bytes read at once by sequential reads.
pub(crate) const WINDOW: usize = 1 << 20;

/// Bytes read at once by reads of single words.
pub(crate) const GLIMPSE: usize = 1 << 12;

/// A processor with known registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// AMD's and Intel's.
    X86_64,
    /// Arm's.
    Aarch64,
}

/// A stopped thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its thread id.
    pub id: u32,
    /// General-purpose registers, in the kernel's order.
    pub registers: Vec<u64>,
    /// The low end of its stack.
    pub stack_pointer: u64,
    /// The instruction pointer.
    pub instruction: u64,
    /// The address of its thread-local variables, if known.
    pub thread_pointer: Option<u64>,
}

impl Machine {
    /// The processor running this program.
    #[must_use]
    pub fn own() -> Machine {
        if cfg!(target_arch = "aarch64") { Machine::Aarch64 } else { Machine::X86_64 }
    }

    /// The number of general-purpose registers, and the indexes of the stack pointer and the instruction pointer.
    fn registers(self) -> (usize, usize, usize) {
        match self {
            Machine::X86_64 => (27, 19, 16),
            Machine::Aarch64 => (34, 31, 32),
        }
    }
}

impl Thread {
    /// A thread from its registers, in the kernel's order for this processor; None if there are too few.
    #[must_use]
    pub fn of_registers(id: u32, mut registers: Vec<u64>, machine: Machine) -> Option<Thread> {
        const SEGMENT_FS: usize = 21;
        let (count, stack_pointer, instruction) = machine.registers();
        if registers.len() < count {
            return None;
        }
        registers.truncate(count);
        Some(Thread {
            id,
            stack_pointer: registers[stack_pointer],
            instruction: registers[instruction],
            thread_pointer: (machine == Machine::X86_64).then(|| registers[SEGMENT_FS]),
            registers,
        })
    }
}

/// The memory of a process, its threads and its files.
///
/// The bytes stay in the file and are read on demand: if another process truncates a mapped file, the process that reads the
/// mapping is killed.
#[derive(Debug)]
pub struct Image {
    pub(crate) source: File,
    /// What [`Image::word`] read last.
    pub(crate) recent: Mutex<Recent>,
    /// Mappings in order of address, without overlaps.
    pub segments: Vec<Segment>,
    /// Paths of the mapped files.
    pub files: Vec<String>,
    /// Threads; the first one caused the core dump.
    pub threads: Vec<Thread>,
    /// The processor.
    pub machine: Machine,
    /// The command line, as far as the system recorded it.
    pub command: String,
    /// The process id.
    pub pid: Option<u32>,
    /// The signal that terminated it.
    pub signal: Option<u32>,
    /// Bytes missing from the file.
    pub missing: u64,
}

impl Image {
    /// The segment that contains an address.
    #[must_use]
    pub fn segment(&self, address: u64) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.start <= address);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        (address < segment.end).then_some(segment)
    }

    /// Reads memory at an address, and returns the number of bytes read.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buffer.len() {
            let at = address.saturating_add(done as u64);
            let Some(segment) = self.segment(at) else {
                break;
            };
            let there = segment.readable().end.saturating_sub(at);
            let wanted = (buffer.len() - done).min(usize::try_from(there).unwrap_or(usize::MAX));
            if wanted == 0 {
                break;
            }
            let offset = segment.offset + (at - segment.start);
            match self.source.read_at(&mut buffer[done..done + wanted], offset) {
                Ok(0) | Err(_) => break,
                Ok(count) => done += count,
            }
        }
        done
    }

    /// The word at an address.
    #[must_use]
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.word(self, address)
    }

    /// Maximal ranges of writable memory: the kernel splits mappings that differ only in their names.
    #[must_use]
    pub fn writable_runs(&self, wanted: impl Fn(&Segment) -> bool) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for segment in (self.segments.iter()).filter(|segment| segment.access.write) {
            let readable = segment.readable();
            if readable.is_empty() || !wanted(segment) {
                continue;
            }
            match runs.last_mut() {
                Some(last) if last.end == segment.start => last.end = readable.end,
                _ => runs.push(readable),
            }
        }
        runs
    }

    /// Words of memory, read in pieces of `size` bytes around each requested one.
    #[must_use]
    pub fn words(&self, size: usize) -> Words<'_> {
        Words { image: self, start: 0, bytes: Vec::new(), size }
    }

    /// Calls the closure with each aligned word of a range and its address.
    pub fn each_word(&self, range: Range<u64>, mut visit: impl FnMut(u64, u64)) {
        let mut buffer = vec![0; WINDOW];
        let mut address = range.start.next_multiple_of(WORD);
        while address < range.end {
            let wanted =
                usize::try_from(range.end - address).map_or(WINDOW, |left| left.min(WINDOW));
            let count = self.read(address, &mut buffer[..wanted]);
            for (word, at) in
                buffer[..count].chunks_exact(WORD as usize).zip((address..).step_by(WORD as usize))
            {
                visit(at, u64::from_le_bytes(word.try_into().unwrap_or_default()));
            }
            let whole = (count as u64) & !(WORD - 1);
            if whole == 0 {
                break;
            }
            address += whole;
        }
    }
}

/// Single words of an image, with their surroundings cached.
#[derive(Debug)]
pub struct Words<'i> {
    image: &'i Image,
    start: u64,
    bytes: Vec<u8>,
    size: usize,
}

impl Words<'_> {
    /// The word at an address, if the image has it.
    #[inline]
    pub fn at(&mut self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.start);
        if offset.checked_add(WORD).is_none_or(|end| end > self.bytes.len() as u64) {
            return self.at_new_place(address);
        }
        let offset = offset as usize;
        let word = self.bytes.get(offset..offset + WORD as usize)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    }

    #[cold]
    fn at_new_place(&mut self, address: u64) -> Option<u64> {
        if address % WORD != 0 {
            return self.image.word(address);
        }
        let piece = address & !(self.size as u64 - 1);
        self.start = piece.max(self.image.segment(address)?.start);
        self.bytes.resize(self.size, 0);
        let count = self.image.read(self.start, &mut self.bytes);
        self.bytes.truncate(count);
        let offset = usize::try_from(address.wrapping_sub(self.start)).ok()?;
        let word = self.bytes.get(offset..offset.checked_add(WORD as usize)?);
        match word {
            Some(word) => Some(u64::from_le_bytes(word.try_into().ok()?)),
            None => self.image.word(address),
        }
    }
}
