//! A malloc recording matches the test's allocations and frees, also by many threads and in a forked child.

mod support;

use std::ffi::c_void;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use memprof_native::malloc::{self, Counts, Location, Settings};
use memprof_native::{Scope, Trace};
use support::lines::{
    Calloc, GENERATION, HOST, LINE, QUIET, Realloc, ReallocArray, Strdup, handover, samples, work,
};
use support::{Free, Malloc, Rounds, alone, count};

fn at(line: u32) -> Location {
    Location::Line { path: c"/app/test.rb".to_owned(), line }
}

fn counted(line: u32) -> Counts {
    malloc::counts(&at(line)).unwrap_or_default()
}

#[test]
fn each_function_counts_at_its_line() {
    alone(|| {
        let (_shop, work) = work();
        let (allocate, free): (Malloc, Free) = (work.get("do_malloc"), work.get("do_free"));
        let (calloc, realloc): (Calloc, Realloc) = (work.get("do_calloc"), work.get("do_realloc"));
        let (array, aligned): (ReallocArray, Malloc) =
            (work.get("do_reallocarray"), work.get("do_memalign"));
        let strdup: Strdup = work.get("do_strdup");
        // SAFETY: functions of the library, with these types; each block is freed once.
        unsafe {
            let before = allocate(77);
            assert_eq!(malloc::start(&HOST, Settings::default()), Ok(true));
            assert_eq!(malloc::start(&HOST, Settings::default()), Ok(false));
            LINE.set(Some(1));
            let mut blocks = vec![
                allocate(100),
                calloc(3, 7),
                aligned(500),
                array(std::ptr::null_mut(), 5, 5),
                strdup(c"four".as_ptr()),
                allocate(0),
            ];
            let expected = Counts {
                allocations: 6,
                allocated_bytes: 100 + 21 + 500 + 25 + 5,
                live: 6,
                live_bytes: 651,
                ..Counts::default()
            };
            assert_eq!(counted(1), expected);
            LINE.set(Some(2));
            GENERATION.store(4, Relaxed);
            blocks[0] = realloc(blocks[0], 4000);
            let moved = Counts {
                allocations: 1,
                allocated_bytes: 4000,
                live: 1,
                live_bytes: 4000,
                ..Counts::default()
            };
            assert_eq!(counted(2), moved);
            assert_eq!(
                (counted(1).frees, counted(1).freed_bytes, counted(1).age_total),
                (1, 100, 4)
            );
            // A failed call leaves the block where it is.
            assert!(realloc(blocks[0], usize::MAX / 2).is_null());
            assert!(array(blocks[0], usize::MAX, 2).is_null());
            assert_eq!(counted(2), moved);
            free(before);
            blocks.into_iter().for_each(|block| free(block));
            assert_eq!((counted(1).live, counted(2).live, counted(1).frees), (0, 0, 6));
            assert_eq!(malloc::missed(), 0);
            assert!(malloc::stop().unwrap() && !malloc::stop().unwrap());
        }
    });
}

#[test]
fn what_runs_no_line_is_native_code_of_the_caller() {
    alone(|| {
        let (_shop, work) = work();
        let (allocate, free): (Malloc, Free) = (work.get("do_malloc"), work.get("do_free"));
        malloc::start(&HOST, Settings::default()).unwrap();
        // SAFETY: functions of the library, with these types.
        let block = unsafe { allocate(12_345) };
        let sites = malloc::sites();
        let site = sites.iter().find(|site| site.counts.allocated_bytes == 12_345);
        let Some(Location::Native(address)) = site.map(|site| site.location.clone()) else {
            panic!("{sites:?}");
        };
        let name = malloc::describe(&[address]).remove(0);
        assert!(name.contains("work.so(do_malloc+0x"), "{name}");
        // SAFETY: as above.
        unsafe { free(block) };
        malloc::stop().unwrap();
    });
}

#[test]
fn quiet_threads_are_left_out_but_their_frees_count() {
    alone(|| {
        let (_shop, work) = work();
        let (allocate, free): (Malloc, Free) = (work.get("do_malloc"), work.get("do_free"));
        malloc::start(&HOST, Settings::default()).unwrap();
        LINE.set(Some(1));
        // SAFETY: functions of the library, with these types.
        unsafe {
            let block = allocate(10);
            malloc::set_quiet(true);
            QUIET.set(true);
            LINE.set(Some(2));
            free(allocate(20));
            free(block);
            assert_eq!(malloc::counts(&at(2)), None);
            assert_eq!((counted(1).live, counted(1).frees), (0, 1));
        }
    });
}

#[test]
fn a_trace_and_a_recording_count_the_same_calls() {
    alone(|| {
        let (_shop, work) = work();
        let rounds: Rounds = work.get("malloc_rounds");
        for recorded_first in [true, false] {
            LINE.set(Some(7));
            if recorded_first {
                malloc::start(&HOST, Settings::default()).unwrap();
            }
            let trace = Trace::begin(&["memory"], Scope::Thread).unwrap();
            if !recorded_first {
                malloc::start(&HOST, Settings::default()).unwrap();
            }
            // SAFETY: a function of the library, with that type.
            assert_eq!(unsafe { rounds(10_000) }, 0);
            assert_eq!(counted(7).allocations, 10_000);
            let report = trace.finish();
            assert_eq!(count(&report, "memory.malloc.calls"), 10_000);
            assert_eq!(count(&report, "memory.malloc.requested"), counted(7).allocated_bytes);
            // SAFETY: as above. The trace is over, the recording continues.
            assert_eq!(unsafe { rounds(10) }, 0);
            assert_eq!(counted(7).allocations, 10_010);
            assert_eq!((counted(7).live, counted(7).live_bytes), (0, 0));
            malloc::stop().unwrap();
            // SAFETY: as above.
            assert_eq!(unsafe { rounds(10) }, 0);
            assert_eq!(counted(7).allocations, 10_010);
        }
    });
}

#[test]
fn sixteen_threads_free_each_others_blocks_while_processes_are_forked() {
    alone(|| exchange_blocks(None));
}

#[test]
fn sixteen_threads_free_each_others_samples_while_processes_are_forked() {
    alone(|| exchange_blocks(NonZeroU32::new(256)));
}

fn exchange_blocks(sample: Option<NonZeroU32>) {
    let (_shop, work) = work();
    let (allocate, free): (Malloc, Free) = (work.get("do_malloc"), work.get("do_free"));
    malloc::start(&HOST, samples(sample)).unwrap();
    let (sender, receiver) = handover();
    std::thread::scope(|scope| {
        for number in 0..16u32 {
            let (sender, receiver) = (&sender, &receiver);
            scope.spawn(move || {
                LINE.set(Some(100 + number));
                for round in 0..5_000usize {
                    // SAFETY: functions of the library, with these types; each block is freed once.
                    unsafe {
                        sender(allocate(round % 700) as usize);
                        free(receiver() as *mut c_void);
                    }
                }
            });
        }
        for _ in 0..20 {
            // SAFETY: the child only makes calls allowed after a fork, and calls the recorder, whose locks are free.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    LINE.set(Some(1));
                    free(allocate(9_000));
                    let right = malloc::is_recording();
                    libc::_exit(i32::from(!right));
                }
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                assert_eq!(status, 0);
            }
        }
    });
    let all: Vec<Counts> = (100..116).map(counted).collect();
    // Freeing a sample subtracts its weight, on any thread.
    match sample {
        None => assert!(all.iter().all(|counts| counts.allocations == 5_000)),
        Some(_) => assert!(all.iter().all(|counts| counts.allocations > 2_500)),
    }
    assert!(all.iter().all(|counts| (counts.live, counts.live_bytes) == (0, 0)));
    assert_eq!(malloc::missed(), 0);
    assert_eq!(counted(1), Counts::default());
    malloc::stop().unwrap();
}

#[test]
fn samples_of_many_threads_estimate_what_was_allocated_and_what_is_live() {
    alone(|| {
        let (_shop, work) = work();
        let (allocate, free): (Malloc, Free) = (work.get("do_malloc"), work.get("do_free"));
        let realloc: Realloc = work.get("do_realloc");
        assert_eq!(malloc::start(&HOST, samples(NonZeroU32::new(4096))), Ok(true));
        assert_eq!(malloc::sample(), Some(4096));
        let kept: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        LINE.set(Some(5));
                        // SAFETY: functions of the library, with these types; each block is freed at most once.
                        (0..20_000usize)
                            .filter(|round| unsafe {
                                let block = realloc(allocate(8), 1_000);
                                if round % 4 > 0 {
                                    free(block);
                                }
                                round % 4 == 0
                            })
                            .count()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let counts = counted(5);
        let near = |estimate: u64, exact: u64| {
            assert!(estimate.abs_diff(exact) < exact / 8, "{estimate} for {exact}: {counts:?}");
        };
        near(counts.allocated_bytes, 80_000 * 1_008);
        near(counts.live_bytes, kept as u64 * 1_000);
        near(counts.live, kept as u64);
        let sampled = malloc::live_blocks(&at(5));
        assert!(sampled.len() < kept / 2 && sampled.iter().any(|block| block.size == 1_000));
        malloc::stop().unwrap();
        assert_eq!(malloc::start(&HOST, Settings::default()), Ok(true));
        assert_eq!((malloc::sample(), counted(5)), (None, Counts::default()));
        // SAFETY: a function of the library, with that type.
        unsafe { allocate(3) };
        assert_eq!((counted(5).live, counted(5).live_bytes), (0, 0));
        malloc::stop().unwrap();
    });
}

#[test]
fn a_signal_handler_that_allocates_does_not_lock_the_program_up() {
    static ALLOCATE: AtomicU32 = AtomicU32::new(0);
    static mut FUNCTIONS: Option<(Malloc, Free)> = None;
    extern "C" fn handler(_: i32) {
        // SAFETY: written before the signals come. glibc's allocator is not interrupted: the thread computes, or is in the
        // recorder.
        if let Some((allocate, free)) = unsafe { FUNCTIONS } {
            ALLOCATE.fetch_add(1, Relaxed);
            // SAFETY: as above.
            unsafe { free(allocate(10)) };
        }
    }
    alone(|| {
        let (_shop, work) = work();
        // SAFETY: no signal comes yet; a handler with that signature.
        unsafe {
            FUNCTIONS = Some((work.get("do_malloc"), work.get("do_free")));
            libc::signal(libc::SIGUSR1, handler as *const () as usize);
        }
        malloc::start(&HOST, Settings::default()).unwrap();
        LINE.set(Some(1));
        // SAFETY: as above. A site with a block, so that the whole table is read.
        unsafe { FUNCTIONS.map(|(allocate, _)| allocate(10)) };
        // SAFETY: takes no arguments.
        let thread = unsafe { libc::pthread_self() } as usize;
        std::thread::spawn(move || {
            // Signals that are already pending are not sent twice.
            while ALLOCATE.load(Relaxed) < 300 {
                // SAFETY: the thread below waits for these.
                unsafe { libc::pthread_kill(thread as libc::pthread_t, libc::SIGUSR1) };
                std::thread::yield_now();
            }
        });
        while ALLOCATE.load(Relaxed) < 300 {
            // Reads the table repeatedly, under its locks.
            assert!(malloc::memsize() > 0);
        }
        malloc::stop().unwrap();
    });
}
