//! The tables of all loaded objects, word by word, and the protection of their pages: read independently of the engine.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};

/// Each word that the loader has set to the address of a symbol, by object and address.
pub fn words() -> BTreeMap<(String, usize), usize> {
    let mut words = BTreeMap::new();
    // SAFETY: `collect` is a valid callback, and gets the map that it expects.
    unsafe { libc::dl_iterate_phdr(Some(collect), std::ptr::from_mut(&mut words).cast()) };
    words
}

/// The differences as text; empty if there are none.
pub fn changes(
    before: &BTreeMap<(String, usize), usize>,
    after: &BTreeMap<(String, usize), usize>,
) -> Vec<String> {
    let places: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    places
        .into_iter()
        .filter(|place| before.get(place) != after.get(place))
        .map(|place| {
            format!(
                "{} {:x}: {:x?} is {:x?}",
                place.0,
                place.1,
                before.get(place),
                after.get(place)
            )
        })
        .collect()
}

/// Which pages of mapped files may be read, written, executed.
pub fn protections() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter(|line| line.contains(".so"))
        .map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            format!("{} {} {}", fields[0], fields[1], fields[5])
        })
        .collect()
}

unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _: usize, words: *mut c_void) -> c_int {
    // SAFETY: the loader gives a valid `info`, and `words` hands over its map.
    let (info, words) = unsafe { (&*info, &mut *words.cast::<BTreeMap<(String, usize), usize>>()) };
    // SAFETY: the name and the headers of a loaded object.
    let (name, headers) = unsafe {
        (
            CStr::from_ptr(info.dlpi_name).to_string_lossy().into_owned(),
            std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)),
        )
    };
    if name.contains("vdso") {
        return 0;
    }
    let base = info.dlpi_addr as usize;
    let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else {
        return 0;
    };
    let mut place = (base + dynamic.p_vaddr as usize) as *const [u64; 2];
    let mut tags = BTreeMap::new();
    loop {
        // SAFETY: the dynamic section ends with an entry of tag 0.
        let [tag, value] = unsafe { *place };
        if tag == 0 {
            break;
        }
        tags.insert(tag, value as usize);
        // SAFETY: this was not the last entry.
        place = unsafe { place.add(1) };
    }
    for (table, size) in [(7, 8), (23, 2)] {
        let (Some(&table), Some(&size)) = (tags.get(&table), tags.get(&size)) else {
            continue;
        };
        for index in 0..size / 24 {
            // SAFETY: inside the table of relocations; glibc has added the base to its address.
            let [offset, info, _] = unsafe { *((table + index * 24) as *const [u64; 3]) };
            if info >> 32 != 0 {
                let address = base + offset as usize;
                // SAFETY: a word that the loader has written.
                words.insert((name.clone(), address), unsafe { *(address as *const usize) });
            }
        }
    }
    0
}
