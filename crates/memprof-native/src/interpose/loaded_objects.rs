//! The loaded objects, and how to keep one loaded.

use std::ffi::{CStr, CString, c_int, c_void};
use std::path::Path;
use std::ptr;

/// An object as listed by the loader. It may be unloaded by now, or not ready yet: see [`Loaded::pin`].
#[derive(Clone)]
pub(super) struct Loaded {
    pub name: CString,
    pub base: usize,
    segments: Vec<Segment>,
    dynamic: Option<usize>,
}

#[derive(Clone, Copy)]
struct Segment {
    start: usize,
    end: usize,
    flags: u32,
}

/// Number of objects ever loaded and unloaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Generation {
    pub loaded: u64,
    pub unloaded: u64,
}

impl Loaded {
    /// All objects of the program, in the loader's order.
    pub fn all() -> Vec<Loaded> {
        let mut all: Vec<Loaded> = Vec::new();
        // SAFETY: `list` is a valid callback, and gets the vector that it expects.
        unsafe { libc::dl_iterate_phdr(Some(list), ptr::from_mut(&mut all).cast()) };
        all
    }

    pub fn contains(&self, address: usize) -> bool {
        self.segments.iter().any(|segment| segment.start <= address && address < segment.end)
    }

    pub fn has_readable(&self, first: usize, last: usize) -> bool {
        let readable = |segment: &&Segment| segment.flags & libc::PF_R != 0;
        self.segments
            .iter()
            .filter(readable)
            .any(|segment| segment.start <= first && last < segment.end)
    }

    /// Whether the loader itself could write a word here.
    pub fn has_writable(&self, address: usize) -> bool {
        let inside = |segment: &Segment| {
            segment.start <= address && address + size_of::<usize>() <= segment.end
        };
        self.segments.iter().any(|segment| segment.flags & libc::PF_W != 0 && inside(segment))
    }

    pub fn dynamic(&self) -> Option<usize> {
        self.dynamic
    }

    /// Whether this is the program itself, which the loader lists without a name.
    pub fn is_program(&self) -> bool {
        self.name.is_empty()
    }

    /// The object's name in messages.
    pub fn label(&self) -> String {
        if self.is_program() {
            "the program".into()
        } else {
            self.name.to_string_lossy().into_owned()
        }
    }

    /// Whether this is the loader, whose tables are left alone, or the kernel's object, which has none.
    pub fn is_loader_or_kernel(&self) -> bool {
        // SAFETY: reads values that the kernel passed at program start.
        let (loader, vdso) =
            unsafe { (libc::getauxval(libc::AT_BASE), libc::getauxval(libc::AT_SYSINFO_EHDR)) };
        let name = Path::new(self.name.to_str().unwrap_or_default())
            .file_name()
            .and_then(|name| name.to_str());
        let is_named_so =
            name.is_some_and(|name| name.starts_with("ld-") || name.starts_with("ld64"));
        is_named_so
            || (loader != 0 && self.base == loader as usize)
            || (vdso != 0 && self.contains(vdso as usize))
            || name.is_some_and(|name| name.starts_with("linux-vdso"))
    }

    /// Keeps the object loaded as long as the pin lives. Waits until the loader is done with the object, so a pinned one is
    /// relocated and its pages are protected. None if it was unloaded.
    pub fn pin(&self) -> Option<Pin> {
        let name = if self.is_program() { ptr::null() } else { self.name.as_ptr() };
        // SAFETY: a name, or null for the program; with NOLOAD nothing is loaded, and no code of the object runs.
        let handle = unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return None;
        }
        let pin = Pin(handle);
        // An object with that name may have been loaded again, elsewhere.
        (pin.base() == Some(self.base)).then_some(pin)
    }
}

/// Keeps an object loaded.
pub(super) struct Pin(*mut c_void);

// SAFETY: a loader handle is not bound to a thread.
unsafe impl Send for Pin {}

/// The public part of the loader's record of an object.
#[repr(C)]
struct LinkMap {
    base: usize,
}

/// The same in glibc and musl.
const RTLD_DI_LINKMAP: c_int = 2;

unsafe extern "C" {
    fn dlinfo(handle: *mut c_void, request: c_int, info: *mut c_void) -> c_int;
}

impl Pin {
    fn base(&self) -> Option<usize> {
        let mut map: *const LinkMap = ptr::null();
        // SAFETY: the handle is open, and the request writes a pointer.
        let failed = unsafe { dlinfo(self.0, RTLD_DI_LINKMAP, ptr::from_mut(&mut map).cast()) };
        // SAFETY: the record of an open object; its first field is the base.
        (failed == 0).then(|| unsafe { map.as_ref() }.map(|map| map.base))?
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // SAFETY: the handle was opened by `pin`, and is closed once.
        unsafe { libc::dlclose(self.0) };
    }
}

/// Address of a symbol visible to the whole program, as found by the loader.
pub(super) fn find_global(name: &CStr) -> Option<usize> {
    // SAFETY: a name, and the pseudo handle for global symbols.
    Some(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize)
        .filter(|&address| address != 0)
}

/// Address of a symbol in this object, or in one that it depends on.
pub(super) fn find_from(pin: &Pin, name: &CStr) -> Option<usize> {
    // SAFETY: a name, and a handle that is open.
    Some(unsafe { libc::dlsym(pin.0, name.as_ptr()) } as usize).filter(|&address| address != 0)
}

/// Clears loader errors that we caused, so that the program does not take them for its own.
pub(super) fn forget_errors() {
    // SAFETY: takes nothing; the result is not used.
    unsafe { libc::dlerror() };
}

/// Keeps the object that contains this code loaded for good: a thread may be inside a replacement when a trace ends.
pub(super) fn stay_loaded(own: &Loaded) {
    if !own.is_program() {
        // SAFETY: the name of a loaded object. The handle is left open on purpose.
        unsafe {
            libc::dlopen(
                own.name.as_ptr(),
                libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE,
            )
        };
    }
}

/// Number of objects that the loader has loaded and unloaded so far.
pub(super) fn generation() -> Generation {
    let mut generation = Generation::default();
    // SAFETY: `count` is a valid callback, and gets the value that it expects.
    unsafe { libc::dl_iterate_phdr(Some(count), ptr::from_mut(&mut generation).cast()) };
    generation
}

unsafe extern "C" fn count(
    info: *mut libc::dl_phdr_info,
    _: usize,
    generation: *mut c_void,
) -> c_int {
    // SAFETY: the loader gives a valid `info`, and `generation` hands over its own variable.
    let (info, generation) = unsafe { (&*info, &mut *generation.cast::<Generation>()) };
    *generation = Generation { loaded: info.dlpi_adds, unloaded: info.dlpi_subs };
    1
}

unsafe extern "C" fn list(info: *mut libc::dl_phdr_info, _: usize, all: *mut c_void) -> c_int {
    // SAFETY: the loader gives a valid `info`, and `all` hands over its own vector.
    let (info, all) = unsafe { (&*info, &mut *all.cast::<Vec<Loaded>>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader holds its lock during this call, so the name and the headers exist.
    let (name, headers) = unsafe {
        let name = if info.dlpi_name.is_null() { c"" } else { CStr::from_ptr(info.dlpi_name) };
        (name, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let base = info.dlpi_addr as usize;
    let place = |header: &libc::Elf64_Phdr| base.wrapping_add(header.p_vaddr as usize);
    let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let segments = loads
        .map(|header| Segment {
            start: place(header),
            end: place(header) + header.p_memsz as usize,
            flags: header.p_flags,
        })
        .collect();
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC).map(place);
    all.push(Loaded { name: name.to_owned(), base, segments, dynamic });
    0
}
