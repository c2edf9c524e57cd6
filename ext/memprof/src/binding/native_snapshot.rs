//! `Memprof::Native`: a copy of another process, in which a function of this library is called, or whose memory is read. One
//! at a time, by the thread that began it: the kernel knows a tracer by its thread.

use magnus::{Error, Object, RModule, Ruby};

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub fn init(_: &Ruby, _: RModule) -> Result<(), Error> {
    Ok(())
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub fn init(_: &Ruby, native: RModule) -> Result<(), Error> {
    use magnus::function;

    native.define_singleton_method("ruby_version_of", function!(linux::ruby_version_of, 1))?;
    native.define_singleton_method("snapshot", function!(linux::snapshot, 4))?;
    native.define_singleton_method("image_of_snapshot", function!(linux::image, 2))?;
    native.define_singleton_method("wait_for_snapshot", function!(linux::wait, 1))?;
    native.define_singleton_method("attach", function!(linux::attach, 2))?;
    native.define_singleton_method("attach_again", function!(linux::attach_again, 0))?;
    native.define_singleton_method("drop_snapshot", function!(linux::drop_snapshot, 0))
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod linux {
    use std::cell::RefCell;
    use std::collections::HashSet;
    use std::fs;
    use std::time::{Duration, Instant};

    use magnus::{Error, RArray, Ruby};
    use memprof_image::{Image, Machine, Thread, waiting_threads};
    use memprof_native::process::{
        Answer, Argument, Attachment, Outcome, OwnCopy, Snapshot, SnapshotError, Symbols,
    };

    use super::super::native_image::NativeImage;

    /// Time for a function that takes microseconds, or for a library to be loaded: one that takes longer waits for a lock
    /// that another thread had.
    const SHORT: Duration = Duration::from_secs(3);
    const RTLD_NOW: u64 = libc::RTLD_NOW as u64;
    const NONE: Argument<'_> = Argument::Number(0);

    thread_local! {
        static SNAPSHOT: RefCell<Option<Copy>> = const { RefCell::new(None) };
        static ATTACHMENT: RefCell<Option<Attachment>> = const { RefCell::new(None) };
    }

    /// Why there is no copy, or no answer: a word for the caller, and a text.
    type Failure = (&'static str, String);

    fn failure(error: &SnapshotError) -> Failure {
        let kind = match error {
            SnapshotError::Gone => "gone",
            SnapshotError::Forbidden => "forbidden",
            SnapshotError::Traced => "traced",
            SnapshotError::Foreign => "foreign",
            SnapshotError::Missing(_) => "missing",
            SnapshotError::Refused(_) => "refused",
            SnapshotError::Filtered => "filtered",
            SnapshotError::NoMemory => "no_memory",
            SnapshotError::Busy => "busy",
            SnapshotError::Died(_) => "died",
            _ => "system",
        };
        (kind, error.to_string())
    }

    /// Ruby's version in a process, as `["3.3.8"]`, or why that is not known, as `[:missing, "..."]`.
    pub fn ruby_version_of(ruby: &Ruby, pid: i32) -> Result<RArray, Error> {
        let found = symbols(pid).and_then(|symbols| {
            let mut version = [0; 16];
            symbols.read(symbols.find("ruby_version")?, &mut version)?;
            Ok(version)
        });
        let array = ruby.ary_new();
        match found {
            Ok(version) => {
                let text = version.split(|byte| *byte == 0).next().unwrap_or_default();
                array.push(String::from_utf8_lossy(text).into_owned())?;
            }
            Err(error) => push_failure(ruby, array, failure(&error))?,
        }
        Ok(array)
    }

    /// Copies the process of a thread, and begins to call `memprof_answer_in_copy` of a library there. Returns the pause in
    /// seconds and the process id of the copy, or why there is none.
    pub fn snapshot(
        ruby: &Ruby,
        pid: i32,
        thread: i32,
        library: String,
        request: String,
    ) -> Result<RArray, Error> {
        let array = ruby.ary_new();
        match begin(pid, thread, &library, &request) {
            Ok(snapshot) => {
                array.push(snapshot.pause.as_secs_f64())?;
                array.push(snapshot.pid())?;
                SNAPSHOT.set(Some(Copy::Other(Box::new(snapshot))));
            }
            Err(why) => push_failure(ruby, array, why)?,
        }
        Ok(array)
    }

    fn symbols(pid: i32) -> Result<Symbols, SnapshotError> {
        Symbols::of(pid, &["libruby", "libc.so", "libc-2", "libdl", "ld-musl"])
    }

    fn begin(pid: i32, thread: i32, library: &str, request: &str) -> Result<Snapshot, Failure> {
        let system = |error: SnapshotError| failure(&error);
        let symbols = symbols(pid).map_err(system)?;
        let find = |name| symbols.find(name).map_err(system);
        let (is_ruby, during_gc) = (find("ruby_native_thread_p")?, find("rb_during_gc")?);
        let (dlopen, dlsym) = (find("dlopen")?, find("dlsym")?);
        let mut copy = Snapshot::take(thread).map_err(system)?;
        let mut ask = |function: u64, arguments: [Argument<'_>; 2]| {
            copy.ask(function, arguments, SHORT).map_err(system)
        };
        // Functions of C that answer an int.
        if ask(is_ruby, [NONE, NONE])? as u32 == 0 {
            return Err(("no_ruby", "the thread runs no Ruby".into()));
        }
        if ask(during_gc, [NONE, NONE])? as u32 != 0 {
            return Err(("collecting", "a garbage collection was running".into()));
        }
        let path = Argument::Text(library.as_bytes());
        let handle = ask(dlopen, [path, Argument::Number(RTLD_NOW)])?;
        if handle == 0 {
            let why = ask(find("dlerror")?, [NONE, NONE])?;
            let why = copy.text(why).unwrap_or_default();
            let why = format!("it cannot load memprof: {}", String::from_utf8_lossy(&why));
            return Err(("library", why));
        }
        let name = Argument::Text(b"memprof_answer_in_copy");
        let answer = ask(dlsym, [Argument::Number(handle), name])?;
        if answer == 0 {
            return Err(("library", format!("{library} is another memprof")));
        }
        let text = Argument::Text(request.as_bytes());
        copy.call(answer, [text, NONE]).map_err(system)?;
        Ok(copy)
    }

    /// A copy that is kept until it is dropped: of another process, or of this one.
    pub enum Copy {
        Other(Box<Snapshot>),
        Own(#[expect(dead_code, reason = "it ends when it is dropped")] OwnCopy),
    }

    /// Copies the process of a thread. Returns the pause in seconds and the memory of the copy, which can be asked until the
    /// copy is dropped; or why there is none.
    pub fn image(ruby: &Ruby, pid: u32, thread: i32) -> Result<RArray, Error> {
        let array = ruby.ary_new();
        match copied(pid, thread) {
            Ok((pause, mut image, copy)) => {
                image.pid = Some(pid);
                // A copy has the name of the thread that was copied.
                if let Ok(name) = fs::read_to_string(format!("/proc/{pid}/comm")) {
                    image.command = name.trim_end().to_owned();
                }
                array.push(pause)?;
                array.push(NativeImage::of(ruby, image)?)?;
                SNAPSHOT.set(Some(copy));
            }
            Err(why) => push_failure(ruby, array, why)?,
        }
        Ok(array)
    }

    fn copied(pid: u32, thread: i32) -> Result<(f64, Image, Copy), Failure> {
        let unreadable = |error: memprof_image::Error| ("system", error.to_string());
        if SNAPSHOT.with_borrow(Option::is_some) {
            return Err(("system", "this thread reads another copy".into()));
        }
        if pid == std::process::id() {
            let start = Instant::now();
            let copy = OwnCopy::make().map_err(|error| ("system", error.to_string()))?;
            let pause = start.elapsed().as_secs_f64();
            let child = copy.pid() as u32;
            // PID/task/TID
            let own = fs::read_link("/proc/thread-self").unwrap_or_default();
            let own = own.file_name().and_then(|name| name.to_str()?.parse().ok());
            let others = waiting_threads(pid)
                .into_iter()
                .filter(|thread| Some(thread.id) != own);
            let threads = wait_until_it_waits(child)
                .into_iter()
                .chain(others)
                .collect();
            let image = Image::of_process(child, threads).map_err(unreadable)?;
            return Ok((pause, image, Copy::Own(copy)));
        }
        let snapshot = Snapshot::take_with_threads(thread).map_err(|error| failure(&error))?;
        let threads = threads_of(pid, thread as u32, &snapshot);
        let image = Image::of_process(snapshot.pid() as u32, threads).map_err(unreadable)?;
        Ok((
            snapshot.pause.as_secs_f64(),
            image,
            Copy::Other(Box::new(snapshot)),
        ))
    }

    /// The only thread of our copy, when it has begun to wait; it has done nothing by then but to return from a call.
    fn wait_until_it_waits(copy: u32) -> Vec<Thread> {
        let until = Instant::now() + SHORT;
        loop {
            let threads = waiting_threads(copy);
            if !threads.is_empty() || Instant::now() > until {
                return threads;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// The thread that was copied and the others, with all their registers; of those that did not stop, and wait for the
    /// system, where their stacks end.
    fn threads_of(pid: u32, copied: u32, snapshot: &Snapshot) -> Vec<Thread> {
        let machine = Machine::own();
        let mut threads: Vec<Thread> = Thread::of_registers(copied, snapshot.registers(), machine)
            .into_iter()
            .collect();
        threads.extend(snapshot.others.iter().filter_map(|(id, registers)| {
            Thread::of_registers(*id as u32, registers.clone(), machine)
        }));
        let known: HashSet<u32> = threads.iter().map(|thread| thread.id).collect();
        let others = waiting_threads(pid).into_iter();
        threads.extend(others.filter(|thread| !known.contains(&thread.id)));
        threads
    }

    /// Waits so many seconds for the answer: its text, nil if it is not there yet, or why there is none.
    pub fn wait(ruby: &Ruby, seconds: f64) -> Result<RArray, Error> {
        let array = ruby.ary_new();
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or(SHORT);
        let outcome = SNAPSHOT.with_borrow_mut(|snapshot| {
            let Some(Copy::Other(snapshot)) = snapshot else {
                return Err(SnapshotError::Gone);
            };
            match snapshot.pending().wait(limit)? {
                Answer::Running => Ok(None),
                Answer::Returned(0) => Err(SnapshotError::Died("out of memory".into())),
                Answer::Returned(address) => snapshot.text(address).map(Some),
            }
        });
        match outcome {
            Ok(Some(text)) => array.push(String::from_utf8_lossy(&text).into_owned())?,
            Ok(None) => array.push(ruby.qnil())?,
            Err(error) => push_failure(ruby, array, failure(&error))?,
        }
        Ok(array)
    }

    /// Has a process evaluate a line of Ruby soon. Returns the longest pause of its main thread in seconds, or why not.
    pub fn attach(ruby: &Ruby, pid: i32, line: String) -> Result<RArray, Error> {
        ATTACHMENT.set(None);
        let attachment = Attachment::begin(pid, &line);
        let outcome = attachment.and_then(|mut attachment| {
            let outcome = attachment.request();
            let pause = attachment.pause.as_secs_f64();
            ATTACHMENT.set(Some(attachment));
            Ok((outcome?, pause))
        });
        push_outcome(ruby, outcome)
    }

    /// Asks it once more.
    pub fn attach_again(ruby: &Ruby) -> Result<RArray, Error> {
        let outcome = ATTACHMENT.with_borrow_mut(|attachment| {
            let attachment = attachment.as_mut().ok_or(SnapshotError::Gone)?;
            let outcome = attachment.request()?;
            Ok((outcome, attachment.pause.as_secs_f64()))
        });
        push_outcome(ruby, outcome)
    }

    fn push_outcome(
        ruby: &Ruby,
        outcome: Result<(Outcome, f64), SnapshotError>,
    ) -> Result<RArray, Error> {
        let array = ruby.ary_new();
        match outcome {
            Ok((Outcome::Requested, pause)) => array.push(pause)?,
            Ok((Outcome::NotNow, _)) => {
                let text = "its main thread is never at a place where it can be asked";
                push_failure(ruby, array, ("busy", text.into()))?;
            }
            Err(error) => push_failure(ruby, array, failure(&error))?,
        }
        Ok(array)
    }

    /// Ends the copy, if there is one.
    pub fn drop_snapshot() {
        SNAPSHOT.set(None);
    }

    fn push_failure(ruby: &Ruby, array: RArray, (kind, text): Failure) -> Result<(), Error> {
        array.push(ruby.to_symbol(kind))?;
        array.push(text)
    }
}
