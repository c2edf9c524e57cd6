//! `Memprof::Native::Agent`: the always-on sampler.

use magnus::rb_sys::AsRawValue;
use magnus::{Error, Module, Object, RArray, RModule, Ruby, function};
use memprof_profile::profile::Meta;
use memprof_profile::samples::RowFacts;

use super::native_profile::NativeProfile;
use crate::vm::agent::{self, alive};
use crate::vm::tracker;

pub fn init(native: RModule) -> Result<(), Error> {
    let module = native.define_module("Agent")?;
    module.define_singleton_method("start", function!(start, 3))?;
    module.define_singleton_method("stop", function!(agent::stop, 0))?;
    module.define_singleton_method("running?", function!(agent::is_running, 0))?;
    module.define_singleton_method("broken?", function!(agent::broken, 0))?;
    module.define_singleton_method("interval", function!(interval, 3))?;
    module.define_singleton_method("after_fork", function!(after_fork, 0))?;
    module.define_singleton_method("verified?", function!(alive::verified, 0))?;
    module.define_singleton_method("expect", function!(expect, 2))?;
    module.define_singleton_method("check", function!(alive::check, 0))
}

fn start(ruby: &Ruby, share: f64, stack: usize, budget: f64) -> Result<bool, Error> {
    agent::start(share, stack, budget)
        .map_err(|why| Error::new(ruby.exception_runtime_error(), why))
}

fn after_fork(ruby: &Ruby) -> Result<(), Error> {
    agent::after_fork_in_child().map_err(|why| Error::new(ruby.exception_runtime_error(), why))
}

/// Prepares a check of which objects a GC marks.
fn expect(alive: RArray, dead: RArray) -> Result<(), Error> {
    let addresses = |objects: RArray| -> Vec<rb_sys::VALUE> {
        objects.into_iter().map(|object| object.as_raw()).collect()
    };
    alive::expect(&addresses(alive), &addresses(dead));
    dead.clear()
}

/// Ends an interval. Returns the profile, numbers in the order of `Memprof::Agent::Sampler`, errors and ages of each site; nil
/// if the sampler does not run.
fn interval(
    ruby: &Ruby,
    memprof: String,
    runtime: String,
    command: String,
) -> Result<Option<RArray>, Error> {
    let directory = std::env::current_dir();
    let meta = Meta {
        runtime,
        memprof,
        command,
        directory: directory.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        ..Meta::default()
    };
    let Some(ended) = agent::interval(meta) else {
        return Ok(None);
    };
    tracker::suspended(|| {
        let estimates = ended.estimates;
        let errors = ruby.ary_new_capa(estimates.rows.len());
        let ages = ruby.ary_new_capa(estimates.rows.len());
        for RowFacts { allocated, live, mean_age, oldest } in &estimates.rows {
            errors.push((
                allocated.objects_error,
                allocated.bytes_error,
                live.objects_error,
                live.bytes_error,
            ))?;
            ages.push((*mean_age, *oldest))?;
        }
        let numbers = ruby.ary_new();
        numbers.push(ended.started_at)?;
        numbers.push(ended.duration)?;
        numbers.push(ended.gc_time)?;
        numbers.push(estimates.taken)?;
        numbers.push(estimates.live)?;
        numbers.push(estimates.dropped)?;
        numbers.push(ended.cpu)?;
        numbers.push(ended.memory)?;
        let result = ruby.ary_new();
        result.push(NativeProfile::new(estimates.profile))?;
        result.push(numbers)?;
        result.push(errors)?;
        result.push(ages)?;
        Ok(Some(result))
    })
}
