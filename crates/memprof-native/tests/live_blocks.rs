//! A recording with addresses shows which blocks are live at its end.

mod support;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io::Seek;
use std::num::NonZeroU32;

use memprof_native::malloc::{self, Stream};
use memprof_recording::LiveBlocks;
use support::lines::{Calloc, HOST, LINE, Realloc, handover, samples, work};
use support::{Free, Malloc, alone};

/// Records with addresses to a file while `work` runs. Returns address, size and line of the blocks live at its end.
fn live_at_end(sample: Option<NonZeroU32>, work: impl FnOnce()) -> BTreeMap<usize, (u64, String)> {
    let mut file = tempfile::tempfile().unwrap();
    let stream =
        Stream { file: file.try_clone().unwrap(), command: "test".to_owned(), addresses: true };
    assert_eq!(malloc::start_stream(&HOST, samples(sample), stream), Ok(true));
    work();
    assert!(malloc::stop().unwrap());
    file.rewind().unwrap();
    let live = LiveBlocks::read(&mut file, u64::MAX).unwrap();
    assert!(live.summary.complete && live.summary.damaged_at.is_none());
    assert_eq!(live.summary.pid, u64::from(std::process::id()));
    let blocks = live.blocks.unwrap().into_iter();
    let of_test = blocks.filter_map(|block| {
        let location = &live.places[block.place as usize].location;
        let line = location.strip_prefix("/app/test.rb:")?.to_owned();
        Some((block.address as usize, (block.size, line)))
    });
    of_test.collect()
}

#[test]
fn a_file_with_addresses_has_the_blocks_that_are_live_at_its_end() {
    alone(|| {
        let (_shop, work) = work();
        let (allocate, free): (Malloc, Free) = (work.get("do_malloc"), work.get("do_free"));
        let (calloc, realloc): (Calloc, Realloc) = (work.get("do_calloc"), work.get("do_realloc"));
        let aligned: Malloc = work.get("do_memalign");
        let mut expected = BTreeMap::new();
        let found = live_at_end(None, || {
            let mut expect = |block: *mut c_void, size, line: &str| {
                expected.insert(block as usize, (size, line.to_owned()));
            };
            // SAFETY: functions of the library, with these types; each block is freed at most once.
            unsafe {
                LINE.set(Some(1));
                expect(calloc(3, 7), 21, "1");
                expect(aligned(500), 500, "1");
                free(allocate(80));
                let (moved, shrunk, kept) = (allocate(100), allocate(4000), allocate(60));
                LINE.set(Some(2));
                expect(realloc(moved, 200_000), 200_000, "2");
                expect(realloc(shrunk, 3000), 3000, "2");
                assert!(realloc(kept, usize::MAX / 2).is_null());
                expect(kept, 60, "1");
                // Allocations and frees of a forked child do not count for the parent.
                let child = libc::fork();
                if child == 0 {
                    free(kept);
                    allocate(60);
                    libc::_exit(0);
                }
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                LINE.set(None);
            }
        });
        assert_eq!(found, expected);
    });
}

#[test]
fn a_file_with_addresses_is_right_about_threads_that_reallocate() {
    alone(|| reallocate_on_threads(None));
}

#[test]
fn a_file_with_addresses_of_samples_is_right_about_threads_that_reallocate() {
    alone(|| reallocate_on_threads(NonZeroU32::new(512)));
}

/// Blocks move all the time, to addresses that another thread has just freed.
fn reallocate_on_threads(sample: Option<NonZeroU32>) {
    let (_shop, work) = work();
    let (allocate, free): (Malloc, Free) = (work.get("do_malloc"), work.get("do_free"));
    let realloc: Realloc = work.get("do_realloc");
    let mut kept = BTreeMap::new();
    let found = live_at_end(sample, || {
        let (sender, receiver) = handover();
        std::thread::scope(|scope| {
            let threads = (10..18u32).map(|line| {
                let (sender, receiver) = (&sender, &receiver);
                scope.spawn(move || {
                    LINE.set(Some(line));
                    let mut kept = Vec::new();
                    for round in 0..8_000usize {
                        let size = 100 + round * 37 % 2_000;
                        // SAFETY: functions of the library, with these types; each block is freed at most once.
                        unsafe {
                            sender(allocate(50 + round % 300) as usize);
                            let block = realloc(receiver() as *mut c_void, size);
                            if round % 10 == 0 {
                                kept.push((block as usize, (size as u64, line.to_string())));
                            } else {
                                free(block);
                            }
                        }
                    }
                    kept
                })
            });
            let threads: Vec<_> = threads.collect();
            kept.extend(threads.into_iter().flat_map(|one| one.join().unwrap()));
        });
    });
    assert_eq!(kept.len(), 6_400);
    match sample {
        None => assert_eq!(found, kept),
        // Each sample is one of them, whatever was sampled at its address before.
        Some(_) => {
            assert!((1_000..6_400).contains(&found.len()), "{}", found.len());
            assert!(found.iter().all(|(address, block)| kept.get(address) == Some(block)));
        }
    }
}
