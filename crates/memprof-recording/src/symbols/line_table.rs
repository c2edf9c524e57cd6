//! Source lines from DWARF line tables (`.debug_line`), which need no other debugging information.

use std::path::Path;

use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, DebugLineStr, EndianSlice, LineProgramHeader,
    LittleEndian,
};

use super::CALL;
use super::elf_file::Elf;

const ADDRESS_SIZE: u8 = 8;

type Reader<'d> = EndianSlice<'d, LittleEndian>;

/// A return address, in the file's address space, and the source line of the call once found.
pub struct Line {
    pub address: u64,
    pub found: Option<(String, u64)>,
}

/// Finds lines. `lines` is sorted by address. None if the file has no line table, or is partly damaged.
pub fn find(elf: &Elf<'_>, lines: &mut [Line]) -> Option<()> {
    let table = elf.section(b".debug_line")?;
    let names = elf.section(b".debug_line_str").unwrap_or_default();
    let names = DebugLineStr::new(&names, LittleEndian);
    let debug_line = DebugLine::new(&table, LittleEndian);
    let mut offset = 0;
    while offset < table.len() {
        let program = debug_line.program(DebugLineOffset(offset), ADDRESS_SIZE, None, None).ok()?;
        let header = program.header();
        offset = offset
            .checked_add(usize::from(header.format().initial_length_size()))?
            .checked_add(header.unit_length())?;
        let mut rows = program.rows();
        // Each row covers the addresses up to the next one.
        let mut before: Option<(u64, u64, u64)> = None;
        while let Some((header, row)) = rows.next_row().ok()? {
            if let Some((start, file, line)) = before {
                let is_before = |end: u64| move |one: &Line| one.address - CALL < end;
                let first = lines.partition_point(is_before(start));
                let end = lines.partition_point(is_before(row.address()));
                for one in lines.get_mut(first..end).unwrap_or_default() {
                    if one.found.is_none() {
                        one.found = path(header, &names, file).map(|path| (path, line));
                    }
                }
            }
            // Linkers leave lines of dropped functions at address zero.
            let is_known = !row.end_sequence() && row.address() > 0;
            before = row
                .line()
                .filter(|_| is_known)
                .map(|line| (row.address(), row.file_index(), line.get()));
        }
    }
    Some(())
}

/// A file with its directory, as far as the table has it.
fn path(
    header: &LineProgramHeader<Reader<'_>>,
    names: &DebugLineStr<Reader<'_>>,
    file: u64,
) -> Option<String> {
    let text = |value: AttributeValue<Reader<'_>>| {
        let text = match value {
            AttributeValue::String(text) => text,
            AttributeValue::DebugLineStrRef(offset) => names.get_str(offset).ok()?,
            _ => return None,
        };
        Some(String::from_utf8_lossy(text.slice()).into_owned())
    };
    let file = header.file(file)?;
    let name = text(file.path_name())?;
    let directory = file.directory(header).and_then(text);
    let path = directory
        .map_or_else(|| name.clone().into(), |directory| Path::new(&directory).join(&name));
    Some(path.to_string_lossy().into_owned())
}
