//! What the allocator behind malloc says of itself: glibc's `malloc_info`, or jemalloc's `mallctl`.
//!
//! Both may be loaded without being behind malloc: glibc always is. So each is asked only if malloc is in the same object.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

use memprof_ledger::Allocator;

/// The statistics; `None` for an allocator that has none (musl, tcmalloc) or that is not known.
pub fn statistics() -> Option<Allocator> {
    jemalloc::statistics().or_else(glibc::statistics)
}

/// The function of this name, if the object that has it has malloc, too.
fn beside_malloc(name: &CStr) -> Option<*mut c_void> {
    let (function, malloc) = (function(name)?, function(c"malloc")?);
    (object(function)? == object(malloc)?).then_some(function)
}

fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym with a NUL-terminated name has no other conditions.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Where the object begins that this address is in.
fn object(address: *mut c_void) -> Option<*mut c_void> {
    let mut facts = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: dladdr takes any address, and has filled in the struct unless it returns 0.
    unsafe {
        (libc::dladdr(address, facts.as_mut_ptr()) != 0).then(|| facts.assume_init().dli_fbase)
    }
}

mod jemalloc {
    use std::ffi::{CString, c_char, c_int, c_void};
    use std::ptr;

    use memprof_ledger::{Allocator, Arena};

    type MallCtl =
        unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

    pub fn statistics() -> Option<Allocator> {
        let address = super::beside_malloc(c"mallctl")?;
        // SAFETY: the function of this name is jemalloc's, whose signature has been the same since 2.0.
        let control: MallCtl = unsafe { std::mem::transmute(address) };
        refresh(control)?;
        let arenas: u32 = read(control, "arenas.narenas")?;
        let arenas = (0..arenas).filter_map(|index| {
            let number = |name| read::<usize>(control, &format!("stats.arenas.{index}.{name}"));
            let in_use = number("small.allocated")? + number("large.allocated")?;
            let resident = number("resident")?.max(in_use);
            (resident > 0).then(|| Arena {
                in_use: in_use as u64,
                free: (resident - in_use) as u64,
            })
        });
        Some(Allocator {
            name: "jemalloc".into(),
            arenas: arenas.collect(),
            ..Allocator::default()
        })
    }

    /// jemalloc counts again when its epoch is set.
    fn refresh(control: MallCtl) -> Option<()> {
        let mut epoch = 1_u64;
        // SAFETY: "epoch" takes an u64, which lives through the call.
        let result = unsafe {
            control(
                c"epoch".as_ptr(),
                ptr::null_mut(),
                ptr::null_mut(),
                (&raw mut epoch).cast(),
                size_of::<u64>(),
            )
        };
        (result == 0).then_some(())
    }

    /// A number; `None` if there is none of this name, or it has another size.
    fn read<T: Copy + Default>(control: MallCtl, name: &str) -> Option<T> {
        let name = CString::new(name).ok()?;
        let (mut value, mut size) = (T::default(), size_of::<T>());
        // SAFETY: the value has room for `size` bytes, and jemalloc refuses any other size.
        let result = unsafe {
            control(
                name.as_ptr(),
                (&raw mut value).cast(),
                &raw mut size,
                ptr::null_mut(),
                0,
            )
        };
        (result == 0).then_some(value)
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::ptr;
    use std::slice;

    use memprof_ledger::Allocator;

    pub fn statistics() -> Option<Allocator> {
        super::beside_malloc(c"malloc_info")?;
        let (mut text, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the two variables outlive the stream, which is closed before they are read; what it wrote to is then ours,
        // and is freed once.
        unsafe {
            let stream = libc::open_memstream(&raw mut text, &raw mut length);
            if stream.is_null() {
                return None;
            }
            let failed = libc::malloc_info(0, stream) != 0;
            let failed = libc::fclose(stream) != 0 || failed;
            let bytes = if text.is_null() {
                &[][..]
            } else {
                slice::from_raw_parts(text.cast::<u8>(), length)
            };
            let allocator = (!failed)
                .then(|| memprof_ledger::parse_malloc_info(&String::from_utf8_lossy(bytes)));
            libc::free(text.cast());
            allocator.flatten()
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod glibc {
    pub fn statistics() -> Option<memprof_ledger::Allocator> {
        None
    }
}
