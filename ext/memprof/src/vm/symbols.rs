//! Functions that libruby exports without declaring them in an installed header, or with other types.
//!
//! They are looked up by name, so that a Ruby that lacks one fails only in the feature that needs it, not when the extension is
//! loaded. The signatures were read in CRuby 3.1.2, 3.3.8, 3.4.8 and 4.0.5 (gc.h, internal/gc.h, internal/imemo.h, debug.h).

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use rb_sys::{VALUE, rb_trace_arg_t};

/// Called with `(start, end, stride, data)` for each heap page; a nonzero result ends the walk.
pub type EachObjects = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut c_void) -> c_int;
/// A hook registered with RUBY_EVENT_HOOK_FLAG_RAW_ARG (rb_event_hook_raw_arg_func_t in vm_trace.c).
pub type RawHook = unsafe extern "C" fn(VALUE, *mut rb_trace_arg_t);
/// A postponed job.
pub type Job = unsafe extern "C" fn(*mut c_void);

/// The functions; `None` for those missing in this Ruby.
pub struct Symbols {
    /// All versions. ruby/debug.h declares it for hooks with ordinary arguments, and its flags, a set of bits, as an enum.
    pub add_event_hook: Option<unsafe extern "C" fn(RawHook, u32, VALUE, c_uint)>,
    /// All versions; declared like its counterpart.
    pub remove_event_hook: Option<unsafe extern "C" fn(RawHook) -> c_int>,
    /// All versions.
    pub each_objects: Option<unsafe extern "C" fn(EachObjects, *mut c_void)>,
    /// All versions. Crashes when given a dead object, or a T_NODE.
    pub memsize_of: Option<unsafe extern "C" fn(VALUE) -> usize>,
    /// All versions: the line of an iseq's instruction, by its offset in words. Allocates nothing.
    pub iseq_line_no: Option<unsafe extern "C" fn(VALUE, usize) -> c_uint>,
    /// All versions: name of an imemo type, such as "iseq".
    pub imemo_name: Option<unsafe extern "C" fn(c_int) -> *const c_char>,
    /// 3.2 and later; in 3.1 every slot has 40 bytes.
    pub slot_size: Option<unsafe extern "C" fn(VALUE) -> usize>,
    /// 3.4 and later.
    pub garbage_object_p: Option<unsafe extern "C" fn(VALUE) -> bool>,
    /// Whether the last marking GC marked an object, for Rubies without `garbage_object_p`.
    pub marked_object_p: Option<unsafe extern "C" fn(VALUE) -> c_int>,
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
    /// 3.1 and later: the variables with the VM, and with the main Ractor while it is alone.
    pub current_vm: Option<*const usize>,
    /// See above.
    pub main_ractor: Option<*const usize>,
    /// All versions: the variable with the events that have hooks.
    pub event_flags: Option<*const u32>,
    /// The class Ractor.
    pub ractor_class: Option<*const VALUE>,
    /// All versions. Aborts the process when called during a GC.
    pub reachable_from: Option<unsafe extern "C" fn(VALUE, Reachable, *mut c_void)>,
    /// All versions. As above; the first argument of the callback is the category.
    pub reachable_from_root: Option<unsafe extern "C" fn(RootReachable, *mut c_void)>,
    /// All versions. Unlike rb_hash_foreach it doesn't change the iteration level of the hash.
    pub hash_foreach: Option<unsafe extern "C" fn(VALUE, EachEntry, usize)>,
    /// 3.1 to 3.4: names of the GC flags that are set. Its last argument is the capacity of the array.
    pub gc_flags: Option<unsafe extern "C" fn(VALUE, *mut rb_sys::ID, usize) -> usize>,
    /// 4.0: the same with values; the array is terminated by a name of 0.
    pub gc_metadata: Option<unsafe extern "C" fn(VALUE) -> *const (rb_sys::ID, VALUE)>,
    /// 3.2 to 3.4: called with struct rb_shape *.
    pub each_shape: Option<unsafe extern "C" fn(EachShape, *mut c_void)>,
    /// 4.0: called with the shape id.
    pub each_shape_id: Option<unsafe extern "C" fn(EachShapeId, *mut c_void)>,
    /// 3.2 to 3.4: id of a struct rb_shape *.
    pub shape_id: Option<unsafe extern "C" fn(*const c_void) -> u32>,
    /// 3.2 and later: shape id of an object.
    pub object_shape_id: Option<unsafe extern "C" fn(VALUE) -> u32>,
    /// 3.2 and later: takes a struct rb_shape *, since 4.0 a shape id.
    pub shape_depth: Option<unsafe extern "C" fn(usize) -> usize>,
    /// As above.
    pub shape_edges_count: Option<unsafe extern "C" fn(usize) -> usize>,
    /// As above.
    pub shape_memsize: Option<unsafe extern "C" fn(usize) -> usize>,
    /// 4.0: the table of shapes; its first word is the address of the array.
    pub shape_tree: Option<*const *const c_void>,
    /// 3.2 to 3.4: true if the object's instance variables are in a hash table.
    pub shape_too_complex: Option<unsafe extern "C" fn(VALUE) -> bool>,
    /// 4.0.
    pub class_variation_count: Option<unsafe extern "C" fn(VALUE) -> u32>,
    /// 4.0.
    pub class_singleton_p: Option<unsafe extern "C" fn(VALUE) -> bool>,
    /// 3.2 and later: the object that a singleton class belongs to.
    pub attached_object: Option<unsafe extern "C" fn(VALUE) -> VALUE>,
    /// All versions: calls back for each entry of a table; 0 continues.
    pub table_foreach: Option<unsafe extern "C" fn(*mut c_void, EachTableEntry, usize) -> c_int>,
    /// 3.2 and later: disables GC; a GC in progress is left as it is.
    pub gc_disable_no_rest: Option<unsafe extern "C" fn() -> VALUE>,
    /// 4.0: calls the function while other Ractors are paused.
    pub with_barrier: Option<unsafe extern "C" fn(Locked, *mut c_void) -> VALUE>,
    /// 3.1 and 3.2: takes the VM lock, and stores in the variable how often this Ractor holds it. Without it no other Ractor
    /// gets a heap page, or runs a GC.
    pub vm_lock: Option<unsafe extern "C" fn(*mut c_uint)>,
    /// Its counterpart.
    pub vm_unlock: Option<unsafe extern "C" fn(*mut c_uint)>,
    /// All versions: whether the calling thread is one of Ruby's. May be called on any thread.
    pub native_thread_p: Option<unsafe extern "C" fn() -> c_int>,
    /// All versions: 0 for a Ruby thread that has released the GVL. May be called on any thread.
    pub thread_has_gvl_p: Option<unsafe extern "C" fn() -> c_int>,
    /// 3.2 and later: calls the function when a thread waits for the GVL and when it gets it; returns a handle.
    pub add_thread_hook: Option<unsafe extern "C" fn(ThreadHook, u32, *mut c_void) -> *mut c_void>,
    /// As above; takes the handle.
    pub remove_thread_hook: Option<unsafe extern "C" fn(*mut c_void) -> bool>,
}

/// Called with `(event, thread data, data)`, without the GVL in some events.
pub type ThreadHook = unsafe extern "C" fn(u32, *const c_void, *mut c_void);

/// Called with `(reference, data)`.
pub type Reachable = unsafe extern "C" fn(VALUE, *mut c_void);
/// Called with `(category, reference, data)`.
pub type RootReachable = unsafe extern "C" fn(*const c_char, VALUE, *mut c_void);
/// Called with `(key, value, data)`; 0 continues.
pub type EachEntry = unsafe extern "C" fn(VALUE, VALUE, usize) -> c_int;
/// Called with `(key, value, data)`; 0 continues.
pub type EachTableEntry = unsafe extern "C" fn(usize, usize, usize) -> c_int;
/// Called with `(shape, data)`.
pub type EachShape = unsafe extern "C" fn(*const c_void, *mut c_void);
/// Called with `(shape id, data)`.
pub type EachShapeId = unsafe extern "C" fn(u32, *mut c_void);
/// Called with the data.
pub type Locked = unsafe extern "C" fn(*mut c_void) -> VALUE;

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
            iseq_line_no: function!(
                c"rb_iseq_line_no",
                unsafe extern "C" fn(VALUE, usize) -> c_uint
            ),
            imemo_name: function!(c"rb_imemo_name", unsafe extern "C" fn(c_int) -> *const c_char),
            slot_size: function!(c"rb_gc_obj_slot_size", unsafe extern "C" fn(VALUE) -> usize),
            garbage_object_p: function!(c"rb_objspace_garbage_object_p", unsafe extern "C" fn(VALUE) -> bool),
            marked_object_p: function!(c"rb_objspace_marked_object_p", unsafe extern "C" fn(VALUE) -> c_int),
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
            current_vm: address(c"ruby_current_vm_ptr").map(|address| address.cast_const().cast()),
            main_ractor: address(c"ruby_single_main_ractor").map(|address| address.cast_const().cast()),
            event_flags: address(c"ruby_vm_event_flags").map(|address| address.cast_const().cast()),
            ractor_class: address(c"rb_cRactor").map(|address| address.cast_const().cast()),
            reachable_from: function!(
                c"rb_objspace_reachable_objects_from",
                unsafe extern "C" fn(VALUE, Reachable, *mut c_void)
            ),
            reachable_from_root: function!(
                c"rb_objspace_reachable_objects_from_root",
                unsafe extern "C" fn(RootReachable, *mut c_void)
            ),
            hash_foreach: function!(
                c"rb_hash_stlike_foreach",
                unsafe extern "C" fn(VALUE, EachEntry, usize)
            ),
            gc_flags: function!(
                c"rb_obj_gc_flags",
                unsafe extern "C" fn(VALUE, *mut rb_sys::ID, usize) -> usize
            ),
            gc_metadata: function!(
                c"rb_gc_object_metadata",
                unsafe extern "C" fn(VALUE) -> *const (rb_sys::ID, VALUE)
            ),
            each_shape: function!(c"rb_shape_each_shape", unsafe extern "C" fn(EachShape, *mut c_void)),
            each_shape_id: function!(
                c"rb_shape_each_shape_id",
                unsafe extern "C" fn(EachShapeId, *mut c_void)
            ),
            shape_id: function!(c"rb_shape_id", unsafe extern "C" fn(*const c_void) -> u32),
            object_shape_id: function!(c"rb_obj_shape_id", unsafe extern "C" fn(VALUE) -> u32)
                .or(function!(c"rb_shape_get_shape_id", unsafe extern "C" fn(VALUE) -> u32)),
            shape_depth: function!(c"rb_shape_depth", unsafe extern "C" fn(usize) -> usize),
            shape_edges_count: function!(c"rb_shape_edges_count", unsafe extern "C" fn(usize) -> usize),
            shape_memsize: function!(c"rb_shape_memsize", unsafe extern "C" fn(usize) -> usize),
            shape_tree: address(c"rb_shape_tree").map(|address| address.cast_const().cast()),
            shape_too_complex: function!(
                c"rb_shape_obj_too_complex",
                unsafe extern "C" fn(VALUE) -> bool
            ),
            class_variation_count: function!(
                c"rb_class_variation_count",
                unsafe extern "C" fn(VALUE) -> u32
            ),
            class_singleton_p: function!(c"rb_class_singleton_p", unsafe extern "C" fn(VALUE) -> bool),
            attached_object: function!(c"rb_class_attached_object", unsafe extern "C" fn(VALUE) -> VALUE),
            table_foreach: function!(
                c"rb_st_foreach",
                unsafe extern "C" fn(*mut c_void, EachTableEntry, usize) -> c_int
            ),
            gc_disable_no_rest: function!(c"rb_gc_disable_no_rest", unsafe extern "C" fn() -> VALUE),
            with_barrier: function!(
                c"rb_vm_lock_with_barrier",
                unsafe extern "C" fn(Locked, *mut c_void) -> VALUE
            ),
            vm_lock: function!(c"rb_vm_lock_enter_body", unsafe extern "C" fn(*mut c_uint)),
            vm_unlock: function!(c"rb_vm_lock_leave_body", unsafe extern "C" fn(*mut c_uint)),
            native_thread_p: function!(c"ruby_native_thread_p", unsafe extern "C" fn() -> c_int),
            thread_has_gvl_p: function!(c"ruby_thread_has_gvl_p", unsafe extern "C" fn() -> c_int),
            add_thread_hook: function!(
                c"rb_internal_thread_add_event_hook",
                unsafe extern "C" fn(ThreadHook, u32, *mut c_void) -> *mut c_void
            ),
            remove_thread_hook: function!(
                c"rb_internal_thread_remove_event_hook",
                unsafe extern "C" fn(*mut c_void) -> bool
            ),
        }
    })
}

fn address(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym with the default handle and a NUL-terminated name has no other conditions.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}
