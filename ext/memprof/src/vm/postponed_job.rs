//! A job that the VM runs as soon as Ruby code may run: work requested by a hook, where it is not allowed.

use std::ffi::c_void;
use std::sync::OnceLock;

use super::symbols::symbols;

/// The callback.
type Job = unsafe extern "C" fn(*mut c_void);

/// The only job.
static JOB: OnceLock<Job> = OnceLock::new();

/// Handle of the job on Ruby 3.3 and later, which have a table of 32 for the whole process.
static HANDLE: OnceLock<u32> = OnceLock::new();

/// Sets the job, which runs once for any number of requests. It must not panic.
pub fn init(job: Job) {
    JOB.get_or_init(|| job);
    if let Some(preregister) = symbols().preregister_job {
        // SAFETY: called with the GVL while the extension is loaded; `job` is a function, so it is never freed.
        HANDLE.get_or_init(|| unsafe { preregister(0, job, std::ptr::null_mut()) });
    }
}

/// Asks the VM to run the job. Allocates nothing. Called with the GVL; from Ruby 3.3 on, on any thread.
pub fn request() {
    let symbols = symbols();
    // SAFETY: the first may be called anywhere, the second anywhere with the GVL; the job is a function, so it is never freed.
    unsafe {
        match (HANDLE.get(), symbols.trigger_job, symbols.register_job) {
            (Some(handle), Some(trigger), _) => trigger(*handle),
            (_, _, Some(register)) => {
                if let Some(job) = JOB.get() {
                    register(0, *job, std::ptr::null_mut());
                }
            }
            _ => {}
        }
    }
}
