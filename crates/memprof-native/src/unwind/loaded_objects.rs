//! The objects of the process with their unwinding tables.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32,
    Ordering::{Acquire, Release, SeqCst},
};
use std::{process, sync::Arc, thread};

use framehop::{
    ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, Unwinder, UnwinderNative,
};

use super::eh_frame_hdr::EhFrameHdr;

/// Bytes that an unwinder reads, shared by all unwinders that know the object.
type Bytes = Arc<[u8]>;

/// A snapshot of the objects, never dropped: a thread may be walking its stack.
pub(super) struct Objects {
    pub unwinder: UnwinderNative<Bytes, MustNotAllocateDuringUnwind>,
    /// Code of each object, by address.
    known: Vec<Object>,
    /// Number of objects ever loaded and unloaded.
    generation: (u64, u64),
}

#[derive(Clone)]
struct Object {
    code: Range<usize>,
    base: usize,
    hdr: Arc<EhFrameHdr>,
    module: Module<Bytes>,
}

static CURRENT: AtomicPtr<Objects> = AtomicPtr::new(ptr::null_mut());
static IS_ON: AtomicBool = AtomicBool::new(false);
/// The process whose thread is reading tables; 0: none.
static READER: AtomicU32 = AtomicU32::new(0);
/// Whether objects were loaded that this thread may have missed.
static PENDING: AtomicBool = AtomicBool::new(false);

/// The objects; None until prepared.
#[inline(always)]
pub(super) fn current() -> Option<&'static Objects> {
    // SAFETY: null, or a value that `update` made and never drops.
    unsafe { CURRENT.load(Acquire).as_ref() }
}

/// Reads the tables of all objects, and from now on those of objects loaded later. Waits for a thread that is already
/// reading, and must not be called in a hook.
pub fn prepare() {
    IS_ON.store(true, SeqCst);
    while !read_tables() {
        thread::yield_now();
    }
}

/// Reads the tables of objects loaded meanwhile, if stacks are recorded. Must not be called in a hook.
///
/// Never waits: a thread that is already reading looks again.
pub(crate) fn refresh() {
    if IS_ON.load(SeqCst) {
        read_tables();
    }
}

/// Returns false if another thread is already reading, which then looks again.
fn read_tables() -> bool {
    PENDING.store(true, SeqCst);
    while PENDING.load(SeqCst) {
        let Some(_reading) = Reading::begin() else {
            return false;
        };
        PENDING.store(false, SeqCst);
        update();
    }
    true
}

/// Held by the thread that reads tables.
struct Reading;

impl Reading {
    /// None while another thread reads. A reader from before a fork no longer exists.
    fn begin() -> Option<Reading> {
        let own = process::id();
        let take = |reader| (reader != own).then_some(own);
        READER.fetch_update(SeqCst, SeqCst, take).ok().map(|_| Reading)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        READER.store(0, SeqCst);
    }
}

/// Must be called by one thread at a time.
fn update() {
    let before = current();
    let mut found = Found {
        before: before.map_or(&[], |objects| &objects.known),
        generation: None,
        unchanged: before.map(|objects| objects.generation),
        objects: Vec::new(),
    };
    // SAFETY: `look` is a valid callback, and gets the type of value that it expects.
    unsafe { libc::dl_iterate_phdr(Some(look), ptr::from_mut(&mut found).cast()) };
    let Some(generation) = found.generation else {
        return;
    };
    let mut known = found.objects;
    known.sort_by_key(|object| object.code.start);
    let mut unwinder = UnwinderNative::new();
    for object in &known {
        unwinder.add_module(object.module.clone());
    }
    let objects = Box::new(Objects { unwinder, known, generation });
    CURRENT.store(Box::into_raw(objects), Release);
}

struct Found<'a> {
    before: &'a [Object],
    /// None: nothing has changed.
    generation: Option<(u64, u64)>,
    unchanged: Option<(u64, u64)>,
    objects: Vec<Object>,
}

unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader's description, which it keeps locked meanwhile, and the value passed by `update`.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Found<'_>>()) };
    let generation = (info.dlpi_adds, info.dlpi_subs);
    if found.unchanged == Some(generation) {
        return 1;
    }
    found.generation = Some(generation);
    let base = info.dlpi_addr as usize;
    let same = |object: &&Object| object.base == base;
    // Another object may have been loaded at the same address: after an unload, read again.
    let is_same = found.unchanged.is_some_and(|(_, unloaded)| unloaded == generation.1);
    let known = found.before.iter().find(same).filter(|_| is_same);
    // SAFETY: the object is loaded, and stays loaded during this callback.
    let object = known.cloned().or_else(|| unsafe { read(info, base) });
    found.objects.extend(object);
    0
}

/// An object with a copy of its tables; None if it has none.
///
/// # Safety
///
/// The object must stay loaded during the call.
unsafe fn read(info: &libc::dl_phdr_info, base: usize) -> Option<Object> {
    if info.dlpi_phdr.is_null() {
        return None;
    }
    // SAFETY: the object's program headers.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let range = |header: &libc::Elf64_Phdr| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        start..start + header.p_memsz as usize
    };
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loads().map(|header| range(header).start).min()?;
    let end = loads().map(|header| range(header).end).max()?;
    let hdr = range(headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?);
    // SAFETY: a part of the object that is mapped for reading (the headers say so), as the object is loaded.
    let bytes = |range: &Range<usize>| unsafe {
        std::slice::from_raw_parts(range.start as *const u8, range.len())
    };
    let is_readable = |part: &Range<usize>| {
        loads().any(|header| {
            let load = range(header);
            header.p_flags & libc::PF_R != 0 && load.start <= part.start && part.end <= load.end
        })
    };
    if !is_readable(&hdr) {
        return None;
    }
    let hdr = EhFrameHdr::new(hdr.start, bytes(&hdr))?;
    let frames = hdr.eh_frame();
    let readable = loads()
        .find(|header| header.p_flags & libc::PF_R != 0 && range(header).contains(&frames))?;
    // No header gives its length: it ends at a zero, at most at the end of the segment.
    let frames = frames..range(readable).end;
    let frames = frames.start..frames.start + length_of(bytes(&frames));
    let of = |range: &Range<usize>| range.start as u64..range.end as u64;
    let svma = |range: &Range<usize>| (range.start - base) as u64..(range.end - base) as u64;
    let hdr_range = hdr.address()..hdr.address() + hdr.bytes().len();
    let module = Module::new(
        name(info),
        of(&(start..end)),
        base as u64,
        ExplicitModuleSectionInfo {
            base_svma: 0,
            eh_frame_svma: Some(svma(&frames)),
            eh_frame: Some(Bytes::from(bytes(&frames))),
            eh_frame_hdr_svma: Some(svma(&hdr_range)),
            eh_frame_hdr: Some(Bytes::from(hdr.bytes())),
            ..ExplicitModuleSectionInfo::default()
        },
    );
    Some(Object { code: start..end, base, hdr: Arc::new(hdr), module })
}

/// The length of `.eh_frame`: records with a length prefix, up to one whose length is zero.
fn length_of(data: &[u8]) -> usize {
    let mut at = 0;
    while let Some(length) = data.get(at..at + 4) {
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        if length == 0 || length >= 0xffff_fff0 || at + 4 + length > data.len() {
            break;
        }
        at += 4 + length;
    }
    at
}

fn name(info: &libc::dl_phdr_info) -> String {
    if info.dlpi_name.is_null() {
        return String::new();
    }
    // SAFETY: a name of a loaded object, NUL-terminated.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) };
    name.to_string_lossy().into_owned()
}

impl Objects {
    fn object(&self, address: usize) -> Option<&Object> {
        let at = self.known.partition_point(|object| object.code.start <= address);
        let object = &self.known[at.checked_sub(1)?];
        object.code.contains(&address).then_some(object)
    }

    /// The code of the object at an address. None if its tables are unknown: it may be JIT code.
    pub(super) fn code_of(&self, address: usize) -> Option<Range<usize>> {
        Some(self.object(address)?.code.clone())
    }

    /// The function at an address.
    pub(super) fn function(&self, address: usize) -> Option<Range<usize>> {
        let object = self.object(address)?;
        let function = object.hdr.function(address)?;
        Some(function.start..function.end.min(object.code.end))
    }
}
