//! Finds the names of an iseq's local variables. The body of an iseq differs between versions and is not in any header, so the
//! offset is determined once, from procs with known variables.

use rb_sys::{ID, VALUE};

use super::copy_memory::copy_words;

/// Offsets in the body of an iseq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTable {
    /// Address of the array of names.
    table: usize,
    /// Its length.
    size: usize,
    /// The path: a String, or an Array of path and real path.
    path: usize,
}

/// A proc's iseq, the names of its local variables, and the path it was compiled with.
pub struct Probe {
    pub iseq: VALUE,
    pub names: Vec<ID>,
    pub path: VALUE,
}

/// Bytes of the body to search. It is larger in all versions.
const BODY: usize = 320;
/// More local variables than any method has.
const MOST: u32 = 1 << 16;
/// Word of an iseq with its body.
const ISEQ_BODY: usize = 2;

impl LocalTable {
    /// Finds the offsets, if all probes agree on them.
    pub fn find(probes: &[Probe]) -> Option<LocalTable> {
        let mut candidates: Option<Vec<LocalTable>> = None;
        for probe in probes {
            let found = candidates_of(probe);
            candidates = Some(match candidates {
                None => found,
                Some(before) => before.into_iter().filter(|one| found.contains(one)).collect(),
            });
        }
        let candidates = candidates?;
        // If the number of parameters happens to be the same, it is further away from the table.
        candidates.into_iter().min_by_key(|one| one.size.abs_diff(one.table))
    }

    /// Names of the local variables of an iseq.
    ///
    /// # Safety
    /// `iseq` is an iseq that nothing frees while the result is used.
    pub unsafe fn names<'a>(&self, iseq: VALUE) -> &'a [ID] {
        // SAFETY: the places were found to hold the table and its length in iseqs of this VM.
        unsafe {
            let body = *(iseq as *const *const u8).add(ISEQ_BODY);
            if body.is_null() {
                return &[];
            }
            let table = body.add(self.table).cast::<*const ID>().read();
            let size = body.add(self.size).cast::<u32>().read();
            if table.is_null() || size > MOST {
                return &[];
            }
            std::slice::from_raw_parts(table, size as usize)
        }
    }

    /// True if the iseq has a path: during compilation it may not have one yet.
    ///
    /// # Safety
    /// As [`LocalTable::names`].
    pub unsafe fn has_path(&self, iseq: VALUE) -> bool {
        // SAFETY: as in `names`.
        unsafe {
            let body = *(iseq as *const *const u8).add(ISEQ_BODY);
            !body.is_null()
                && super::ruby_value::is_address(body.add(self.path).cast::<VALUE>().read())
        }
    }
}

fn candidates_of(probe: &Probe) -> Vec<LocalTable> {
    let Some(iseq) = copy_words(probe.iseq as usize, 3) else {
        return Vec::new();
    };
    let Some(body) = copy_words(iseq[ISEQ_BODY] as usize, BODY / 8) else {
        return Vec::new();
    };
    let expected: Vec<u64> = probe.names.clone();
    let tables = (0..body.len()).filter(|index| {
        body[*index] & 7 == 0
            && body[*index] != 0
            && copy_words(body[*index] as usize, expected.len()).as_ref() == Some(&expected)
    });
    let halves: Vec<u32> =
        body.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).collect();
    let sizes = || (0..halves.len()).filter(|index| halves[*index] == expected.len() as u32);
    let paths = || (0..body.len()).filter(|index| is_path(body[*index], probe.path));
    let mut candidates = Vec::new();
    for table in tables {
        for size in sizes() {
            for path in paths() {
                candidates.push(LocalTable { table: table * 8, size: size * 4, path: path * 8 });
            }
        }
    }
    candidates
}

/// True for the path's String, or the array of it and the real path (whose first embedded element it is).
fn is_path(word: u64, path: VALUE) -> bool {
    word == path
        || (super::ruby_value::is_address(word as VALUE)
            && copy_words(word as usize, 3)
                .is_some_and(|words| words[0] & 0x1f == 0x07 && words[2] == path))
}
