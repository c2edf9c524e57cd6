//! A thread's recent sites: by the interpreter's position in its code, by line, and by address of native code.
//!
//! A position is the address of an instruction: it identifies a line only until the block with the code is freed. So that
//! block is marked in the table of live blocks, and freeing it makes all threads forget positions.

use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::sites::{self, SiteId};
use super::{Host, Line, Location, Origin, Position, Running, block_shards};

/// Incremented when positions may stand for other lines than before.
static CODE: AtomicU64 = AtomicU64::new(1);
/// Set once a position did not match its line: positions are then no longer used.
static POSITIONS_DISABLED: AtomicBool = AtomicBool::new(false);

/// Forgets positions because code was freed, or may have been.
#[cold]
pub(super) fn forget_positions() {
    CODE.fetch_add(1, Release);
}

/// A number that changes when positions are forgotten.
#[inline(always)]
pub(super) fn code() -> u64 {
    CODE.load(Acquire)
}

/// Stops using positions: one did not match its line.
#[cold]
pub(super) fn disable_positions() {
    POSITIONS_DISABLED.store(true, Relaxed);
    forget_positions();
}

/// Prepares for a new recording.
pub(super) fn start() {
    POSITIONS_DISABLED.store(false, Relaxed);
    forget_positions();
}

pub(super) fn positions_disabled() -> bool {
    POSITIONS_DISABLED.load(Relaxed)
}

const CACHED: usize = 512;
/// Number of positions that a thread compares with their lines before trusting them.
pub(super) const ENOUGH: u32 = 64;

/// In place of the site of a position in the interpreter's own code, whose line is its caller's.
const CALLERS: SiteId = SiteId(u32::MAX);
/// In place of a site of the profiler's own code, whose blocks are not recorded.
pub(super) const OWN: SiteId = SiteId(u32::MAX - 1);
/// Number of frames to search for a caller outside of the interpreter's own code.
const SEARCHED: usize = 16;

/// All zero: an empty cache.
pub(super) struct SiteCache {
    positions: [At; CACHED],
    /// The value of [`CODE`] for which the positions are valid.
    code: u64,
    checked: u32,
    lines: [Cached; CACHED],
}

#[derive(Clone, Copy, Default)]
struct At {
    position: usize,
    site: SiteId,
}

#[derive(Clone, Copy)]
struct Cached {
    /// The address of the path or of native code.
    address: usize,
    line: u32,
    site: SiteId,
    /// The path of the site, which is never freed; null for native code. The text is compared, as another path may be at the
    /// same address now.
    path: *const c_char,
}

impl SiteCache {
    /// The calling thread's site; `caller` is the native code that called the allocator.
    #[inline(always)]
    pub(super) fn site(&mut self, host: &Host, caller: usize) -> Option<SiteId> {
        match (host.position)() {
            Position::Native => self.native(caller),
            Position::Line => self.line_or_native(host, caller),
            Position::Code(position) => {
                let known = self.positions[place(position, 0)];
                if known.position != position || self.code != code() || self.checked < ENOUGH {
                    self.look_up(host, position, caller)
                } else if known.site == CALLERS {
                    self.line_or_native(host, caller)
                } else {
                    Some(known.site)
                }
            }
        }
    }

    #[cold]
    fn look_up(&mut self, host: &Host, position: usize, caller: usize) -> Option<SiteId> {
        self.renew();
        let Some(line) = (host.line)() else {
            return self.native(caller);
        };
        let site = if is_interpreters(line) {
            CALLERS
        } else {
            // SAFETY: the host's path.
            unsafe { self.line(host, line) }?
        };
        let known = self.positions[place(position, 0)];
        if known.position == position {
            if known.site != site {
                disable_positions();
            }
            self.checked = self.checked.saturating_add(1);
        } else {
            self.learn(position, (host.code_block)(position), site);
        }
        if site == CALLERS { self.line_or_native(host, caller) } else { Some(site) }
    }

    /// Forgets positions that may be out of date.
    fn renew(&mut self) {
        let code = code();
        if self.code != code {
            self.positions = [At::default(); CACHED];
            self.code = code;
        }
    }

    /// Maps a position to this site until the block is freed.
    fn learn(&mut self, position: usize, block: Option<usize>, site: SiteId) {
        let is_marked = |block| block_shards::mark_code(block).is_ok();
        if !positions_disabled() && block.is_some_and(is_marked) {
            self.positions[place(position, 0)] = At { position, site };
        }
    }

    /// The current line, or its caller's in the interpreter's own code.
    fn line_or_native(&mut self, host: &Host, caller: usize) -> Option<SiteId> {
        let Some(line) = (host.line)() else {
            return self.native(caller);
        };
        let users = if is_interpreters(line) { self.users_line(host) } else { None };
        // SAFETY: the host's path.
        users.or_else(|| unsafe { self.line(host, line) })
    }

    /// The innermost line outside of the interpreter's own code. None if it is too far out, or frames are unknown.
    fn users_line(&mut self, host: &Host) -> Option<SiteId> {
        if positions_disabled() {
            return None;
        }
        self.renew();
        let mut frames = [Running::default(); SEARCHED];
        let count = (host.frames)(&mut frames);
        let mut sites = frames[..count].iter().map(|&frame| self.frame(host, frame));
        sites.find(|site| *site != Some(CALLERS))?
    }

    /// The site of a frame's line.
    fn frame(&mut self, host: &Host, frame: Running) -> Option<SiteId> {
        let position = frame.instruction;
        let known = self.positions[place(position, 0)];
        if known.position == position {
            return Some(known.site);
        }
        let said = (host.described)(frame)?;
        let location = said.location();
        let site = if location.origin() == Origin::Interpreter {
            CALLERS
        } else if said.is_own {
            OWN
        } else {
            sites::intern_location(location)?
        };
        self.learn(position, Some(said.block), site);
        Some(site)
    }

    /// The site of a line.
    ///
    /// # Safety
    ///
    /// The path is NUL-terminated and stays unchanged meanwhile.
    #[inline(always)]
    unsafe fn line(&mut self, host: &Host, line: Line) -> Option<SiteId> {
        let cached = &mut self.lines[place(line.path as usize, line.line)];
        if cached.address == line.path as usize
            && cached.line == line.line
            && !cached.path.is_null()
        {
            // SAFETY: the caller's path, and one of a site.
            if unsafe { libc::strcmp(cached.path, line.path) } == 0 {
                return Some(cached.site);
            }
        }
        // SAFETY: the caller's path.
        let site = sites::intern_location(unsafe { sites::line(line) })?;
        *cached = Cached {
            address: line.path as usize,
            line: line.line,
            site: if is_own(host, line) { OWN } else { site },
            path: sites::path_of(site),
        };
        Some(cached.site)
    }

    /// The site of native code.
    #[inline(always)]
    fn native(&mut self, address: usize) -> Option<SiteId> {
        let cached = &mut self.lines[place(address, 0)];
        if cached.address == address && cached.path.is_null() {
            return Some(cached.site);
        }
        let site = sites::intern_location(Location::Native(address))?;
        *cached = Cached { address, line: 0, site, path: ptr::null() };
        Some(site)
    }
}

fn is_interpreters(line: Line) -> bool {
    // SAFETY: the host's path.
    memprof_paths::is_vms(unsafe { CStr::from_ptr(line.path) }.to_bytes())
}

fn is_own(host: &Host, line: Line) -> bool {
    // SAFETY: the host's path.
    (host.is_own)(unsafe { CStr::from_ptr(line.path) }.to_bytes())
}

/// Finds a site without a cache, for threads that can't have one.
pub(super) fn site_without_cache(host: &Host, caller: usize) -> Option<SiteId> {
    sites::intern_location(match (host.line)() {
        Some(line) if is_own(host, line) => return Some(OWN),
        // SAFETY: the host's path.
        Some(line) => unsafe { sites::line(line) },
        None => Location::Native(caller),
    })
}

#[inline(always)]
fn place(address: usize, line: u32) -> usize {
    (mixed(address, line) >> 55) as usize % CACHED
}

/// Both numbers, mixed so that the upper bits depend on all of them.
#[inline(always)]
pub(super) fn mixed(address: usize, number: u32) -> u64 {
    (address as u64 ^ u64::from(number) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::{Described, pages};
    use super::*;

    thread_local! {
        static POSITION: Cell<usize> = const { Cell::new(0) };
        static LINE: Cell<u32> = const { Cell::new(0) };
        static ASKED: Cell<u32> = const { Cell::new(0) };
    }

    static HOST: Host = Host {
        position: || Position::Code(POSITION.get()),
        code_block: |position| Some(position & !0xfff),
        line: || {
            ASKED.set(ASKED.get() + 1);
            Some(Line { path: c"/app/a.rb".as_ptr(), line: LINE.get() })
        },
        frames: |_| 0,
        follow: |_, _, _| (0, 0),
        described: |_| None,
        generation: || 0,
        is_own: |path| path.starts_with(b"/profiler/"),
        is_quiet: || false,
    };

    fn at(path: *const c_char, line: u32) -> Line {
        Line { path, line }
    }

    #[test]
    fn a_line_of_the_profilers_own_is_no_site() {
        let cache = cache();
        for _ in 0..2 {
            // SAFETY: a static path.
            let site = unsafe { cache.line(&HOST, at(c"/profiler/a.rb".as_ptr(), 3)) };
            assert_eq!(site, Some(OWN));
        }
    }

    fn line_of(site: Option<SiteId>) -> u32 {
        match location(site.unwrap()) {
            Location::Line { line, .. } => line,
            Location::Native(address) => panic!("native: {address:#x}"),
        }
    }

    fn location(site: SiteId) -> Location {
        sites::node(site).1.location
    }

    fn cache() -> &'static mut SiteCache {
        // SAFETY: mapped here, and never unmapped.
        unsafe { &mut *pages::map(1) }
    }

    #[test]
    fn a_position_stands_for_its_line_until_its_code_is_freed() {
        let cache = cache();
        let block = 0x6000_0000;
        let mut allocated_at = |position: usize, line: u32| {
            POSITION.set(block + position);
            LINE.set(line);
            ASKED.set(0);
            (line_of(cache.site(&HOST, 1)), ASKED.get())
        };
        for _ in 0..=ENOUGH {
            assert_eq!(allocated_at(8, 10), (10, 1), "not believed yet");
        }
        assert_eq!(allocated_at(8, 10), (10, 0));
        assert_eq!(allocated_at(16, 11), (11, 1));
        assert_eq!(allocated_at(16, 11), (11, 0));
        let code = block_shards::remove(block).unwrap();
        assert!(code.holds_code);
        forget_positions();
        assert_eq!(allocated_at(8, 12), (12, 1));
        assert_eq!(allocated_at(8, 12), (12, 0));
        block_shards::remove(block);
    }

    #[test]
    fn code_of_the_interpreter_is_at_the_line_of_its_caller() {
        const INTERNAL: usize = 0x7000_0008;
        static MARSHAL: Host = Host {
            position: || Position::Code(INTERNAL),
            line: || Some(Line { path: c"<internal:marshal>".as_ptr(), line: 34 }),
            frames: |into| {
                into[0].instruction = INTERNAL;
                into[1].instruction = POSITION.get();
                2
            },
            described: |frame| {
                let path: &[u8] = match frame.instruction {
                    INTERNAL => b"<internal:marshal>",
                    _ => b"/app/a.rb",
                };
                Some(Described {
                    path,
                    line: LINE.get(),
                    method: b"",
                    block: frame.instruction & !0xfff,
                    is_own: false,
                })
            },
            ..HOST
        };
        let cache = cache();
        for _ in 0..2 * ENOUGH {
            for (position, line) in [(0x7100_0008, 10), (0x7100_0010, 11)] {
                POSITION.set(position);
                LINE.set(line);
                assert_eq!(line_of(cache.site(&MARSHAL, 1)), line);
            }
        }
        for block in [0x7000_0000, 0x7100_0000] {
            block_shards::remove(block);
        }
    }

    #[test]
    fn a_cache_names_the_same_sites() {
        let cache = cache();
        for round in 0..3 {
            for number in 1..3_000u32 {
                // SAFETY: a literal.
                let site = unsafe { cache.line(&HOST, at(c"/app/a.rb".as_ptr(), number)) };
                assert_eq!(line_of(site), number, "round {round}");
                let site = cache.native(number as usize * 4).unwrap();
                assert_eq!(location(site), Location::Native(number as usize * 4));
            }
        }
    }

    #[test]
    fn another_path_at_the_same_address_is_another_site() {
        let cache = cache();
        let mut text = *b"/app/one.rb\0";
        // SAFETY: both times a NUL-terminated text.
        let one = unsafe { cache.line(&HOST, at(text.as_ptr().cast(), 7)) }.unwrap();
        text[5..8].copy_from_slice(b"two");
        // SAFETY: as above.
        let two = unsafe { cache.line(&HOST, at(text.as_ptr().cast(), 7)) }.unwrap();
        let path = |site| {
            // SAFETY: the path of a line's site, which is never freed.
            unsafe { CStr::from_ptr(sites::path_of(site)) }
        };
        assert_eq!((path(one), path(two)), (c"/app/one.rb", c"/app/two.rb"));
    }
}
