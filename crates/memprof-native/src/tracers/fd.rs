//! `fd`: calls on file descriptors, by family.

use libc::{c_char, c_int, c_uint, c_void, mode_t, off_t, size_t, socklen_t, ssize_t};

use super::calls::{self, moved, moved_by_vector, timed};
use super::{Tracer, first_cell};
use crate::Node;
use crate::interpose::{Hook, hook};
use crate::report::map;

/// The families in report order, and whether they transfer bytes.
const FAMILIES: [(&str, bool); 14] = [
    ("connect", false),
    ("accept", false),
    ("read", true),
    ("write", true),
    ("recv", true),
    ("send", true),
    ("sendfile", true),
    ("copy_file_range", true),
    ("select", false),
    ("poll", false),
    ("epoll", false),
    ("fsync", false),
    ("open", false),
    ("close", false),
];

const BASE: usize = first_cell("fd");
const CONNECT: usize = BASE;
const ACCEPT: usize = BASE + calls::CELLS;
const READ: usize = BASE + 2 * calls::CELLS;
const WRITE: usize = BASE + 3 * calls::CELLS;
const RECV: usize = BASE + 4 * calls::CELLS;
const SEND: usize = BASE + 5 * calls::CELLS;
const SENDFILE: usize = BASE + 6 * calls::CELLS;
const COPY: usize = BASE + 7 * calls::CELLS;
const SELECT: usize = BASE + 8 * calls::CELLS;
const POLL: usize = BASE + 9 * calls::CELLS;
const EPOLL: usize = BASE + 10 * calls::CELLS;
const FSYNC: usize = BASE + 11 * calls::CELLS;
const OPEN: usize = BASE + 12 * calls::CELLS;
const CLOSE: usize = BASE + 13 * calls::CELLS;

pub(super) const CELLS: usize = FAMILIES.len() * calls::CELLS;

pub(super) static TRACER: Tracer = Tracer::new("fd", &HOOKS, report);

fn report(cells: &[u64]) -> Node {
    let families = FAMILIES.iter().zip(cells.chunks(calls::CELLS));
    map(families
        .filter_map(|(&(name, moves_bytes), cells)| {
            Some((name, calls::report(cells, moves_bytes)?))
        })
        .collect())
}

type Buffer = *mut c_void;
type Bytes = *const c_void;
type Address = *const c_void;
type Vector = *const libc::iovec;

/// The bytes that a vector has room for. Only for successful calls: the kernel has then read the vector.
fn room(vector: Vector, count: c_int) -> u64 {
    if vector.is_null() {
        return 0;
    }
    // SAFETY: the kernel has just read these `count` elements without an error.
    let vector = unsafe { std::slice::from_raw_parts(vector, count.max(0) as usize) };
    vector.iter().map(|piece| piece.iov_len as u64).sum()
}

fn room_of_message(message: *const libc::msghdr) -> u64 {
    // SAFETY: the kernel has just read the message without an error.
    let message = unsafe { &*message };
    room(message.msg_iov, message.msg_iovlen as c_int)
}

/// The bytes requested and transferred by several messages, of which the first `done` succeeded.
fn rooms_of_messages(messages: *const libc::mmsghdr, done: c_int) -> (u64, u64) {
    if done <= 0 {
        return (0, 0);
    }
    // SAFETY: the kernel has just read and written these messages without an error.
    let messages = unsafe { std::slice::from_raw_parts(messages, done as usize) };
    messages.iter().fold((0, 0), |(room, moved), message| {
        (room + room_of_message(&message.msg_hdr), moved + u64::from(message.msg_len))
    })
}

fn several(first: usize, messages: *const libc::mmsghdr, call: impl FnOnce() -> c_int) -> c_int {
    let begun = crate::clock::now();
    let done = call();
    let ticks = crate::clock::since(begun);
    let (requested, actual) = rooms_of_messages(messages, done);
    super::add(first, [1, ticks, requested, actual]);
    done
}

// Compilers replace functions by those that end in _chk and _2 when they fortify a program. Names that end in 64 are the
// same functions for programs compiled for large files.
static HOOKS: [Hook; 60] = [
    hook!("connect", (fd: c_int, to: Address, size: socklen_t) -> c_int, |call| timed(CONNECT, call)),
    hook!("accept", (fd: c_int, from: Buffer, size: Buffer) -> c_int, |call| timed(ACCEPT, call)),
    hook!("accept4", (fd: c_int, from: Buffer, size: Buffer, flags: c_int) -> c_int, |call| timed(ACCEPT, call)),
    hook!("read", (fd: c_int, to: Buffer, n: size_t) -> ssize_t, |call| moved(READ, n as u64, call)),
    hook!("__read_chk", (fd: c_int, to: Buffer, n: size_t, max: size_t) -> ssize_t,
        |call| moved(READ, n as u64, call)),
    hook!("pread", (fd: c_int, to: Buffer, n: size_t, at: off_t) -> ssize_t, |call| moved(READ, n as u64, call)),
    hook!("pread64", (fd: c_int, to: Buffer, n: size_t, at: off_t) -> ssize_t, |call| moved(READ, n as u64, call)),
    hook!("__pread_chk", (fd: c_int, to: Buffer, n: size_t, at: off_t, max: size_t) -> ssize_t,
        |call| moved(READ, n as u64, call)),
    hook!("__pread64_chk", (fd: c_int, to: Buffer, n: size_t, at: off_t, max: size_t) -> ssize_t,
        |call| moved(READ, n as u64, call)),
    hook!("readv", (fd: c_int, to: Vector, n: c_int) -> ssize_t,
        |call| moved_by_vector(READ, call, || room(to, n))),
    hook!("preadv", (fd: c_int, to: Vector, n: c_int, at: off_t) -> ssize_t,
        |call| moved_by_vector(READ, call, || room(to, n))),
    hook!("preadv64", (fd: c_int, to: Vector, n: c_int, at: off_t) -> ssize_t,
        |call| moved_by_vector(READ, call, || room(to, n))),
    hook!("preadv2", (fd: c_int, to: Vector, n: c_int, at: off_t, flags: c_int) -> ssize_t,
        |call| moved_by_vector(READ, call, || room(to, n))),
    hook!("preadv64v2", (fd: c_int, to: Vector, n: c_int, at: off_t, flags: c_int) -> ssize_t,
        |call| moved_by_vector(READ, call, || room(to, n))),
    hook!("write", (fd: c_int, from: Bytes, n: size_t) -> ssize_t, |call| moved(WRITE, n as u64, call)),
    hook!("pwrite", (fd: c_int, from: Bytes, n: size_t, at: off_t) -> ssize_t, |call| moved(WRITE, n as u64, call)),
    hook!("pwrite64", (fd: c_int, from: Bytes, n: size_t, at: off_t) -> ssize_t,
        |call| moved(WRITE, n as u64, call)),
    hook!("writev", (fd: c_int, from: Vector, n: c_int) -> ssize_t,
        |call| moved_by_vector(WRITE, call, || room(from, n))),
    hook!("pwritev", (fd: c_int, from: Vector, n: c_int, at: off_t) -> ssize_t,
        |call| moved_by_vector(WRITE, call, || room(from, n))),
    hook!("pwritev64", (fd: c_int, from: Vector, n: c_int, at: off_t) -> ssize_t,
        |call| moved_by_vector(WRITE, call, || room(from, n))),
    hook!("pwritev2", (fd: c_int, from: Vector, n: c_int, at: off_t, flags: c_int) -> ssize_t,
        |call| moved_by_vector(WRITE, call, || room(from, n))),
    hook!("pwritev64v2", (fd: c_int, from: Vector, n: c_int, at: off_t, flags: c_int) -> ssize_t,
        |call| moved_by_vector(WRITE, call, || room(from, n))),
    hook!("recv", (fd: c_int, to: Buffer, n: size_t, flags: c_int) -> ssize_t, |call| moved(RECV, n as u64, call)),
    hook!("__recv_chk", (fd: c_int, to: Buffer, n: size_t, max: size_t, flags: c_int) -> ssize_t,
        |call| moved(RECV, n as u64, call)),
    hook!("recvfrom",
        (fd: c_int, to: Buffer, n: size_t, flags: c_int, from: Buffer, size: Buffer) -> ssize_t,
        |call| moved(RECV, n as u64, call)),
    hook!("__recvfrom_chk",
        (fd: c_int, to: Buffer, n: size_t, max: size_t, flags: c_int, from: Buffer, size: Buffer) -> ssize_t,
        |call| moved(RECV, n as u64, call)),
    hook!("recvmsg", (fd: c_int, message: *mut libc::msghdr, flags: c_int) -> ssize_t,
        |call| moved_by_vector(RECV, call, || room_of_message(message))),
    hook!("recvmmsg",
        (fd: c_int, messages: *mut libc::mmsghdr, n: c_uint, flags: c_int, limit: Buffer) -> c_int,
        |call| several(RECV, messages, call)),
    hook!("send", (fd: c_int, from: Bytes, n: size_t, flags: c_int) -> ssize_t, |call| moved(SEND, n as u64, call)),
    hook!("sendto",
        (fd: c_int, from: Bytes, n: size_t, flags: c_int, to: Address, size: socklen_t) -> ssize_t,
        |call| moved(SEND, n as u64, call)),
    hook!("sendmsg", (fd: c_int, message: *const libc::msghdr, flags: c_int) -> ssize_t,
        |call| moved_by_vector(SEND, call, || room_of_message(message))),
    hook!("sendmmsg", (fd: c_int, messages: *mut libc::mmsghdr, n: c_uint, flags: c_int) -> c_int,
        |call| several(SEND, messages, call)),
    hook!("sendfile", (to: c_int, from: c_int, at: Buffer, n: size_t) -> ssize_t,
        |call| moved(SENDFILE, n as u64, call)),
    hook!("sendfile64", (to: c_int, from: c_int, at: Buffer, n: size_t) -> ssize_t,
        |call| moved(SENDFILE, n as u64, call)),
    hook!("copy_file_range",
        (from: c_int, from_at: Buffer, to: c_int, to_at: Buffer, n: size_t, flags: c_uint) -> ssize_t,
        |call| moved(COPY, n as u64, call)),
    hook!("select", (n: c_int, read: Buffer, write: Buffer, other: Buffer, limit: Buffer) -> c_int,
        |call| timed(SELECT, call)),
    hook!("pselect", (n: c_int, read: Buffer, write: Buffer, other: Buffer, limit: Bytes, signals: Bytes) -> c_int,
        |call| timed(SELECT, call)),
    hook!("poll", (fds: Buffer, n: libc::nfds_t, limit: c_int) -> c_int, |call| timed(POLL, call)),
    hook!("__poll_chk", (fds: Buffer, n: libc::nfds_t, limit: c_int, max: size_t) -> c_int, |call| timed(POLL, call)),
    hook!("ppoll", (fds: Buffer, n: libc::nfds_t, limit: Bytes, signals: Bytes) -> c_int, |call| timed(POLL, call)),
    hook!("__ppoll_chk", (fds: Buffer, n: libc::nfds_t, limit: Bytes, signals: Bytes, max: size_t) -> c_int,
        |call| timed(POLL, call)),
    hook!("epoll_wait", (fd: c_int, events: Buffer, n: c_int, limit: c_int) -> c_int, |call| timed(EPOLL, call)),
    hook!("epoll_pwait", (fd: c_int, events: Buffer, n: c_int, limit: c_int, signals: Bytes) -> c_int,
        |call| timed(EPOLL, call)),
    hook!("epoll_pwait2", (fd: c_int, events: Buffer, n: c_int, limit: Bytes, signals: Bytes) -> c_int,
        |call| timed(EPOLL, call)),
    hook!("fsync", (fd: c_int) -> c_int, |call| timed(FSYNC, call)),
    hook!("fdatasync", (fd: c_int) -> c_int, |call| timed(FSYNC, call)),
    hook!("sync_file_range", (fd: c_int, at: off_t, n: off_t, flags: c_uint) -> c_int, |call| timed(FSYNC, call)),
    hook!("syncfs", (fd: c_int) -> c_int, |call| timed(FSYNC, call)),
    // The mode is passed only if a file may be created; otherwise its slot is passed on unread.
    hook!("open", (path: *const c_char, flags: c_int, mode: mode_t) -> c_int, |call| timed(OPEN, call)),
    hook!("open64", (path: *const c_char, flags: c_int, mode: mode_t) -> c_int, |call| timed(OPEN, call)),
    hook!("__open_2", (path: *const c_char, flags: c_int) -> c_int, |call| timed(OPEN, call)),
    hook!("__open64_2", (path: *const c_char, flags: c_int) -> c_int, |call| timed(OPEN, call)),
    hook!("openat", (at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, |call| timed(OPEN, call)),
    hook!("openat64", (at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int,
        |call| timed(OPEN, call)),
    hook!("__openat_2", (at: c_int, path: *const c_char, flags: c_int) -> c_int, |call| timed(OPEN, call)),
    hook!("__openat64_2", (at: c_int, path: *const c_char, flags: c_int) -> c_int, |call| timed(OPEN, call)),
    hook!("creat", (path: *const c_char, mode: mode_t) -> c_int, |call| timed(OPEN, call)),
    hook!("creat64", (path: *const c_char, mode: mode_t) -> c_int, |call| timed(OPEN, call)),
    hook!("close", (fd: c_int) -> c_int, |call| timed(CLOSE, call)),
    hook!("close_range", (first: c_uint, last: c_uint, flags: c_int) -> c_int, |call| timed(CLOSE, call)),
];
