//! `Memprof::Native`: sessions by number. Its callers in `lib/` validate arguments and are documented.

use magnus::rb_sys::AsRawValue;
use magnus::{Error, Module, Object, RArray, RModule, RObject, Ruby, Value, function};
use memprof_profile::growth;
use memprof_profile::sessions::SessionId;

use super::count_objects;
use super::native_profile::NativeProfile;
use crate::vm::signals::Disposition;
use crate::vm::{
    after_fork, contents, entry, frame_keys, guard, naming, peak, ractors, sessions, signals,
    tracker,
};

pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_class("Guard", ruby.class_object())?;
    guard::init(ruby)?;
    naming::init();
    entry::init(ruby);
    after_fork::init();
    native.define_singleton_method("open", function!(open, 6))?;
    native.define_singleton_method("open_for", function!(open_for, 7))?;
    native.define_singleton_method("note_for", function!(note_for, 2))?;
    native.define_singleton_method("close_for", function!(close_for, 1))?;
    native.define_singleton_method("watch_peak", function!(watch_peak, 1))?;
    native.define_singleton_method("finish", function!(finish, 1))?;
    native.define_singleton_method("close", function!(close, 1))?;
    native.define_singleton_method("stats", function!(stats, 1))?;
    native.define_singleton_method("stats_text", function!(stats_text, 3))?;
    native.define_singleton_method("counts", function!(counts, 2))?;
    native.define_singleton_method("live_sites", function!(live_sites, 2))?;
    native.define_singleton_method("contents", function!(contents, 1))?;
    native.define_singleton_method("mark", function!(sessions::mark, 1))?;
    native.define_singleton_method("marks", function!(marks, 1))?;
    native.define_singleton_method("nearest_class", function!(nearest_class, 3))?;
    native.define_singleton_method("profile", function!(profile, 4))?;
    native.define_singleton_method("fit", function!(fit, 1))?;
    native.define_singleton_method("acceleration", function!(acceleration, 1))?;
    native.define_singleton_method("sessions", function!(sessions::count, 0))?;
    native.define_singleton_method("memsize", function!(sessions::memsize, 0))?;
    native.define_singleton_method("gc_name", function!(sessions::gc_name, 0))?;
    native.define_singleton_method("ractors_seen?", function!(tracker::ractors_seen, 0))?;
    native.define_singleton_method("avoid_ractors", function!(ractors::avoid, 0))?;
    native.define_singleton_method("ractor_starts", function!(ractors::starts, 0))?;
    native.define_singleton_method("ractor_started", function!(ractors::started, 0))?;
    native.define_singleton_method("ractors_doubt", function!(ractors::doubt, 0))?;
    native.define_singleton_method("ractor_alone", function!(ractors::alone, 1))?;
    native.define_singleton_method("incomplete?", function!(incomplete, 1))?;
    native.define_singleton_method("broken?", function!(crate::vm::hooks::broken, 0))?;
    native.define_singleton_method(
        "take_finalized",
        function!(crate::vm::frees::take_finalized, 0),
    )?;
    native.define_singleton_method("clear_stack", function!(clear_stack, 0))?;
    native.define_singleton_method("run_deep", function!(run_deep, 0))?;
    native.define_singleton_method("gem_of", function!(gem_of, 1))?;
    native.define_singleton_method("application?", function!(is_application, 1))?;
    native.define_singleton_method("short_path", function!(short_path, 1))?;
    native.define_singleton_method("library_path", function!(library_path, 1))?;
    native.define_singleton_method("own_file=", function!(own_file, 1))?;
    native.define_singleton_method("signal_owner", function!(signal_owner, 1))?;
    native.define_singleton_method("quiet", function!(quiet, 0))
}

/// Opens a session for a Memprof::Session, and stores its number there; closes its previous session. This is atomic: if the
/// number were returned, an exception from another thread or a signal could come before the caller has it, and the
/// session could never be closed.
fn open(
    holder: RObject,
    by_thread: bool,
    sample: u32,
    stack: u32,
    strings: bool,
    identities: bool,
) -> Result<(), Error> {
    let before = number(holder)?;
    let id = sessions::open(by_thread, sample, stack, strings, identities);
    if let Err(error) = holder.ivar_set(NUMBER, id.0) {
        sessions::close(id);
        return Err(error);
    }
    if let Some(before) = before {
        if sessions::lasts(before) {
            sessions::let_last(id);
        }
        sessions::close(before);
    }
    Ok(())
}

/// Instance variable of a Memprof::Session with its number; nil while it is closed.
const NUMBER: &str = "@id";

fn number(holder: RObject) -> Result<Option<SessionId>, Error> {
    Ok(holder.ivar_get::<_, Option<u64>>(NUMBER)?.map(SessionId))
}

/// Instance variable of a module with its Memprof::Session; nil or a closed one if it has none.
const SESSION: &str = "@session";

fn open_session(owner: RModule) -> Result<Option<RObject>, Error> {
    let session: Option<RObject> = owner.ivar_get(SESSION)?;
    match session {
        Some(session) if number(session)?.is_some() => Ok(Some(session)),
        _ => Ok(None),
    }
}

/// Opens a session for a module, unless it already has an open one: then returns false. Atomic without a lock, as a signal
/// handler may do the same at any moment.
fn open_for(
    owner: RModule,
    holder: RObject,
    by_thread: bool,
    sample: u32,
    stack: u32,
    strings: bool,
    identities: bool,
) -> Result<bool, Error> {
    let first = note_for(owner, holder)?;
    if first {
        open(holder, by_thread, sample, stack, strings, identities)?;
        if let Some(id) = number(holder)? {
            sessions::let_last(id);
        }
    }
    Ok(first)
}

/// Assigns a session to a module, unless it already has an open one: then returns false.
fn note_for(owner: RModule, holder: RObject) -> Result<bool, Error> {
    let first = open_session(owner)?.is_none();
    if first {
        owner.ivar_set(SESSION, holder)?;
    }
    Ok(first)
}

/// Closes the session of a module; false if it has no open one.
fn close_for(owner: RModule) -> Result<bool, Error> {
    let Some(session) = open_session(owner)? else {
        return Ok(false);
    };
    close(session)?;
    owner.ivar_set(SESSION, ())?;
    Ok(true)
}

fn incomplete(id: u64) -> bool {
    sessions::is_incomplete(SessionId(id))
}

fn watch_peak(id: u64) {
    peak::watch(SessionId(id));
}

fn finish(id: u64) {
    sessions::finish(SessionId(id));
}

/// Closes the session of a Memprof::Session and clears its number. A second call does nothing.
fn close(holder: RObject) -> Result<(), Error> {
    if let Some(id) = number(holder)? {
        sessions::close(id);
        holder.ivar_set(NUMBER, ())?;
    }
    Ok(())
}

fn stats(ruby: &Ruby, id: u64) -> Result<RArray, Error> {
    tracker::suspended(|| {
        let rows = sessions::stats(SessionId(id))
            .map_err(|raised| count_objects::failure(ruby, raised.to_string()))?;
        let array = ruby.ary_new_capa(rows.len());
        for row in rows {
            array.push((row.objects, row.file, row.line, row.class))?;
        }
        Ok(array)
    })
}

/// Live objects as text, a line for each place and class, at most `limit`.
fn stats_text(
    ruby: &Ruby,
    id: u64,
    limit: Option<usize>,
    heading: String,
) -> Result<String, Error> {
    tracker::suspended(|| sessions::stats_text(SessionId(id), limit, &heading))
        .map_err(|raised| count_objects::failure(ruby, raised.to_string()))
}

/// Objects by place and class, with the numbers of anonymous classes for [`nearest_class`].
fn counts(ruby: &Ruby, id: u64, retained: bool) -> Result<RArray, Error> {
    tracker::suspended(|| {
        let rows = sessions::counts(SessionId(id), retained)
            .map_err(|raised| count_objects::failure(ruby, raised.to_string()))?;
        let array = ruby.ary_new_capa(rows.len());
        for row in rows {
            let identity = (row.identity != 0).then_some(row.identity);
            let amounts = [row.allocated, row.retained];
            let [allocated, retained] = amounts.map(|amount| (amount.objects, amount.bytes));
            let place = (row.file, row.line, row.class, identity);
            array.push((row.live, place, allocated, retained))?;
        }
        Ok(array)
    })
}

/// Sites with most bytes in objects that were alive at the last GC, largest first: bytes, objects, mean and largest age, and the
/// place; then the number of all sites, and their bytes and objects.
fn live_sites(ruby: &Ruby, id: u64, most: usize) -> Result<RArray, Error> {
    tracker::suspended(|| {
        let found = sessions::live_sites(SessionId(id), most)
            .map_err(|raised| count_objects::failure(ruby, raised.to_string()))?;
        let array = ruby.ary_new_capa(found.largest.len());
        for row in found.largest {
            let place = (row.file, row.line, row.class);
            array.push((row.live.bytes, row.live.objects, row.mean_age, row.oldest, place))?;
        }
        let answer = ruby.ary_new_capa(2);
        answer.push(array)?;
        answer.push((found.sites, found.live.bytes, found.live.objects))?;
        Ok(answer)
    })
}

/// Objects by place and class as in [`counts`], each with the contents of its live objects; and the older containers whose
/// contents have grown since the first call: number, class, bytes grown, and address.
fn contents(ruby: &Ruby, id: u64) -> Result<RArray, Error> {
    tracker::suspended(|| {
        let (rows, grown) = contents::of_session(SessionId(id))
            .map_err(|raised| count_objects::failure(ruby, raised.to_string()))?;
        let array = ruby.ary_new_capa(rows.len());
        for row in rows.into_iter().filter(|row| row.retained.objects > 0) {
            let identity = (row.identity != 0).then_some(row.identity);
            let place = (row.file, row.line, row.class, identity);
            array.push((row.retained.objects, place, row.retained.bytes))?;
        }
        let older = ruby.ary_new_capa(grown.len());
        for container in grown {
            older.push((container.number, container.class, container.bytes, container.address))?;
        }
        Ok(ruby.ary_new_from_values(&[array, older]))
    })
}

/// Objects by mark: allocated, retained, and instruction sequences among these.
fn marks(ruby: &Ruby, id: u64) -> Result<RArray, Error> {
    tracker::suspended(|| {
        let rows = sessions::marks(SessionId(id))
            .map_err(|raised| count_objects::failure(ruby, raised.to_string()))?;
        let array = ruby.ary_new_capa(rows.len());
        for row in rows {
            let amounts = [row.allocated, row.retained, row.code];
            let [allocated, retained, code] = amounts.map(|amount| (amount.objects, amount.bytes));
            array.push((row.mark, allocated, retained, code))?;
        }
        Ok(array)
    })
}

/// Index of the nearest of `modules` to the anonymous class with this number; nil if it inherits from none of them.
fn nearest_class(identity: u32, modules: RArray, exact: bool) -> Option<usize> {
    let addresses: Vec<_> = modules.into_iter().map(|module| module.as_raw()).collect();
    sessions::nearest(identity, &addresses, exact)
}

fn profile(
    ruby: &Ruby,
    id: u64,
    memprof: String,
    runtime: String,
    command: String,
) -> Result<NativeProfile, Error> {
    let profile =
        tracker::suspended(|| sessions::profile(SessionId(id), memprof, runtime, command));
    profile
        .map_err(|raised| count_objects::failure(ruby, raised.to_string()))?
        .map(NativeProfile::new)
        .ok_or_else(|| Error::new(ruby.exception_arg_error(), "the session is closed"))
}

/// Slope per run, its lower bound, and whether growth is significant, for each series of counts.
fn fit(series: Vec<Vec<u64>>) -> Vec<(f64, f64, bool)> {
    let fits = series.iter().map(|counts| growth::fit(counts));
    fits.map(|fit| (fit.slope, fit.low, fit.grows)).collect()
}

/// Below 0 if the growth of a series of counts slows down.
fn acceleration(counts: Vec<u64>) -> f64 {
    growth::acceleration(&counts)
}

/// Bytes cleared by [`clear_stack`]. A fiber's machine stack may be only a few times larger.
const STALE_STACK: usize = 64 * 1024;

/// Clears the machine stack below the caller: the GC scans it conservatively, and takes values left behind by returned
/// functions for references.
#[inline(never)]
fn clear_stack() {
    let mut area = [0u8; STALE_STACK];
    std::hint::black_box(&mut area);
}

/// Bytes of the machine stack between the caller of [`run_deep`] and its block: more than the frames of a call of
/// [`clear_stack`], which are not cleared.
const BELOW_CALLER: usize = 4 * 1024;

/// Yields so deep in the machine stack that [`clear_stack`], called by the same caller afterwards, clears everything the block
/// left there.
#[inline(never)]
fn run_deep(ruby: &Ruby) -> Result<Value, Error> {
    let mut area = [0u8; BELOW_CALLER];
    std::hint::black_box(&mut area);
    let value = ruby.yield_values(());
    std::hint::black_box(&mut area);
    value
}

fn gem_of(path: String) -> String {
    memprof_paths::guess_gem(&path).to_owned()
}

fn is_application(path: String) -> bool {
    memprof_paths::is_application(&path)
}

fn short_path(path: String) -> String {
    memprof_paths::short_path(&path).into_owned()
}

fn library_path(path: String) -> Option<String> {
    memprof_paths::library_path(&path).map(std::borrow::Cow::into_owned)
}

/// Sets the path of memprof's own Ruby files.
fn own_file(path: String) {
    frame_keys::set_own(&path);
}

/// Handler of a signal: "default", "ignored", "ruby", or "other" if C code has installed one.
fn signal_owner(ruby: &Ruby, signal: i32) -> Result<&'static str, Error> {
    match signals::disposition(signal) {
        Ok(Disposition::Default) => Ok("default"),
        Ok(Disposition::Ignored) => Ok("ignored"),
        Ok(Disposition::Ruby) => Ok("ruby"),
        Ok(Disposition::Other) => Ok("other"),
        Err(error) => Err(Error::new(ruby.exception_arg_error(), error.to_string())),
    }
}

/// Yields; allocations of this thread are not recorded meanwhile.
fn quiet(ruby: &Ruby) -> Result<Value, Error> {
    tracker::suspended(|| ruby.yield_values(()))
}
