//! Functions to replace, and their replacements.

use std::hint;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// The address of the function behind a replacement.
pub struct Original(AtomicUsize);

impl Original {
    /// An address for the engine to fill in.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it is for statics")]
    pub const fn new() -> Original {
        Original(AtomicUsize::new(0))
    }

    /// The function's address.
    #[inline(always)]
    pub fn get(&self) -> usize {
        match self.0.load(Relaxed) {
            0 => self.wait(),
            address => address,
        }
    }

    /// The address is filled in before any table names the replacement, but on aarch64 another processor may see the table
    /// first.
    #[cold]
    fn wait(&self) -> usize {
        loop {
            match self.0.load(Acquire) {
                0 => hint::spin_loop(),
                address => return address,
            }
        }
    }

    pub(super) fn known(&self) -> Option<usize> {
        Some(self.0.load(Acquire)).filter(|&address| address != 0)
    }

    pub(super) fn set(&self, address: usize) {
        self.0.store(address, Release);
    }
}

/// The objects whose calls a replacement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Any object.
    Any,
    /// The object that contains the interpreter.
    Interpreter,
    /// All other objects.
    Others,
}

/// The address of a replacement.
#[derive(Clone, Copy)]
pub struct Code(*const ());

// SAFETY: the address of a function, which is never written through.
unsafe impl Sync for Code {}

impl Code {
    /// The code at this address, which must be a function with the signature of the hook's symbol.
    #[must_use]
    pub const fn new(address: *const ()) -> Code {
        Code(address)
    }

    pub(super) fn address(self) -> usize {
        self.0 as usize
    }
}

/// One replacement of a function, for one of its possible addresses. A hook has several if a process may have several
/// functions with that name, as with two client libraries.
pub struct Entry {
    /// The callers that it is for.
    pub caller: Caller,
    /// The code called instead.
    pub code: Code,
    /// The replaced function; the engine fills it in.
    pub original: &'static Original,
    /// Functions of the same library that it needs.
    pub companions: &'static [Companion],
}

/// A function that a replacement needs, from the library that defines the replaced function.
pub struct Companion {
    /// Its name.
    pub symbol: &'static str,
    /// Its address; the engine fills it in.
    pub original: &'static Original,
    /// Called if the library lacks the function; without a fallback, nothing is then replaced.
    pub fallback: Option<Code>,
    /// If the library is libc, the function that it calls by that name itself: another library's, if that is preloaded.
    pub as_libc_calls: bool,
}

impl Companion {
    /// A function that the library must have.
    #[must_use]
    pub const fn needed(symbol: &'static str, original: &'static Original) -> Companion {
        Companion { symbol, original, fallback: None, as_libc_calls: false }
    }
}

/// A function to replace.
pub struct Hook {
    /// Its name in the tables.
    pub symbol: &'static str,
    /// Its replacements.
    pub entries: &'static [Entry],
    /// Whether to see calls that its own library makes to it through its own table, too.
    pub own_calls: bool,
    /// Whether to see calls by its address, through libffi, too. The first hook for such a library names a function that the
    /// library is certain to have.
    pub by_address: bool,
}

/// Makes a [`Hook`] from a symbol, its signature, and a replacement body. The closure passed to the body calls the replaced
/// function. `with` lists the companions of both replacements, which the body knows as `VARIANT`.
macro_rules! hook {
    ($symbol:literal, $($rest:tt)*) => {
        $crate::interpose::hook!(with (&[], &[]), $symbol, $($rest)*)
    };
    (with ($first:expr, $second:expr), $symbol:literal, ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)?, |$call:ident| $body:expr) => {{
        static ORIGINALS: [$crate::interpose::Original; 2] = [const { $crate::interpose::Original::new() }; 2];
        // "C-unwind": a thread may be canceled inside.
        unsafe extern "C-unwind" fn replacement<const VARIANT: usize>($($arg: $type),*) $(-> $result)? {
            let $call = || {
                // SAFETY: the engine filled in the address of the function with that name, which has this signature.
                let original = unsafe {
                    std::mem::transmute::<usize, unsafe extern "C-unwind" fn($($type),*) $(-> $result)?>(
                        ORIGINALS[VARIANT].get(),
                    )
                };
                // SAFETY: the arguments are the caller's, who meant to call this function with them.
                unsafe { original($($arg),*) }
            };
            $body
        }
        static ENTRIES: [$crate::interpose::Entry; 2] = [
            $crate::interpose::Entry {
                caller: $crate::interpose::Caller::Any,
                code: $crate::interpose::Code::new(replacement::<0> as *const ()),
                original: &ORIGINALS[0],
                companions: $first,
            },
            $crate::interpose::Entry {
                caller: $crate::interpose::Caller::Any,
                code: $crate::interpose::Code::new(replacement::<1> as *const ()),
                original: &ORIGINALS[1],
                companions: $second,
            },
        ];
        $crate::interpose::Hook { symbol: $symbol, entries: &ENTRIES, own_calls: false, by_address: false }
    }};
}
pub(crate) use hook;

/// Like [`hook!`], for a client library's function, which programs may also call by its address.
macro_rules! client_hook {
    ($($hook:tt)*) => {
        $crate::interpose::Hook { by_address: true, ..$crate::interpose::hook!($($hook)*) }
    };
}
pub(crate) use client_hook;
