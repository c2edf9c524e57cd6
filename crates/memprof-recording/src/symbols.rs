//! Names of functions that a library does not export, and source lines: from the symbol and line tables in the library or in
//! its file of debugging information on this machine.

mod debug_file;
mod demangle;
mod elf_file;
mod inlined;
mod line_table;

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::stacks::{Frame, Native};
pub use demangle::demangled;
use elf_file::{Elf, ElfFile, Symbol};
pub use inlined::Inlined;
use line_table::Line;

/// Directory where distributions install debugging information.
const DEBUG_FILES: &str = "/usr/lib/debug";

/// A call precedes its return address.
const CALL: u64 = 1;

/// Adds source lines to native frames, and names to those without a function, where available. Files changed since the
/// recording are ignored, as their functions may have moved. C++ and Rust functions get their demangled names.
pub fn name(frames: &mut [Frame]) {
    name_by(frames, Path::new(DEBUG_FILES), None);
}

/// The same, and returns the functions inlined into those of the frames. That reads all debugging information of their files,
/// perhaps 100 MB: don't use it in the recorded process.
pub fn name_inlined(frames: &mut [Frame]) -> Inlined {
    let mut inlined = Inlined::default();
    name_by(frames, Path::new(DEBUG_FILES), Some(&mut inlined));
    inlined
}

fn name_by(frames: &mut [Frame], debug_files: &Path, mut inlined: Option<&mut Inlined>) {
    let mut modules: FxHashMap<String, Vec<(usize, &mut Native)>> = FxHashMap::default();
    for (place, frame) in frames.iter_mut().enumerate() {
        let Frame::Native(native) = frame else {
            continue;
        };
        if native.module.starts_with('/') {
            let module = native.module.clone();
            modules.entry(module).or_default().push((place, native));
        }
    }
    for (path, frames) in modules {
        // A damaged file has no names.
        let _ = name_in(Path::new(&path), frames, debug_files, inlined.as_deref_mut());
    }
    for frame in frames {
        if let Frame::Native(native) = frame {
            native.function = demangled(std::mem::take(&mut native.function));
        }
    }
}

/// Names the frames of one file, each with its index among all frames.
fn name_in(
    path: &Path,
    frames: Vec<(usize, &mut Native)>,
    debug_files: &Path,
    inlined: Option<&mut Inlined>,
) -> Option<()> {
    let file = ElfFile::open(path)?;
    let elf = file.parse()?;
    // Offsets are relative to the load address, symbols to the file's own base address.
    let base = elf.base()?;
    let (known, mut unknown): (Vec<_>, Vec<_>) =
        (frames.into_iter()).partition(|(_, native)| !native.function.is_empty());
    let mut exported: FxHashMap<u64, &str> = FxHashMap::default();
    for (_, native) in &known {
        let start = native.offset.checked_sub(native.distance)?;
        exported.insert(base.checked_add(start)?, &native.function);
    }
    if !elf.exports(&exported) {
        return None;
    }
    unknown.sort_unstable_by_key(|(_, native)| native.offset);
    let mut wanted = Wanted { base, frames: unknown };
    // An installed library rarely has a symbol table.
    elf.each_function(|symbol| wanted.add(&symbol));
    let has_lines = elf.has_lines();
    let debug = if wanted.is_done() && has_lines {
        None
    } else {
        debug_file::find(path, &elf, debug_files)
    };
    let debug = debug.as_ref().and_then(ElfFile::parse);
    if let Some(debug) = &debug {
        debug.each_function(|symbol| wanted.add(&symbol));
    }
    let with_lines = if has_lines { Some(&elf) } else { debug.as_ref() };
    let mut frames: Vec<_> = known.into_iter().chain(wanted.frames).collect();
    add_lines(with_lines?, base, &mut frames);
    if let Some(inlined) = inlined {
        // Results from before the damage are valid.
        let _ = inlined.find(with_lines?, base, &mut frames);
    }
    Some(())
}

/// The return address of a call, in the file's address space.
fn address(base: u64, native: &Native) -> u64 {
    base.saturating_add(native.offset).max(1)
}

fn add_lines(elf: &Elf<'_>, base: u64, frames: &mut [(usize, &mut Native)]) {
    frames.sort_unstable_by_key(|(_, native)| native.offset);
    let mut lines: Vec<Line> = frames
        .iter()
        .map(|(_, native)| Line { address: address(base, native), found: None })
        .collect();
    // Results from before the damage are valid.
    let _ = line_table::find(elf, &mut lines);
    for ((_, native), line) in frames.iter_mut().zip(lines) {
        if let Some((file, line)) = line.found {
            (native.file, native.line) = (file, line);
        }
    }
}

/// Frames of a module, sorted by offset.
struct Wanted<'f> {
    base: u64,
    frames: Vec<(usize, &'f mut Native)>,
}

impl Wanted<'_> {
    /// Names the frames in a function.
    fn add(&mut self, symbol: &Symbol<'_>) {
        let Some(start) = symbol.start.checked_sub(self.base) else {
            return;
        };
        // The return address may be past the end of the function if the call is its last instruction.
        let first = (self.frames).partition_point(|(_, native)| native.offset <= start);
        let inside = self.frames[first..].iter_mut();
        for (_, native) in inside.take_while(|(_, native)| native.offset - start <= symbol.size) {
            // A function may have several names: prefer the first one with external visibility, or else the first.
            if native.function.is_empty() {
                native.function = symbol.name();
                native.distance = native.offset - start;
            }
        }
    }

    fn is_done(&self) -> bool {
        (self.frames.iter()).all(|(_, native)| !native.function.is_empty())
    }
}

#[cfg(test)]
mod tests;
