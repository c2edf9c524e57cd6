//! Internal C types of the VM, and the offsets of their references: words of a struct are read at these offsets, and a label is
//! given only to references reported by the VM. So a wrong offset just loses a label.

use memprof_dump::record::{Label, Value};
use rb_sys::{ID, StableApiDefinition, VALUE, rb_data_type_t, ruby_value_type};
use rustc_hash::FxHashMap;

use super::finalizer_table::FinalizerTable;
use super::locals::LocalTable;
use super::walk::Walk;
use super::{details, imemo, method, ruby_value, stack_variables};
use crate::vm::ruby_object::Flags;

/// Types to look into, by the address of their rb_data_type_t; 0 if there is none.
#[derive(Clone, Default)]
pub struct DataTypes {
    pub proc: usize,
    pub method: usize,
    pub binding: usize,
    pub thread: usize,
    pub enumerator: usize,
    pub fiber: usize,
    /// The table functions of a hash that compares by identity; 0 if unknown.
    pub identity: usize,
    /// Where an iseq stores the names of its local variables.
    pub locals: Option<LocalTable>,
    /// Where the VM stores the finalizers of objects.
    pub finalizers: Option<FinalizerTable>,
    /// Facts about threads collected beforehand: key and JSON.
    pub threads: FxHashMap<u64, Vec<(String, String)>>,
}

/// The source of [`DataTypes`]: one live object of each type.
pub struct Samples {
    pub proc: VALUE,
    pub method: VALUE,
    pub binding: VALUE,
    pub thread: VALUE,
    pub enumerator: VALUE,
    pub fiber: VALUE,
    /// A hash that compares by identity.
    pub identity: VALUE,
    /// A hash that doesn't, and also has a table.
    pub table: VALUE,
}

impl DataTypes {
    pub fn new(samples: &Samples) -> Self {
        DataTypes {
            proc: data_type(samples.proc) as usize,
            method: data_type(samples.method) as usize,
            binding: data_type(samples.binding) as usize,
            thread: data_type(samples.thread) as usize,
            enumerator: data_type(samples.enumerator) as usize,
            fiber: data_type(samples.fiber) as usize,
            // SAFETY: two hashes.
            identity: match unsafe {
                [samples.identity, samples.table].map(|hash| details::compared_by(hash))
            } {
                [Some(identity), Some(table)] if identity != table => identity,
                _ => 0,
            },
            ..DataTypes::default()
        }
    }
}

/// The type of a T_DATA; null if it has none, or if this is not a T_DATA.
pub fn data_type(object: VALUE) -> *const rb_data_type_t {
    let api = rb_sys::stable_api::get_default();
    // SAFETY: an object of the walk, or one that the caller holds.
    unsafe {
        let data =
            ruby_value::is_address(object) && Flags::of(object).is(ruby_value_type::RUBY_T_DATA);
        if data && api.rtypeddata_p(object) {
            api.rtypeddata_type(object)
        } else {
            std::ptr::null()
        }
    }
}

/// False for an object that was allocated and has no struct yet. The VM's functions raise for it.
///
/// # Safety
/// `object` is a typed T_DATA.
unsafe fn is_initialized(object: VALUE) -> bool {
    // SAFETY: the caller vouches.
    !unsafe { rb_sys::stable_api::get_default().rtypeddata_get_data(object) }.is_null()
}

/// Address of the C struct of a typed T_DATA; `None` for anything else.
pub fn data(object: VALUE) -> Option<usize> {
    if data_type(object).is_null() {
        return None;
    }
    // SAFETY: a typed T_DATA.
    let data = unsafe { rb_sys::stable_api::get_default().rtypeddata_get_data(object) };
    (!data.is_null()).then_some(data as usize)
}

/// Reads a word of the C struct of a T_DATA; `None` if it has no struct yet.
///
/// # Safety
/// `object` is a typed T_DATA whose struct has that many words.
pub unsafe fn word(object: VALUE, index: usize) -> Option<VALUE> {
    // SAFETY: the caller vouches.
    unsafe {
        let data = rb_sys::stable_api::get_default().rtypeddata_get_data(object).cast::<VALUE>();
        (!data.is_null()).then(|| *data.add(index))
    }
}

/// Offsets in words. struct rb_block, with which rb_proc_t and rb_binding_t begin: self, ep, code, type (vm_core.h).
const BLOCK_SELF: usize = 0;
const BLOCK_CODE: usize = 2;
const BLOCK_TYPE: usize = 3;
/// enum rb_block_type: iseq and ifunc have a self, the others one word with a Symbol or a Proc.
const BLOCK_SYMBOL: i32 = 2;
const BLOCK_PROC: i32 = 3;
/// struct enumerator (enumerator.c).
const ENUMERATOR: [(usize, &str); 9] = [
    (0, "receiver"),
    (2, "arguments"),
    (3, "fiber"),
    (4, "destination"),
    (5, "lookahead"),
    (6, "feedvalue"),
    (7, "stop_exception"),
    (8, "size"),
    (9, "procs"),
];
const ENUMERATOR_METHOD: usize = 1;

/// Labels of references from a T_DATA of a known type, and facts about it, which are added to the walk's fields.
///
/// # Safety
/// `object` is a T_DATA of the walk; `walk.references` has what it refers to.
pub unsafe fn label(walk: &mut Walk, object: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    let kind = data_type(object) as usize;
    if kind == 0 {
        return;
    }
    // SAFETY: the struct is that of the type.
    unsafe {
        if kind == walk.data_types.proc || kind == walk.data_types.binding {
            block(walk, object, labels);
        } else if kind == walk.data_types.enumerator {
            for (index, name) in ENUMERATOR {
                let role = walk.names.word(name);
                labels.extend(word(object, index).map(|value| (Label::Role(role), value)));
            }
        } else if kind == walk.data_types.method {
            let role = walk.names.word("receiver");
            labels.extend(word(object, 0).map(|value| (Label::Role(role), value)));
        } else if kind == walk.data_types.thread || kind == walk.data_types.fiber {
            stack_variables::label(walk, object, labels);
        }
    }
    for index in 0..walk.references.len() {
        let reference = walk.references[index];
        // SAFETY: what an object of the walk refers to is an object.
        let flags = unsafe { Flags::of(reference) };
        if flags.is(ruby_value_type::RUBY_T_IMEMO) {
            let role = match flags.imemo_type() {
                imemo::ENV => "env",
                imemo::METHOD => "method",
                imemo::ISEQ => "iseq",
                _ => continue,
            };
            labels.push((Label::Role(walk.names.word(role)), reference));
        }
    }
}

/// # Safety
/// As [`label`]; the struct begins with a block.
unsafe fn block(walk: &mut Walk, object: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    // SAFETY: the caller vouches.
    let (receiver, code, kind) = unsafe {
        match (word(object, BLOCK_SELF), word(object, BLOCK_CODE), word(object, BLOCK_TYPE)) {
            (Some(receiver), Some(code), Some(kind)) => (receiver, code, kind as i32),
            _ => return,
        }
    };
    let role = match kind {
        BLOCK_SYMBOL => "symbol",
        BLOCK_PROC => "proc",
        _ => "self",
    };
    labels.push((Label::Role(walk.names.word(role)), receiver));
    if kind < BLOCK_SYMBOL {
        labels.push((Label::Role(walk.names.word("code")), code));
    }
}

/// Facts about a T_DATA of a known type.
///
/// # Safety
/// As [`label`].
pub unsafe fn facts(walk: &mut Walk, object: VALUE) {
    let kind = data_type(object) as usize;
    if kind == 0 {
        return;
    }
    // SAFETY: a typed T_DATA.
    if !unsafe { is_initialized(object) } {
        return;
    }
    if kind == walk.data_types.proc {
        // SAFETY: a Proc.
        let lambda = unsafe { rb_sys::rb_proc_lambda_p(object) } == rb_sys::Qtrue as VALUE;
        walk.field("lambda", if lambda { Value::True } else { Value::False });
    }
    // SAFETY: the struct is that of the type.
    unsafe {
        if kind == walk.data_types.proc || kind == walk.data_types.binding {
            if let (Some(code), Some(block)) = (word(object, BLOCK_CODE), word(object, BLOCK_TYPE))
            {
                if (block as i32) < BLOCK_SYMBOL && walk.references.contains(&code) {
                    imemo::place(walk, code);
                    if kind == walk.data_types.binding {
                        line_of_binding(walk, object);
                    }
                    captured(walk);
                }
            }
        } else if kind == walk.data_types.enumerator {
            if let Some(id) = word(object, ENUMERATOR_METHOD) {
                let name = walk.names.id(id as ID);
                walk.field("method_name", Value::Name(name));
            }
        } else if kind == walk.data_types.method {
            method(walk);
        } else if kind == walk.data_types.fiber {
            let alive = rb_sys::rb_fiber_alive_p(object) == rb_sys::Qtrue as VALUE;
            walk.field("alive", if alive { Value::True } else { Value::False });
        }
    }
    if kind == walk.data_types.thread {
        for (key, json) in walk.data_types.threads.get(&object).cloned().unwrap_or_default() {
            let (name, json) = (walk.names.tables.intern(&key), walk.names.tables.intern(&json));
            walk.fields.push(memprof_dump::record::Field { name, value: Value::Json(json) });
        }
    }
}

/// Words of rb_binding_t after its block: path and line where it was created.
const BINDING_PATH: usize = 4;
const BINDING_LINE: usize = 5;

/// A binding stores the line where it was created, not only the surrounding method.
///
/// # Safety
/// `object` is a Binding of the walk.
unsafe fn line_of_binding(walk: &mut Walk, object: VALUE) {
    // SAFETY: the caller vouches.
    let (Some(path), Some(line)) =
        (unsafe { (word(object, BINDING_PATH), word(object, BINDING_LINE)) })
    else {
        return;
    };
    let line = line as i32;
    if line < 1 || !walk.references.contains(&path) {
        return;
    }
    let key = walk.names.word("source_line");
    for field in walk.fields.iter_mut().filter(|field| field.name == key) {
        field.value = Value::Int(line.into());
    }
}

/// Maximum number of variables written for one proc.
const CAPTURED: usize = 64;

/// Captured variables of a proc or binding, by name: those of the innermost environment it refers to. The references themselves
/// belong to the environment.
unsafe fn captured(walk: &mut Walk) {
    let env = walk.references.iter().copied().find(|reference| {
        // SAFETY: what an object of the walk refers to is an object.
        let flags = unsafe { Flags::of(*reference) };
        flags.is(ruby_value_type::RUBY_T_IMEMO) && flags.imemo_type() == imemo::ENV
    });
    let Some(env) = env else {
        return;
    };
    // SAFETY: an environment.
    let variables = unsafe { imemo::variables(walk, env) };
    if variables.is_empty() {
        return;
    }
    let pairs: Vec<String> = (variables.into_iter().take(CAPTURED))
        .map(|(name, word)| {
            let value = ruby_value::json(&mut walk.names, word);
            let name = serde_json::Value::from(walk.names.tables.name(name));
            format!("{name}:{value}")
        })
        .collect();
    let json = walk.names.tables.intern(&format!("{{{}}}", pairs.join(",")));
    walk.field("captured", Value::Json(json));
}

/// Name and owner of a Method, from the method entry that it refers to.
unsafe fn method(walk: &mut Walk) {
    let entry = walk.references.iter().copied().find(|reference| {
        // SAFETY: what an object of the walk refers to is an object.
        let flags = unsafe { Flags::of(*reference) };
        flags.is(ruby_value_type::RUBY_T_IMEMO) && flags.imemo_type() == imemo::METHOD
    });
    if let Some(entry) = entry {
        // SAFETY: a method entry.
        unsafe { method::facts(walk, entry) };
    }
}
