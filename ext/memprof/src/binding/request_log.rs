//! `Memprof::Native::RequestLog`: queries on all traced requests of a file. Questions and answers are JSON.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RModule, Ruby, TypedData, function, method,
};
use memprof_trace::{Log, Unit};

use super::dump::{duplicate, failure};
use super::job;
use super::requests::Input;

/// Parsed requests. They are immutable.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::RequestLog", free_immediately, size)]
struct RequestLog {
    log: Arc<Log>,
    /// The file with their lines.
    file: Option<File>,
}

impl DataTypeFunctions for RequestLog {
    fn size(&self) -> usize {
        self.log.memsize()
    }
}

pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("request?", function!(is_request, 1))?;
    native.define_singleton_method("unit_of_cost", function!(unit_of_cost, 1))?;
    let class = native.define_class("RequestLog", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("open", function!(open, 1))?;
    class.define_singleton_method("parse", function!(parse, 1))?;
    class.define_method("ask", method!(ask, 1))?;
    class.define_method("line", method!(line, 1))
}

/// Whether a line is a traced request, or a traced block.
fn is_request(line: String) -> bool {
    memprof_trace::is_request(&line)
}

/// Unit of a kind of cost: seconds, bytes or count.
fn unit_of_cost(kind: String) -> &'static str {
    match Unit::of(&kind) {
        Unit::Seconds => "seconds",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
    }
}

/// Reads a file descriptor to its end.
fn open(ruby: &Ruby, descriptor: i32) -> Result<RequestLog, Error> {
    let file = duplicate(ruby, descriptor)?;
    let lines = file.try_clone().map_err(|error| failure(ruby, &error))?;
    let log = job::run(ruby, "trace", move |abandoned| Log::read(Input { file, abandoned }))?;
    let log = Arc::new(log.map_err(|error| failure(ruby, &error))?);
    let file = Some(lines);
    Ok(RequestLog { log, file })
}

/// Parses lines.
fn parse(ruby: &Ruby, lines: String) -> Result<RequestLog, Error> {
    let log = Log::read(lines.as_bytes()).map_err(|error| failure(ruby, &error))?;
    let log = Arc::new(log);
    Ok(RequestLog { log, file: None })
}

/// Answers a question.
fn ask(ruby: &Ruby, requests: &RequestLog, question: String) -> Result<String, Error> {
    let log = Arc::clone(&requests.log);
    let answer = job::run(ruby, "trace", move |_| log.ask(&question))?;
    answer.map_err(|error| Error::new(ruby.exception_arg_error(), error.to_string()))
}

/// The line of a request as it is in the file; nil if that line is not a request.
fn line(ruby: &Ruby, requests: &RequestLog, number: u64) -> Result<Option<String>, Error> {
    let Some((offset, length)) = requests.log.place(number) else {
        return Ok(None);
    };
    let Some(file) = &requests.file else {
        return Ok(None);
    };
    let mut bytes = vec![0; length];
    let read = file.read_exact_at(&mut bytes, offset);
    let text = String::from_utf8_lossy(&bytes);
    match read {
        Ok(()) if requests.log.has(number, &text) => Ok(Some(text.into_owned())),
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(failure(ruby, &error)),
        _ => {
            let error = io::Error::other("the file has changed since it was read");
            Err(failure(ruby, &error))
        }
    }
}
