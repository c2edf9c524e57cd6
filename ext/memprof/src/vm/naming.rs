//! Qualified names of methods, such as `Cache#fetch`. Resolving one allocates, which is forbidden in an allocation hook. So the
//! hook lists frames ([`super::frames`]), and a postponed job resolves their names.

use std::ffi::c_void;

use memprof_profile::sites::FrameId;
use rb_sys::VALUE;

use super::agent;
use super::peak;
use super::postponed_job;
use super::protect::protect;
use super::ruby_object::text;
use super::tracker;

/// Registers the job. Called once, while the extension is loaded.
pub fn init() {
    postponed_job::init(job);
}

unsafe extern "C" fn job(_: *mut c_void) {
    // A panic here would abort the process; none is expected, and missing names need no report.
    let _ = std::panic::catch_unwind(|| {
        name_frames();
        peak::measure();
        agent::job();
    });
}

/// Resolves the pending names. Not to be called inside [`tracker::with`].
pub fn name_frames() {
    while let Some((frame, id)) =
        tracker::with(|tracker| tracker.frames.unnamed.last().copied()).flatten()
    {
        let name = tracker::suspended(|| qualified_name(frame));
        tracker::with(|tracker| finish(tracker, frame, id, name));
    }
}

/// The frame remains in the list, and so marked, until it is named. Naming it may have added others.
fn finish(tracker: &mut tracker::Tracker, frame: VALUE, id: FrameId, name: Option<String>) {
    let unnamed = &mut tracker.frames.unnamed;
    if let Some(at) = unnamed.iter().rposition(|(other, _)| *other == frame) {
        unnamed.swap_remove(at);
    }
    if let Some(name) = name {
        tracker.recorder.sites.name_method(id, name);
    }
}

/// The qualified name of a method. `frame` is alive. Not to be called inside [`tracker::with`].
pub fn qualified_name(frame: VALUE) -> Option<String> {
    // SAFETY: a frame that the guard marks, so alive; called outside hooks, where allocating is allowed.
    let name = protect(|| unsafe { rb_sys::rb_profile_frame_qualified_method_name(frame) }).ok()?;
    // SAFETY: nil or a String, whose bytes are copied before anything else happens.
    unsafe { text(name) }
}
