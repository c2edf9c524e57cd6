//! The counts of a trace match the calls that the test makes.

mod support;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::time::Instant;

use memprof_native::{Node, Scope, Trace};
use support::{Free, Malloc, Read, Rounds, Workshop, alone, count, node, seconds};

const BUILDS: [(&str, &[&str]); 4] = [
    ("relro", &["-Wl,-z,now,-z,relro"]),
    ("lazy", &["-Wl,-z,lazy"]),
    ("noplt", &["-fno-plt", "-Wl,-z,now"]),
    ("sysv", &["-Wl,--hash-style=sysv", "-Wl,-z,lazy"]),
];

#[test]
fn reads_and_writes_in_each_way_to_link() {
    alone(|| {
        let shop = Workshop::new();
        for (name, flags) in BUILDS {
            let work = shop.work(name, flags);
            let rounds: Rounds = work.get("pipe_rounds");
            let trace = Trace::begin(&["fd"], Scope::Thread).unwrap();
            // SAFETY: a function of the library, with that type.
            assert_eq!(unsafe { rounds(1000) }, 1000);
            let report = trace.finish();
            for family in ["read", "write"] {
                assert_eq!(count(&report, &format!("fd.{family}.calls")), 1000, "{name}");
                assert_eq!(count(&report, &format!("fd.{family}.requested")), 1000, "{name}");
                assert_eq!(count(&report, &format!("fd.{family}.actual")), 1000, "{name}");
                assert!(seconds(&report, &format!("fd.{family}.time")) > 0.0);
            }
            assert_eq!(count(&report, "fd.close.calls"), 2);
            assert_eq!(node(&report, "fd.recv"), None);
            // SAFETY: as above.
            assert_eq!(unsafe { rounds(10) }, 10);
            let report = Trace::begin(&["fd"], Scope::Process).unwrap().finish();
            assert_eq!(report, [("fd", Node::Map(Vec::new()))]);
        }
    });
}

/// A library as linked with `-z mark-plt`, which not all linkers know.
#[cfg(target_arch = "x86_64")]
#[test]
fn tables_that_name_entries_of_the_plt() {
    alone(|| {
        let shop = Workshop::new();
        let library = shop.build("marked", support::WORK, &["-Wl,-z,lazy"]);
        let mut bytes = std::fs::read(&library).unwrap();
        assert!(mark_plt(&mut bytes) > 10);
        std::fs::write(&library, bytes).unwrap();
        let rounds: Rounds = support::Library::open(&library).get("pipe_rounds");
        let trace = Trace::begin(&["fd"], Scope::Thread).unwrap();
        // SAFETY: a function of the library, with that type.
        assert_eq!(unsafe { rounds(100) }, 100);
        assert_eq!(count(&trace.finish(), "fd.read.calls"), 100);
    });
}

/// Adds an addend to relocations of the PLT and returns their number.
#[cfg(target_arch = "x86_64")]
fn mark_plt(file: &mut [u8]) -> usize {
    const SHT_RELA: u32 = 4;
    const JUMP_SLOT: u32 = 7;
    let word = |file: &[u8], at: usize| usize::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let half = |file: &[u8], at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let sections = word(file, 0x28);
    let count = usize::from(u16::from_le_bytes([file[0x3c], file[0x3d]]));
    let mut marked = 0;
    for section in (0..count).map(|index| sections + index * 64) {
        if half(file, section + 4) != SHT_RELA {
            continue;
        }
        let table = word(file, section + 24);
        for entry in (0..word(file, section + 32) / 24).map(|index| table + index * 24) {
            if half(file, entry + 8) == JUMP_SLOT {
                file[entry + 16..entry + 24].copy_from_slice(&0x1020u64.to_le_bytes());
                marked += 1;
            }
        }
    }
    marked
}

#[test]
fn counts_are_final_before_they_are_reported() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &[]);
        let rounds: Rounds = work.get("pipe_rounds");
        let around = Trace::begin(&["fd"], Scope::Thread).unwrap();
        let trace = Trace::begin(&["fd", "memcache"], Scope::Thread).unwrap();
        // SAFETY: a function of the library, with that type.
        assert_eq!(unsafe { rounds(7) }, 7);
        let counted = trace.stop();
        // SAFETY: as above.
        assert_eq!(unsafe { rounds(5) }, 5);
        for report in [counted.report(), counted.report()] {
            assert_eq!(count(&report, "fd.read.calls"), 7);
            assert_eq!(node(&report, "memcache"), Some(&Node::Map(Vec::new())));
        }
        assert_eq!(count(&around.finish(), "fd.read.calls"), 12);
    });
}

#[test]
fn bytes_of_vectors_and_messages() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &[]);
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        let failed =
            unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) };
        assert_eq!(failed, 0);
        let mut bytes = [7u8; 100];
        let at = bytes.as_mut_ptr().cast::<c_void>();
        let writev: unsafe extern "C" fn(c_int, *mut c_void, usize, *mut c_void, usize) -> isize =
            work.get("do_writev");
        let send: Read = work.get("do_sendmsg");
        let recv: Read = work.get("do_recv");
        let bad: unsafe extern "C" fn(c_int) -> isize = work.get("bad_readv");
        let trace = Trace::begin(&["fd"], Scope::Thread).unwrap();
        // SAFETY: functions of the library, with these types; `bytes` has 100 bytes.
        unsafe {
            assert_eq!(writev(ends[0], at, 30, at, 12), 42);
            assert_eq!(send(ends[0], at, 5), 5);
            assert_eq!(recv(ends[1], at, 100), 47);
            assert_eq!(bad(ends[1]), -1);
        }
        let report = trace.finish();
        assert_eq!(count(&report, "fd.write.requested"), 42);
        assert_eq!(count(&report, "fd.send.actual"), 5);
        assert_eq!(
            (count(&report, "fd.recv.requested"), count(&report, "fd.recv.actual")),
            (100, 47)
        );
        assert_eq!((count(&report, "fd.read.calls"), count(&report, "fd.read.requested")), (1, 0));
    });
}

#[test]
fn time_that_a_call_waits() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &[]);
        let poll: Rounds = work.get("do_poll");
        let trace = Trace::begin(&["fd"], Scope::Thread).unwrap();
        let begun = Instant::now();
        // SAFETY: a function of the library, with that type.
        assert_eq!(unsafe { poll(50) }, 0);
        let waited = begun.elapsed().as_secs_f64();
        let counted = seconds(&trace.finish(), "fd.poll.time");
        // The clock that times calls differs from the system's by at most one part in a thousand.
        assert!((0.05 * 0.999..=waited * 1.001).contains(&counted), "{counted} of {waited}");
    });
}

#[test]
fn errno_is_kept() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &[]);
        let read: Read = work.get("do_read");
        let malloc: Malloc = work.get("do_malloc");
        let _trace = Trace::begin(&["fd", "memory"], Scope::Process).unwrap();
        // Also in a thread that has counted nothing so far, and gets its counters here.
        std::thread::spawn(move || {
            let mut byte = 0u8;
            // SAFETY: functions of the library, with these types.
            unsafe {
                *libc::__errno_location() = libc::EXDEV;
                let block = malloc(10);
                assert_eq!(*libc::__errno_location(), libc::EXDEV);
                libc::free(block);
                assert_eq!(read(-1, (&raw mut byte).cast(), 1), -1);
                assert_eq!(*libc::__errno_location(), libc::EBADF);
                assert!(malloc(usize::MAX / 2).is_null());
                assert_eq!(*libc::__errno_location(), libc::ENOMEM);
            }
        })
        .join()
        .unwrap();
    });
}

#[test]
fn every_function_of_the_allocator() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &[]);
        let malloc: Malloc = work.get("do_malloc");
        let memalign: Malloc = work.get("do_memalign");
        let free: Free = work.get("do_free");
        let calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void = work.get("do_calloc");
        let realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void =
            work.get("do_realloc");
        let array: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void =
            work.get("do_reallocarray");
        let copy: unsafe extern "C" fn(*const c_char) -> *mut c_char = work.get("do_strdup");
        let text: &CStr = c"eleven char";
        let trace = Trace::begin(&["memory"], Scope::Thread).unwrap();
        let mut actual = 0;
        let size = |block: *mut c_void| {
            // SAFETY: a block of the allocator.
            unsafe { libc::malloc_usable_size(block) as u64 }
        };
        // SAFETY: functions of the library, with these types; each block is freed once.
        unsafe {
            let one = malloc(100);
            let two = calloc(3, 50);
            let copied = copy(text.as_ptr()).cast();
            let malloced = size(one) + size(copied);
            let one = realloc(one, 1000);
            let two = array(two, 10, 30);
            let reallocated = size(one) + size(two);
            assert!(array(std::ptr::null_mut(), usize::MAX, 2).is_null());
            let three = memalign(10);
            for block in [one, two, three, copied] {
                actual += size(block);
                free(block);
            }
            free(std::ptr::null_mut());
            let report = trace.finish();
            let counts = |function: &str| {
                ["calls", "requested", "actual"]
                    .map(|key| count(&report, &format!("memory.{function}.{key}")))
            };
            assert_eq!(counts("malloc"), [2, 100 + 12, malloced]);
            assert_eq!(counts("calloc")[..2], [1, 150]);
            assert_eq!(counts("realloc")[0], 3);
            assert_eq!(counts("realloc")[2], reallocated);
            assert_eq!(counts("posix_memalign")[..2], [1, 10]);
            assert_eq!(counts("free"), [5, 0, actual]);
            assert_eq!(
                count(&report, "memory.other.malloc.calls"),
                2,
                "there is no Ruby in this process"
            );
            assert_eq!(node(&report, "memory.ruby"), Some(&Node::Map(Vec::new())));
        }
    });
}

#[test]
fn ruby_and_the_rest() {
    alone(|| {
        let shop = Workshop::new();
        let ruby = "#include <stdlib.h>\nvoid ruby_init(void) {}\nvoid ruby_work(void) { free(malloc(64)); }";
        let ruby = support::Library::open(&shop.build("ruby", ruby, &[]));
        let work = shop.work("work", &[]);
        let trace = Trace::begin(&["memory"], Scope::Thread).unwrap();
        // SAFETY: functions of the libraries, with these types.
        unsafe {
            ruby.get::<unsafe extern "C" fn()>("ruby_work")();
            libc::free(work.get::<Malloc>("do_malloc")(10));
        }
        let report = trace.finish();
        assert_eq!(count(&report, "memory.malloc.calls"), 2);
        assert_eq!(count(&report, "memory.ruby.malloc.requested"), 64);
        assert_eq!(count(&report, "memory.ruby.free.calls"), 1);
        assert_eq!(count(&report, "memory.other.malloc.requested"), 10);
        assert_eq!(node(&report, "memory.other.free"), None);
    });
}
