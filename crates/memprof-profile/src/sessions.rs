//! Tracking sessions, and the segments that objects are counted in.
//!
//! A session is one `start`, `track`, `report` or request. Sessions overlap: a report inside a tracked program, parallel
//! requests on the threads of a server. An object belongs to every session that is recording on its thread when it is
//! allocated. So objects are counted by *segment*, a set of sessions: each allocation counts once, however many sessions see
//! it, and a session's numbers are the sum over the segments that contain it.
//!
//! A thread may set a *mark*, a number for its current activity: the file it loads. Objects of different marks are in different
//! segments, so that they can be distinguished (see [`crate::recorder::MarkRow`]).
//!
//! A closed session is removed from its segments. Segments that have become equal sets are joined; a segment with an empty set
//! is retired.

use rustc_hash::FxHashMap;

/// Id of a session, never reused within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// Id of a segment, reused when the segment no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentId(pub u32);

/// Identifies a thread of the host.
pub type ThreadKey = u64;

/// Options of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The thread to track, with the threads it starts; `None` for the whole process.
    pub thread: Option<ThreadKey>,
    /// Record one object in `sample`.
    pub sample: u32,
    /// Record this many frames per object.
    pub stack: u32,
    /// Record the values of strings.
    pub strings: bool,
}

#[derive(Debug)]
struct Session {
    options: Options,
    recording: bool,
}

/// A set of sessions with the sampling interval in force: counts of a segment scale by one factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    sessions: Vec<SessionId>,
    /// One object in `interval` was recorded.
    pub interval: u32,
    /// Some session wants the values of strings.
    pub strings: bool,
    /// The mark of the thread, or 0.
    pub mark: u32,
}

impl Segment {
    /// True if the session sees the objects of this segment.
    pub fn contains(&self, session: SessionId) -> bool {
        self.sessions.binary_search(&session).is_ok()
    }
}

#[derive(Debug, Default)]
struct Thread {
    sessions: Vec<SessionId>,
    segment: Option<SegmentId>,
    mark: u32,
}

/// The fate of a segment when a session was closed.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// The first became the same set as the second, and no longer exists.
    Joined(SegmentId, SegmentId),
    /// No session sees it any more, and it no longer exists.
    Retired(SegmentId),
}

/// All sessions and segments.
#[derive(Debug, Default)]
pub struct Sessions {
    next: u64,
    sessions: FxHashMap<SessionId, Session>,
    segments: Vec<Option<Segment>>,
    /// Segment of threads not followed by a thread-scoped session.
    process: Option<SegmentId>,
    threads: FxHashMap<ThreadKey, Thread>,
    interval: u32,
    stack: u32,
}

impl Sessions {
    /// Opens a session, which starts recording.
    pub fn open(&mut self, options: Options) -> SessionId {
        self.next += 1;
        let id = SessionId(self.next);
        self.sessions.insert(id, Session { options, recording: true });
        if let Some(thread) = options.thread {
            let thread = self.threads.entry(thread).or_default();
            thread.sessions.push(id);
        }
        self.assign_segments();
        id
    }

    /// Ends recording; the session still sees the frees of its objects. False if it was not recording.
    pub fn finish(&mut self, id: SessionId) -> bool {
        let Some(session) = self.sessions.get_mut(&id).filter(|session| session.recording) else {
            return false;
        };
        session.recording = false;
        self.forget_on_threads(id);
        self.assign_segments();
        true
    }

    /// Closes a session; returns changes of the segments that it was in.
    pub fn close(&mut self, id: SessionId) -> Vec<Change> {
        if self.sessions.remove(&id).is_none() {
            return Vec::new();
        }
        self.forget_on_threads(id);
        if self.sessions.is_empty() {
            self.threads.clear(); // and their marks
        }
        let mut changes = Vec::new();
        for index in 0..self.segments.len() {
            let Some(mut segment) = self.segments.get(index).cloned().flatten() else {
                continue;
            };
            let Ok(at) = segment.sessions.binary_search(&id) else {
                continue;
            };
            segment.sessions.remove(at);
            let this = SegmentId(index as u32);
            let sessions = &self.sessions;
            segment.strings = segment
                .sessions
                .iter()
                .any(|id| sessions.get(id).is_some_and(|s| s.options.strings));
            if segment.sessions.is_empty() {
                self.put(this, None);
                changes.push(Change::Retired(this));
            } else if let Some(same) = self.position(&segment) {
                self.put(this, None);
                changes.push(Change::Joined(this, same));
            } else {
                self.put(this, Some(segment));
            }
        }
        self.assign_segments();
        changes
    }

    fn forget_on_threads(&mut self, id: SessionId) {
        self.threads.retain(|_, thread| {
            thread.sessions.retain(|session| *session != id);
            !thread.sessions.is_empty() || thread.mark != 0
        });
    }

    /// The mark of a thread; 0 if it has none.
    pub fn mark_of(&self, thread: ThreadKey) -> u32 {
        self.threads.get(&thread).map_or(0, |thread| thread.mark)
    }

    /// Sets the mark of the objects that a thread, and threads it starts, allocate from now on; 0 removes it. Returns the
    /// previous mark. Marks are cleared with the last session.
    pub fn mark(&mut self, thread: ThreadKey, mark: u32) -> u32 {
        if self.sessions.is_empty() {
            return 0;
        }
        let marked = self.threads.entry(thread).or_default();
        let before = std::mem::replace(&mut marked.mark, mark);
        if mark == 0 && marked.sessions.is_empty() {
            self.threads.remove(&thread);
        }
        self.assign_segments();
        before
    }

    fn put(&mut self, id: SegmentId, segment: Option<Segment>) {
        if let Some(slot) = self.segments.get_mut(id.0 as usize) {
            *slot = segment;
        }
    }

    fn position(&self, segment: &Segment) -> Option<SegmentId> {
        let same = |other: &Option<Segment>| {
            other.as_ref().is_some_and(|o| {
                o.sessions == segment.sessions
                    && o.interval == segment.interval
                    && o.mark == segment.mark
            })
        };
        self.segments.iter().position(same).map(|index| SegmentId(index as u32))
    }

    /// Recomputes the segment of each thread. The finest sampling and the deepest stack wanted by any session apply to all.
    fn assign_segments(&mut self) {
        let recording = self.sessions.values().filter(|session| session.recording);
        let (mut interval, mut stack) = (u32::MAX, 0);
        for session in recording {
            interval = interval.min(session.options.sample.max(1));
            stack = stack.max(session.options.stack);
        }
        (self.interval, self.stack) = (interval, stack.max(1));
        let process: Vec<SessionId> = (self.sessions.iter())
            .filter(|(_, session)| session.recording && session.options.thread.is_none())
            .map(|(id, _)| *id)
            .collect();
        self.process = self.segment_of(process.clone(), 0);
        let mut threads = std::mem::take(&mut self.threads);
        for thread in threads.values_mut() {
            let sessions = [process.as_slice(), &thread.sessions].concat();
            thread.segment = self.segment_of(sessions, thread.mark);
        }
        self.threads = threads;
    }

    fn segment_of(&mut self, mut sessions: Vec<SessionId>, mark: u32) -> Option<SegmentId> {
        if sessions.is_empty() {
            return None;
        }
        sessions.sort_unstable();
        sessions.dedup();
        let strings = sessions
            .iter()
            .any(|id| self.sessions.get(id).is_some_and(|session| session.options.strings));
        let segment = Segment { sessions, interval: self.interval, strings, mark };
        if let Some(id) = self.position(&segment) {
            return Some(id);
        }
        if let Some(index) = self.segments.iter().position(Option::is_none) {
            self.put(SegmentId(index as u32), Some(segment));
            return Some(SegmentId(index as u32));
        }
        self.segments.push(Some(segment));
        Some(SegmentId(self.segments.len() as u32 - 1))
    }

    /// True if some session follows a single thread, or a thread has a mark, so that allocations must look up their thread.
    #[inline]
    pub fn by_thread(&self) -> bool {
        !self.threads.is_empty()
    }

    /// The segment for an allocation on this thread; `None` if no session records it.
    #[inline]
    pub fn segment(&self, thread: ThreadKey) -> Option<SegmentId> {
        match self.threads.get(&thread) {
            Some(thread) => thread.segment,
            None => self.process,
        }
    }

    /// The segment of threads not followed by a thread-scoped session.
    #[inline]
    pub fn process_segment(&self) -> Option<SegmentId> {
        self.process
    }

    /// A thread was started: the sessions that follow its parent follow it too.
    pub fn thread_started(&mut self, parent: ThreadKey, child: ThreadKey) {
        // A previous thread with the same key has ended.
        self.threads.remove(&child);
        if let Some(thread) = self.threads.get(&parent) {
            let (sessions, segment, mark) = (thread.sessions.clone(), thread.segment, thread.mark);
            let child_thread = Thread { sessions, segment, mark };
            self.threads.insert(child, child_thread);
        }
    }

    /// A thread has ended.
    pub fn thread_ended(&mut self, thread: ThreadKey) {
        self.threads.remove(&thread);
    }

    /// Threads moved in memory: `moved` returns their new keys.
    pub fn threads_moved(&mut self, moved: impl Fn(ThreadKey) -> Option<ThreadKey>) {
        let threads = std::mem::take(&mut self.threads);
        self.threads =
            threads.into_iter().filter_map(|(key, thread)| Some((moved(key)?, thread))).collect();
    }

    /// The segment with this id.
    pub fn get(&self, id: SegmentId) -> Option<&Segment> {
        self.segments.get(id.0 as usize)?.as_ref()
    }

    /// The session's options; `None` if it is closed.
    pub fn options(&self, id: SessionId) -> Option<Options> {
        self.sessions.get(&id).map(|session| session.options)
    }

    /// Segments that the session is in.
    pub fn segments_of(&self, id: SessionId) -> impl Iterator<Item = SegmentId> + '_ {
        let contains =
            move |segment: &Option<Segment>| segment.as_ref().is_some_and(|s| s.contains(id));
        self.segments
            .iter()
            .enumerate()
            .filter(move |(_, s)| contains(s))
            .map(|(index, _)| SegmentId(index as u32))
    }

    /// One object in this many is currently recorded.
    pub fn interval(&self) -> u32 {
        self.interval.max(1)
    }

    /// Number of frames currently recorded.
    pub fn stack(&self) -> u32 {
        self.stack
    }

    /// True if no session is open.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Number of open sessions.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Open sessions that follow a thread for which `alive` is false: after a fork only one thread continues.
    pub fn orphans(&self, alive: impl Fn(ThreadKey) -> bool) -> Vec<SessionId> {
        let orphaned =
            |session: &Session| session.options.thread.is_some_and(|thread| !alive(thread));
        self.sessions.iter().filter(|(_, session)| orphaned(session)).map(|(id, _)| *id).collect()
    }
}
