//! `Memprof::Native`: copies of other processes, to call a function of this library there or to read their memory; or
//! evaluation of code in the process itself. One at a time per thread, done by a separate tracer process that this one waits
//! for.

use magnus::{Error, Object, RModule, Ruby};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod jobs;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub fn init(_: &Ruby, _: RModule) -> Result<(), Error> {
    Ok(())
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn init(_: &Ruby, native: RModule) -> Result<(), Error> {
    use magnus::function;

    native.define_singleton_method("ruby_version_of", function!(linux::ruby_version_of, 1))?;
    native.define_singleton_method("snapshot", function!(linux::snapshot, 5))?;
    native.define_singleton_method("image_of_snapshot", function!(linux::image, 2))?;
    native.define_singleton_method("attach", function!(linux::attach, 3))?;
    native.define_singleton_method("attach_step", function!(linux::attach_step, 1))?;
    native.define_singleton_method("wait_for_tracer", function!(linux::wait, 1))?;
    native.define_singleton_method("drop_snapshot", function!(linux::drop_snapshot, 0))?;
    native.define_singleton_method("hold_process", function!(linux::hold_process, 1))?;
    native.define_singleton_method("signal_process", function!(linux::signal_process, 2))?;
    native.define_singleton_method("open_beneath", function!(linux::open_beneath, 3))?;
    native.define_singleton_method("send_now", function!(linux::send_now, 2))?;
    native.define_singleton_method("receive_descriptor", function!(linux::receive_descriptor, 1))
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux {
    use std::cell::RefCell;
    use std::collections::HashSet;
    use std::ffi::CString;
    use std::fs;
    use std::io;
    use std::os::fd::{IntoRawFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use magnus::{Error, RArray, Ruby};
    use memprof_image::{Image, Machine, Thread, waiting_threads};
    use memprof_native::process::OwnCopy;
    use memprof_native::process::descriptors::{self, Entry};
    use memprof_native::process::tracer::Tracer;

    use super::super::native_files::system_error;
    use super::super::native_image::NativeImage;
    use super::jobs::{self, Message, Step};
    use crate::vm::heap::binding::duplicate;
    use crate::vm::{dump_files, gvl};

    /// Timeout for our own copy to start waiting.
    const SHORT: Duration = Duration::from_secs(3);

    thread_local! {
        static WORK: RefCell<Option<Work>> = const { RefCell::new(None) };
    }

    /// Work in progress, kept until it is dropped.
    enum Work {
        Tracer(Box<Tracer>),
        /// A copy of the process with this id, and the copied thread.
        Image(Box<Tracer>, u32, u32),
        Own(#[expect(dead_code, reason = "it ends when it is dropped")] OwnCopy),
    }

    /// Why there is no copy or no answer: a keyword for the caller, and a text.
    type Failure = (String, String);

    /// Ruby's version in a process, as `["3.3.8"]`, or why it is unknown, as `[:missing, "..."]`.
    pub fn ruby_version_of(ruby: &Ruby, pid: i32) -> Result<RArray, Error> {
        let found = jobs::symbols(pid).and_then(|symbols| {
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
            Err(error) => {
                let (kind, text) = jobs::failure(&error);
                push_failure(ruby, array, (kind.into(), text))?;
            }
        }
        Ok(array)
    }

    /// Starts copying the process of the descriptor `held`, as seen by one of its threads, and calling a library's
    /// `memprof_answer_in_copy` there. Its output goes to the descriptor in `output`, if any, up to a number of bytes. [`wait`]
    /// returns first the pause in seconds and the process id of the copy, then the answer.
    pub fn snapshot(
        ruby: &Ruby,
        (pid, held): (i32, i32),
        thread: i32,
        library: String,
        request: String,
        output: Option<(i32, u64)>,
    ) -> Result<(), Error> {
        let begun = duplicate(held).and_then(|held| {
            let output = output.map(|(output, limit)| duplicate(output).map(|file| (file, limit)));
            jobs::ask(jobs::Question {
                pid,
                held: held.into(),
                thread,
                library,
                request,
                output: output.transpose()?,
            })
        });
        keep(ruby, begun.map(|tracer| Work::Tracer(Box::new(tracer))))
    }

    /// Starts copying the process of a thread, and returns nil. [`wait`] returns the pause in seconds and the memory of the
    /// copy, readable until the copy is dropped. For this process, both are returned at once.
    pub fn image(ruby: &Ruby, pid: u32, thread: i32) -> Result<Option<RArray>, Error> {
        let array = ruby.ary_new();
        if WORK.with_borrow(Option::is_some) {
            let why = ("system".into(), "this thread reads another copy".into());
            push_failure(ruby, array, why)?;
            return Ok(Some(array));
        }
        if pid == std::process::id() {
            match own_copy(pid) {
                Ok((pause, image, copy)) => {
                    push_image(ruby, array, pid, (pause, image))?;
                    WORK.set(Some(Work::Own(copy)));
                }
                Err(why) => push_failure(ruby, array, why)?,
            }
            return Ok(Some(array));
        }
        let begun = jobs::copy(thread);
        keep(ruby, begun.map(|tracer| Work::Image(Box::new(tracer), pid, thread as u32)))?;
        Ok(None)
    }

    /// Starts an attachment, in which a process evaluates a line of Ruby; [`attach_step`] drives it.
    pub fn attach(ruby: &Ruby, pid: i32, held: i32, line: String) -> Result<(), Error> {
        let begun = duplicate(held).and_then(|held| jobs::attach(pid, held.into(), line));
        keep(ruby, begun.map(|tracer| Work::Tracer(Box::new(tracer))))
    }

    /// A step of an attachment: `ask`, `wake`, `withdraw` or `close`. [`wait`] returns the longest pause in seconds, and at
    /// first the descriptor of the connection.
    pub fn attach_step(ruby: &Ruby, name: String) -> Result<(), Error> {
        let step = match name.as_str() {
            "ask" => Step::Ask { wake: false },
            "wake" => Step::Ask { wake: true },
            "withdraw" => Step::Withdraw,
            _ => Step::Close,
        };
        WORK.with_borrow(|work| match work {
            // If it has ended, the next wait reports it.
            Some(Work::Tracer(tracer)) => jobs::step(tracer, &step).or(Ok(())),
            _ => Ok(()),
        })
        .map_err(|error: io::Error| system_error(ruby, &error))
    }

    fn keep(ruby: &Ruby, work: io::Result<Work>) -> Result<(), Error> {
        WORK.set(None);
        WORK.set(Some(work.map_err(|error| system_error(ruby, &error))?));
        Ok(())
    }

    /// The next message of the tracer, or nil on timeout: other threads run meanwhile.
    pub fn wait(ruby: &Ruby, seconds: f64) -> Result<Option<RArray>, Error> {
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or(SHORT);
        let Some(mut work) = WORK.take() else {
            let array = ruby.ary_new();
            push_failure(ruby, array, ("gone".into(), "it ended".into()))?;
            return Ok(Some(array));
        };
        let next = match &mut work {
            Work::Tracer(tracer) | Work::Image(tracer, ..) => {
                // If already interrupted, Ruby handles that, and calls again.
                gvl::without(|| jobs::next(tracer, limit)).unwrap_or(Ok(None))
            }
            Work::Own(_) => Ok(None),
        };
        let copied = match &work {
            Work::Image(_, pid, thread) => Some((*pid, *thread)),
            _ => None,
        };
        WORK.set(Some(work));
        let array = ruby.ary_new();
        match next {
            Ok(None) => return Ok(None),
            Err(error) => {
                let text = format!("the process that traces ended: {error}");
                push_failure(ruby, array, ("died".into(), text))?;
            }
            Ok(Some((message, with))) => push(ruby, array, message, with, copied)?,
        }
        Ok(Some(array))
    }

    fn push(
        ruby: &Ruby,
        array: RArray,
        message: Message,
        with: Option<OwnedFd>,
        copied: Option<(u32, u32)>,
    ) -> Result<(), Error> {
        match message {
            Message::Failed(kind, text) => push_failure(ruby, array, (kind, text))?,
            Message::Copied(pause, pid) => {
                array.push(pause)?;
                array.push(pid)?;
            }
            Message::Memory(pause, copy, registers, others) => {
                let (pid, thread) = copied.unwrap_or_default();
                let threads = threads_of(pid, thread, registers, others);
                match Image::of_process(copy as u32, threads) {
                    Ok(image) => push_image(ruby, array, pid, (pause, image))?,
                    Err(error) => {
                        push_failure(ruby, array, ("system".into(), error.to_string()))?;
                    }
                }
            }
            Message::Answer(text) => array.push(text)?,
            Message::Asked(pause) => array.push(pause)?,
        }
        if let Some(descriptor) = with {
            array.push(descriptor.into_raw_fd())?;
        }
        Ok(())
    }

    fn push_image(
        ruby: &Ruby,
        array: RArray,
        pid: u32,
        (pause, mut image): (f64, Image),
    ) -> Result<(), Error> {
        image.pid = Some(pid);
        // A copy has the name of the copied thread.
        if let Ok(name) = fs::read_to_string(format!("/proc/{pid}/comm")) {
            image.command = name.trim_end().to_owned();
        }
        array.push(pause)?;
        array.push(NativeImage::of(ruby, image)?)
    }

    fn own_copy(pid: u32) -> Result<(f64, Image, OwnCopy), Failure> {
        let start = Instant::now();
        let copy = OwnCopy::make().map_err(|error| ("system".into(), error.to_string()))?;
        let pause = start.elapsed().as_secs_f64();
        let child = copy.pid() as u32;
        // PID/task/TID
        let own = fs::read_link("/proc/thread-self").unwrap_or_default();
        let own = own.file_name().and_then(|name| name.to_str()?.parse().ok());
        let others = waiting_threads(pid).into_iter().filter(|thread| Some(thread.id) != own);
        let threads = wait_until_it_waits(child).into_iter().chain(others).collect();
        let image = Image::of_process(child, threads);
        let image = image.map_err(|error| ("system".into(), error.to_string()))?;
        Ok((pause, image, copy))
    }

    /// The only thread of our copy, once it waits; until then it only returns from a call.
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

    /// The copied thread and the others, with all their registers, or only the end of their stacks if they did not stop because
    /// they wait for the system.
    fn threads_of(
        pid: u32,
        copied: u32,
        registers: Vec<u64>,
        others: Vec<(i32, Vec<u64>)>,
    ) -> Vec<Thread> {
        let machine = Machine::own();
        let others = (others.into_iter()).map(|(id, registers)| (id as u32, registers));
        let mut threads: Vec<Thread> = [(copied, registers)]
            .into_iter()
            .chain(others)
            .filter_map(|(id, registers)| Thread::of_registers(id, registers, machine))
            .collect();
        let known: HashSet<u32> = threads.iter().map(|thread| thread.id).collect();
        let waiting = waiting_threads(pid).into_iter();
        threads.extend(waiting.filter(|thread| !known.contains(&thread.id)));
        threads
    }

    /// Ends the work in progress, if any: returns when the process is restored.
    pub fn drop_snapshot() {
        WORK.set(None);
    }

    fn push_failure(ruby: &Ruby, array: RArray, (kind, text): Failure) -> Result<(), Error> {
        array.push(ruby.to_symbol(kind))?;
        array.push(text)
    }

    /// A descriptor that refers to a process even if its id is reused.
    pub fn hold_process(ruby: &Ruby, pid: i32) -> Result<i32, Error> {
        let held = descriptors::hold(pid).map_err(|error| system_error(ruby, &error))?;
        Ok(held.into_raw_fd())
    }

    /// Sends a signal to the process of a descriptor.
    pub fn signal_process(ruby: &Ruby, held: i32, signal: i32) -> Result<(), Error> {
        let sent = dump_files::borrowed(held).and_then(|held| descriptors::signal(held, signal));
        sent.map_err(|error| system_error(ruby, &error))
    }

    /// Opens a path below the directory of a descriptor, never outside of it: a `directory`, `anything` to stat or connect to,
    /// or a `file` to read.
    pub fn open_beneath(
        ruby: &Ruby,
        directory: i32,
        path: PathBuf,
        what: String,
    ) -> Result<i32, Error> {
        let entry = match what.as_str() {
            "directory" => Entry::Directory,
            "anything" => Entry::Anything,
            _ => Entry::File,
        };
        let opened = dump_files::borrowed(directory).and_then(|directory| {
            let path = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)?;
            descriptors::open_beneath(directory, &path, entry)
        });
        let opened = opened.map_err(|error| system_error(ruby, &error))?;
        Ok(opened.into_raw_fd())
    }

    /// The descriptor sent with a byte over a socket that has data to read; nil if there was none.
    pub fn receive_descriptor(ruby: &Ruby, socket: i32) -> Result<Option<i32>, Error> {
        let mut byte = [0];
        let received =
            dump_files::borrowed(socket).and_then(|socket| descriptors::receive(socket, &mut byte));
        let (_, found) = received.map_err(|error| system_error(ruby, &error))?;
        Ok(found.into_iter().next().map(IntoRawFd::into_raw_fd))
    }

    /// Sends bytes over a socket without blocking, and returns how many. A closed socket raises no signal.
    pub fn send_now(ruby: &Ruby, socket: i32, text: String) -> Result<usize, Error> {
        let sent = dump_files::borrowed(socket)
            .and_then(|socket| descriptors::send_now(socket, text.as_bytes()));
        sent.map_err(|error| system_error(ruby, &error))
    }
}
