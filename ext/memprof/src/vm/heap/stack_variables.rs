//! Local variables by name, in the frames of a thread or a suspended fiber.
//!
//! The stack is copied before it is read, so an unexpected struct layout just loses labels and doesn't crash the process.

use memprof_dump::record::Label;
use rb_sys::{ID, VALUE};
use rustc_hash::FxHashSet;

use super::copy_memory::copy_words;
use super::walk::Walk;
use super::{imemo, ruby_value, typed_data};
use crate::vm::control_frames::{self, FrameWords};
use crate::vm::frame_keys;
use crate::vm::ruby_object::Flags;

/// Words of struct rb_thread_struct to search for the address of a context.
const WORDS_OF_THREAD: usize = 16;
/// Words of a fiber's struct to search for an inline context: it is longer in all versions.
const WORDS_OF_FIBER: usize = 64;
/// Words of a context to read: stack, size, innermost frame.
const WORDS_OF_CONTEXT: usize = 3;
/// Words between an environment's variables and the word that it is referenced by: `me` or `cref`, and the block's environment
/// (VM_ENV_DATA_SIZE, vm_core.h).
const BEFORE_FLAGS: usize = 2;
/// Maximum frames to read: infinite recursion has 10,000 and more.
const MOST_FRAMES: usize = 1_000;

/// Labels of the references from frames of a thread or a fiber: variables and receivers.
///
/// # Safety
/// `object` is a Thread or a Fiber of the walk; `walk.references` has what it refers to.
pub unsafe fn label(walk: &mut Walk, object: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    let (Some(data), Some(locals)) = (typed_data::data(object), walk.data_types.locals) else {
        return;
    };
    let kind = typed_data::data_type(object) as usize;
    let Some(stack) =
        (if kind == walk.data_types.thread { stack_of_thread(data) } else { stack_of_fiber(data) })
    else {
        return;
    };
    let references: FxHashSet<VALUE> = walk.references.iter().copied().collect();
    let mut seen = FxHashSet::default();
    let receiver = Label::Role(walk.names.word("self"));
    for frame in stack.frames().take(MOST_FRAMES) {
        // SAFETY: what an object of the walk refers to is an object.
        if !references.contains(&frame.iseq) || !unsafe { is_iseq(frame.iseq) } {
            continue;
        }
        // SAFETY: an iseq that runs has a path and a name, and nothing frees it during a walk.
        let (ids, path, method) = unsafe {
            (
                locals.names(frame.iseq),
                walk.names.string(rb_sys::rb_profile_frame_path(frame.iseq)),
                walk.names.string(rb_sys::rb_profile_frame_base_label(frame.iseq)),
            )
        };
        let (Some(path), Some(method)) = (path, method) else {
            continue;
        };
        if frame_keys::is_own(walk.names.tables.name(path)) {
            continue;
        }
        labels.push((receiver, frame.receiver));
        let values = stack.variables(&frame, ids).unwrap_or_default();
        for (id, value) in ids.iter().zip(values) {
            // Variables added by the compiler have no name.
            let Some(variable) = walk.names.named(*id) else {
                continue;
            };
            // A recursive method has each variable many times: the innermost one gets the name.
            if seen.insert((variable, method)) {
                let tables = &mut walk.names.tables;
                let text = format!("{} in {}", tables.name(variable), tables.name(method));
                labels.push((Label::Local(tables.intern(&text)), *value));
            }
        }
    }
}

/// # Safety
/// `object` is an object of the walk.
unsafe fn is_iseq(object: VALUE) -> bool {
    // SAFETY: the caller vouches.
    let flags = unsafe { Flags::of(object) };
    flags.is(rb_sys::ruby_value_type::RUBY_T_IMEMO) && flags.imemo_type() == imemo::ISEQ
}

fn stack_of_thread(data: usize) -> Option<Stack> {
    let words = copy_words(data, WORDS_OF_THREAD)?;
    let contexts = words.into_iter().filter(|word| ruby_value::is_address(*word));
    contexts
        .filter_map(|context| copy_words(context as usize, WORDS_OF_CONTEXT))
        .find_map(|context| Stack::copy(&context))
}

fn stack_of_fiber(data: usize) -> Option<Stack> {
    let words = copy_words(data, WORDS_OF_FIBER)?;
    words.windows(WORDS_OF_CONTEXT).find_map(Stack::copy)
}

/// The used part of a VM stack: values grow up from its start, frames down from its end.
struct Stack {
    start: usize,
    values: Vec<u64>,
    /// Innermost first.
    frames: Vec<u64>,
}

impl Stack {
    /// Copies the stack of a context; `None` if the words are not a context with frames.
    fn copy(context: &[u64]) -> Option<Stack> {
        let &[start, size, first] = context else {
            return None;
        };
        let (start, size, first) = (start as usize, size as usize, first as usize);
        let bounds = control_frames::bounds(start, size, first)?;
        let frames = copy_words(first, (bounds.end - first) / 8)?;
        let top = FrameWords::each(&frames).next()?.stack_pointer;
        if top % 8 != 0 || !(start..=first).contains(&top) {
            return None;
        }
        Some(Stack { start, values: copy_words(start, (top - start) / 8)?, frames })
    }

    fn frames(&self) -> impl Iterator<Item = FrameWords> {
        FrameWords::each(&self.frames)
    }

    /// Values of a frame's variables while they are on the stack: those of a block that became a Proc are in a separate object.
    /// Also `None` for a method with the parameter `...`, whose arguments are among them since Ruby 3.4.
    fn variables(&self, frame: &FrameWords, ids: &[ID]) -> Option<&[VALUE]> {
        if ids.is_empty() || ids.contains(&forwarded_arguments()) {
            return None;
        }
        let flags = frame.environment.checked_sub(self.start)? / 8;
        if *self.values.get(flags)? & control_frames::C_FRAME != 0 {
            return None;
        }
        let end = flags.checked_sub(BEFORE_FLAGS)?;
        self.values.get(end.checked_sub(ids.len())?..end)
    }
}

/// The name of the parameter `...`.
fn forwarded_arguments() -> ID {
    static NAME: std::sync::OnceLock<ID> = std::sync::OnceLock::new();
    // SAFETY: the name of an operator is there since the VM started, and is looked up without allocating.
    *NAME.get_or_init(|| unsafe { rb_sys::rb_intern2(c"...".as_ptr(), 3) })
}
