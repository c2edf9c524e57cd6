//! Inlined functions, from debugging information (DWARF).

use std::borrow::Cow;

use addr2line::Context;
use gimli::{DwarfSections, EndianSlice, LittleEndian, SectionId};
use rustc_hash::FxHashMap;

use super::demangle::demangled;
use super::elf_file::Elf;
use super::{CALL, address};
use crate::stacks::Native;

/// Compilers don't nest them deeper; a damaged file may.
const MOST_NESTED: usize = 64;

/// Functions inlined into those of frames, by index of the frame, outermost first.
#[derive(Default)]
pub struct Inlined(pub FxHashMap<usize, Vec<Native>>);

impl Inlined {
    /// Finds the inlined functions of one file's frames. Frames that have some get the line within their own function. None if
    /// the file has no such information, or is partly damaged.
    pub fn find(
        &mut self,
        elf: &Elf<'_>,
        base: u64,
        frames: &mut [(usize, &mut Native)],
    ) -> Option<()> {
        let sections = DwarfSections::load(|id| Ok::<_, gimli::Error>(section(elf, id))).ok()?;
        let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        let context = Context::from_dwarf(dwarf).ok()?;
        for (place, native) in frames {
            let found = context.find_frames(address(base, native) - CALL);
            let mut found = found.skip_all_loads().ok()?;
            let mut nested = Vec::new();
            while let Some(frame) = found.next().ok()? {
                let location = frame.location.as_ref();
                let line = location.and_then(|location| Some((location.file?, location.line?)));
                let (file, line) = line.unwrap_or_default();
                nested.push(Native {
                    function: frame.function.as_ref().map_or_else(String::new, name),
                    file: file.to_owned(),
                    line: line.into(),
                    inlined: true,
                    ..(**native).clone()
                });
                if nested.len() > MOST_NESTED {
                    return None;
                }
            }
            // The last one is the function itself.
            let Some(own) = nested.pop().filter(|_| !nested.is_empty()) else {
                continue;
            };
            (native.file, native.line) = (own.file, own.line);
            nested.reverse();
            nested.retain(|function| !function.function.is_empty());
            self.0.insert(*place, nested);
        }
        Some(())
    }
}

fn name(function: &addr2line::FunctionName<EndianSlice<'_, LittleEndian>>) -> String {
    let name = function.raw_name().unwrap_or_default();
    demangled(name.into_owned())
}

/// A section, or nothing if it isn't needed here.
fn section<'d>(elf: &Elf<'d>, id: SectionId) -> Cow<'d, [u8]> {
    let wanted = match id {
        SectionId::DebugLoc
        | SectionId::DebugLocLists
        | SectionId::DebugMacinfo
        | SectionId::DebugMacro
        | SectionId::DebugTypes => None,
        _ => elf.section(id.name().as_bytes()),
    };
    wanted.unwrap_or_default()
}
