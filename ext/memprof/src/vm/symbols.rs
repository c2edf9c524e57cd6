//! Functions that libruby exports without declaring them in a header that is installed, or with other types.
//!
//! They are looked up by name, so that a Ruby that lacks one fails softly, in the feature that needs it, and not when
//! the extension is loaded. The signatures were read in CRuby 3.1.2, 3.3.8, 3.4.8 and 4.0.5 (gc.h, internal/gc.h,
//! internal/imemo.h, debug.h).

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use rb_sys::{VALUE, rb_trace_arg_t};

/// Called with `(start, end, stride, data)` for each heap page; a result other than 0 ends the walk.
pub type EachObjects = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut c_void) -> c_int;
/// A hook registered with RUBY_EVENT_HOOK_FLAG_RAW_ARG (rb_event_hook_raw_arg_func_t in vm_trace.c).
pub type RawHook = unsafe extern "C" fn(VALUE, *mut rb_trace_arg_t);
/// A postponed job.
pub type Job = unsafe extern "C" fn(*mut c_void);

/// The functions; `None` for those that this Ruby does not have.
pub struct Symbols {
    /// All versions. ruby/debug.h declares it for hooks with ordinary arguments, and its flags, a set of bits, as an enum.
    pub add_event_hook: Option<unsafe extern "C" fn(RawHook, u32, VALUE, c_uint)>,
    /// All versions; declared like its counterpart.
    pub remove_event_hook: Option<unsafe extern "C" fn(RawHook) -> c_int>,
    /// All versions.
    pub each_objects: Option<unsafe extern "C" fn(EachObjects, *mut c_void)>,
    /// All versions. Crashes when given a dead object, or a T_NODE.
    pub memsize_of: Option<unsafe extern "C" fn(VALUE) -> usize>,
    /// All versions: name of an imemo type, as "iseq".
    pub imemo_name: Option<unsafe extern "C" fn(c_int) -> *const c_char>,
    /// 3.2 and later; in 3.1 every slot has 40 bytes.
    pub slot_size: Option<unsafe extern "C" fn(VALUE) -> usize>,
    /// 3.4 and later.
    pub garbage_object_p: Option<unsafe extern "C" fn(VALUE) -> bool>,
    /// 3.4 and 4.0.
    pub pointer_to_heap_p: Option<unsafe extern "C" fn(VALUE) -> bool>,
    /// 3.4 and 4.0: "default" or "mmtk".
    pub active_gc_name: Option<unsafe extern "C" fn() -> *const c_char>,
    /// 3.3 and later.
    pub preregister_job: Option<unsafe extern "C" fn(c_uint, Job, *mut c_void) -> c_uint>,
    /// 3.3 and later.
    pub trigger_job: Option<unsafe extern "C" fn(c_uint)>,
    /// Up to 4.0; deprecated since 3.3.
    pub register_job: Option<unsafe extern "C" fn(c_uint, Job, *mut c_void) -> c_int>,
    /// The class Ractor.
    pub ractor_class: Option<*const VALUE>,
}

// SAFETY: function addresses, and the address of a variable that the VM writes once while it boots.
unsafe impl Send for Symbols {}
// SAFETY: as for Send.
unsafe impl Sync for Symbols {}

static SYMBOLS: OnceLock<Symbols> = OnceLock::new();

/// The functions of this Ruby.
pub fn symbols() -> &'static Symbols {
    SYMBOLS.get_or_init(|| {
        macro_rules! function {
            ($name:literal, $kind:ty) => {
                // SAFETY: the address is that of the function of this name in libruby, whose signature is the field's
                // type in every version that exports it (see the head of this file).
                address($name).map(|address| unsafe { std::mem::transmute::<*mut c_void, $kind>(address) })
            };
        }
        Symbols {
            add_event_hook: function!(
                c"rb_add_event_hook2",
                unsafe extern "C" fn(RawHook, u32, VALUE, c_uint)
            ),
            remove_event_hook: function!(c"rb_remove_event_hook", unsafe extern "C" fn(RawHook) -> c_int),
            each_objects: function!(c"rb_objspace_each_objects", unsafe extern "C" fn(EachObjects, *mut c_void)),
            memsize_of: function!(c"rb_obj_memsize_of", unsafe extern "C" fn(VALUE) -> usize),
            imemo_name: function!(c"rb_imemo_name", unsafe extern "C" fn(c_int) -> *const c_char),
            slot_size: function!(c"rb_gc_obj_slot_size", unsafe extern "C" fn(VALUE) -> usize),
            garbage_object_p: function!(c"rb_objspace_garbage_object_p", unsafe extern "C" fn(VALUE) -> bool),
            pointer_to_heap_p: function!(c"rb_gc_pointer_to_heap_p", unsafe extern "C" fn(VALUE) -> bool),
            active_gc_name: function!(c"rb_gc_active_gc_name", unsafe extern "C" fn() -> *const c_char),
            preregister_job: function!(
                c"rb_postponed_job_preregister",
                unsafe extern "C" fn(c_uint, Job, *mut c_void) -> c_uint
            ),
            trigger_job: function!(c"rb_postponed_job_trigger", unsafe extern "C" fn(c_uint)),
            register_job: function!(
                c"rb_postponed_job_register_one",
                unsafe extern "C" fn(c_uint, Job, *mut c_void) -> c_int
            ),
            ractor_class: address(c"rb_cRactor").map(|address| address.cast_const().cast()),
        }
    })
}

fn address(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym with the default handle and a NUL-terminated name has no other conditions.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}
