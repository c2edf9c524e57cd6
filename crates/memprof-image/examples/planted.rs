//! A process with known blocks, for tests: prints the addresses of some, and exits when its stdin is closed.

use std::alloc::{Layout, alloc, dealloc};
use std::hint::black_box;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Variables that anchor blocks.
static KEPT: AtomicUsize = AtomicUsize::new(0);
static LARGE: AtomicUsize = AtomicUsize::new(0);
static ALIGNED: AtomicUsize = AtomicUsize::new(0);

/// Hides an address.
const MASK: usize = 0x5555_5555_5555_5555;

/// Allocates a block with this first word.
#[inline(never)]
fn block(size: usize, first: usize) -> usize {
    block_aligned(size, 16, first)
}

#[allow(unsafe_code)]
fn block_aligned(size: usize, alignment: usize, first: usize) -> usize {
    let layout = Layout::from_size_align(size, alignment).expect("a layout");
    // SAFETY: the size is not 0, and the block has room for two words.
    unsafe {
        let block = alloc(layout);
        block.write_bytes(0, size);
        block.cast::<usize>().write(first);
        block as usize
    }
}

#[allow(unsafe_code)]
fn free(block: usize, size: usize) {
    let layout = Layout::from_size_align(size, 16).expect("a layout");
    // SAFETY: the block was allocated with this layout and is no longer used.
    unsafe { dealloc(block as *mut u8, layout) };
}

#[inline(never)]
fn plant() {
    for _ in 0..1000 {
        black_box(block(1000, 0));
    }
    // A leaked block that references another one, and two that reference each other.
    let inner = block(2000, 0);
    black_box(block(2100, inner));
    let first = block(2200, 0);
    let second = block(2300, first);
    link(first, second);
    // A list of three, and the middle of a block.
    let third = block(2400, 0);
    let second = block(2400, third + 100);
    KEPT.store(block(2400, second), Relaxed);
    LARGE.store(block(3_000_000, 0), Relaxed);
    ALIGNED.store(block_aligned(1_000_000, 4096, 0), Relaxed);
    let freed: Vec<usize> = (0..5).map(|_| block(3000 - 2500, 0) ^ MASK).collect();
    freed.iter().for_each(|block| free(*block ^ MASK, 500));
    // Blocks too large for the tcache, with used ones between them.
    let freed: Vec<usize> = (0..20).map(|_| block(5000, 0) ^ MASK).collect();
    freed.iter().step_by(2).for_each(|block| free(*block ^ MASK, 5000));
}

#[allow(unsafe_code)]
fn link(from: usize, to: usize) {
    // SAFETY: `from` is a block of our own, larger than a word.
    unsafe { (from as *mut usize).write(to) };
}

/// Overwrites the remains of earlier calls on the stack.
#[inline(never)]
fn clear_stack() {
    black_box([0u8; 1 << 17]);
}

fn main() {
    plant();
    clear_stack();
    let thread = thread::spawn(|| {
        let own: Vec<usize> = (0..50).map(|_| block(7000, 0)).collect();
        println!(
            "ready {:x} {:x} {:x}",
            KEPT.load(Relaxed),
            LARGE.load(Relaxed),
            ALIGNED.load(Relaxed)
        );
        let _ = std::io::stdin().read(&mut [0]);
        black_box(own);
    });
    let _ = thread.join();
}
