//! The memory of a process by address.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::segment::Segment;

/// Bytes of a word. Only 64-bit processes are read.
pub(crate) const WORD: u64 = 8;

/// Bytes that are read at once when memory is read from one end to the other.
pub(crate) const WINDOW: usize = 1 << 20;

/// Bytes that are read at once when single words are looked at.
pub(crate) const GLIMPSE: usize = 1 << 12;

/// A processor whose registers can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// AMD's and Intel's.
    X86_64,
    /// Arm's.
    Aarch64,
}

/// A thread, as it was stopped.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its number in the system.
    pub id: u32,
    /// General registers, in the order of the kernel.
    pub registers: Vec<u64>,
    /// Where its stack ends downwards.
    pub stack_pointer: u64,
    /// What it executed.
    pub instruction: u64,
    /// Where its own variables are, if that is known.
    pub thread_pointer: Option<u64>,
}

impl Machine {
    /// The one that this program runs on.
    #[must_use]
    pub fn own() -> Machine {
        if cfg!(target_arch = "aarch64") {
            Machine::Aarch64
        } else {
            Machine::X86_64
        }
    }

    /// How many general registers there are, and which of them are the stack pointer and the instruction pointer.
    fn registers(self) -> (usize, usize, usize) {
        match self {
            Machine::X86_64 => (27, 19, 16),
            Machine::Aarch64 => (34, 31, 32),
        }
    }
}

impl Thread {
    /// A thread by its registers, as the kernel orders them for this processor; None if there are too few.
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
/// The bytes stay in the file and are read when they are asked for: a mapped file that another process truncates would kill
/// the one that reads it.
#[derive(Debug)]
pub struct Image {
    pub(crate) source: File,
    /// Mappings, by address. They do not overlap.
    pub segments: Vec<Segment>,
    /// Paths of the files that were mapped.
    pub files: Vec<String>,
    /// Threads; the first one is the one that caused a core.
    pub threads: Vec<Thread>,
    /// The processor.
    pub machine: Machine,
    /// The command line, as far as the system recorded it.
    pub command: String,
    /// The process.
    pub pid: Option<u32>,
    /// The signal that ended it.
    pub signal: Option<u32>,
    /// Bytes that the file should have and has not.
    pub missing: u64,
}

impl Image {
    /// The segment that contains an address.
    #[must_use]
    pub fn segment(&self, address: u64) -> Option<&Segment> {
        let after = self
            .segments
            .partition_point(|segment| segment.start <= address);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        (address < segment.end).then_some(segment)
    }

    /// Reads memory from an address on, and returns how many bytes were there.
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
            match self
                .source
                .read_at(&mut buffer[done..done + wanted], offset)
            {
                Ok(0) | Err(_) => break,
                Ok(count) => done += count,
            }
        }
        done
    }

    /// The word at an address.
    #[must_use]
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; WORD as usize];
        (self.read(address, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
    }

    /// Writable memory in ranges as large as they go: the kernel splits mappings where only their names differ.
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

    /// Words of memory, read in pieces of `size` bytes around those that were asked for.
    #[must_use]
    pub fn words(&self, size: usize) -> Words<'_> {
        Words {
            image: self,
            start: 0,
            bytes: Vec::new(),
            size,
        }
    }

    /// Calls the block with each aligned word of a range and its address.
    pub fn each_word(&self, range: Range<u64>, mut visit: impl FnMut(u64, u64)) {
        let mut buffer = vec![0; WINDOW];
        let mut address = range.start.next_multiple_of(WORD);
        while address < range.end {
            let wanted =
                usize::try_from(range.end - address).map_or(WINDOW, |left| left.min(WINDOW));
            let count = self.read(address, &mut buffer[..wanted]);
            for (word, at) in buffer[..count]
                .chunks_exact(WORD as usize)
                .zip((address..).step_by(WORD as usize))
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

/// Single words of an image, of which the surroundings are kept.
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
        if offset
            .checked_add(WORD)
            .is_none_or(|end| end > self.bytes.len() as u64)
        {
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
