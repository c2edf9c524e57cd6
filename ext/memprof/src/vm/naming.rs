//! Qualified names of methods, as `Cache#fetch`. Asking for one allocates, which a birth hook may not. So frames are
//! noted there, and asked for their names by a postponed job, which the VM runs as soon as it may.

use std::ffi::c_void;
use std::sync::OnceLock;

use memprof_profile::sites::FrameId;
use rb_sys::VALUE;

use super::classes::text;
use super::protect::protect;
use super::symbols::symbols;
use super::tracker;

/// Handle of the job on Ruby 3.3 and later, which have a table of 32 for the whole process.
static JOB: OnceLock<u32> = OnceLock::new();

/// Registers the job where the VM wants that done beforehand.
pub fn init() {
    if let Some(preregister) = symbols().preregister_job {
        // SAFETY: called with the GVL while the extension is loaded; `job` is there for as long as the process.
        JOB.get_or_init(|| unsafe { preregister(0, job, std::ptr::null_mut()) });
    }
}

/// Asks the VM to run the job. Allocates nothing.
pub fn request() {
    let symbols = symbols();
    // SAFETY: both functions may be called anywhere with the GVL; `job` is there for as long as the process.
    unsafe {
        match (JOB.get(), symbols.trigger_job, symbols.register_job) {
            (Some(handle), Some(trigger), _) => trigger(*handle),
            (_, _, Some(register)) => {
                register(0, job, std::ptr::null_mut());
            }
            _ => {}
        }
    }
}

unsafe extern "C" fn job(_: *mut c_void) {
    // A panic here would end the process; there is none to expect, and nothing to tell if names are missing.
    let _ = std::panic::catch_unwind(name_frames);
}

/// Asks for the names that are still to be asked for. Not to be called inside [`tracker::with`].
pub fn name_frames() {
    while let Some((frame, id)) =
        tracker::with(|tracker| tracker.frames.unnamed.last().copied()).flatten()
    {
        let name = tracker::suspended(|| qualified_name(frame));
        tracker::with(|tracker| finish(tracker, frame, id, name));
    }
}

/// The frame stays in the list, and so marked, until it has its name. Naming it may have added others.
fn finish(tracker: &mut tracker::Tracker, frame: VALUE, id: FrameId, name: Option<String>) {
    let unnamed = &mut tracker.frames.unnamed;
    if let Some(at) = unnamed.iter().rposition(|(other, _)| *other == frame) {
        unnamed.swap_remove(at);
    }
    if let Some(name) = name {
        tracker.recorder.sites.name_method(id, name);
    }
}

fn qualified_name(frame: VALUE) -> Option<String> {
    // SAFETY: a frame that the guard marks, so alive; called outside hooks, where allocating is allowed.
    let name = protect(|| unsafe { rb_sys::rb_profile_frame_qualified_method_name(frame) }).ok()?;
    // SAFETY: nil or a String, whose bytes are copied before anything else happens.
    unsafe { text(name) }
}
