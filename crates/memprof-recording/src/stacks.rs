//! The stacks of a recording: a tree of frames, with allocation counts at its nodes.

use std::ops::Range;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::symbols;

/// Maximum frames of a stack in any recorder: a damaged file must not chain all of its nodes.
const MOST_FRAMES: usize = 4096;

/// Allocation counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Calls of malloc and similar functions.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// Blocks freed by the next event of the recording.
    pub temporary: u64,
    /// Blocks live at the peak.
    pub peak: u64,
    /// Their bytes.
    pub peak_bytes: u64,
    /// Blocks live at the end.
    pub leaked: u64,
    /// Their bytes.
    pub leaked_bytes: u64,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        self.allocations += other.allocations;
        self.allocated_bytes += other.allocated_bytes;
        self.temporary += other.temporary;
        self.peak += other.peak;
        self.peak_bytes += other.peak_bytes;
        self.leaked += other.leaked;
        self.leaked_bytes += other.leaked_bytes;
    }
}

/// A location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `file:line`, or native code if no Ruby code ran.
    pub location: String,
    /// Its allocations.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// A Ruby line.
    Ruby {
        /// File, as named by Ruby.
        path: String,
        /// Its line.
        line: u64,
        /// Method; may be empty.
        method: String,
    },
    /// Native code.
    Native(Native),
}

/// Native code: the return address of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Native {
    /// The address.
    pub address: u64,
    /// Path of its object; empty if unknown.
    pub module: String,
    /// Offset from the object's load address, as `addr2line` expects.
    pub offset: u64,
    /// The function, if an exported name is known, or else empty.
    pub function: String,
    /// Offset within the function.
    pub distance: u64,
    /// Source file, as known to the compiler; empty if unknown.
    pub file: String,
    /// Line in the source file.
    pub line: u64,
    /// Whether the function was inlined into the one at the address.
    pub inlined: bool,
}

impl Native {
    /// Module name of JIT-compiled code, about which nothing else is known.
    pub const JIT: &'static str = "<jit>";

    /// JIT-compiled code, as one frame.
    #[must_use]
    pub fn jit() -> Native {
        Native { module: Native::JIT.to_owned(), ..Native::default() }
    }

    /// Whether it is C++'s `operator new` or `new[]`, which allocates for its caller.
    fn is_operator_new(&self) -> bool {
        matches!(self.function.as_str(), "operator new" | "operator new[]")
    }

    /// Whether it is JIT-compiled code.
    #[must_use]
    pub fn is_jit(&self) -> bool {
        self.module == Native::JIT
    }

    /// In the format of glibc's `backtrace_symbols`, followed by the source line.
    #[must_use]
    pub fn location(&self) -> String {
        match self.source() {
            Some(source) => format!("{} {source}", self.place()),
            None => self.place(),
        }
    }

    fn place(&self) -> String {
        let Native { address, module, offset, function, distance, .. } = self;
        match (module.as_str(), function.as_str()) {
            ("", "") => format!("[{address:#x}]"),
            (Native::JIT, _) => module.clone(),
            (_, "") => format!("{module}(+{offset:#x}) [{address:#x}]"),
            _ if self.inlined => format!("{module}({function}) [{address:#x}]"),
            _ => format!("{module}({function}+{distance:#x}) [{address:#x}]"),
        }
    }

    /// Base name of the source file, and the line.
    #[must_use]
    pub fn source(&self) -> Option<String> {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        (!name.is_empty()).then(|| format!("{name}:{}", self.line))
    }

    /// The function with its object's name and its source line, or else its address.
    fn label(&self) -> String {
        match self.source() {
            Some(source) if !self.function.is_empty() => {
                let module = self.module.rsplit('/').next().unwrap_or_default();
                format!("{} ({module}, {source})", self.function)
            }
            _ => self.function_label(),
        }
    }

    /// The function with its object's name, or else its address.
    #[must_use]
    pub fn function_label(&self) -> String {
        let module = self.module.rsplit('/').next().unwrap_or_default();
        match (module, self.function.as_str()) {
            ("", "") | (Native::JIT, _) => self.location(),
            (_, "") => format!("{module}+{:#x}", self.offset),
            (_, function) => format!("{function} ({module})"),
        }
    }
}

impl Frame {
    /// Its location: `file:line`, or native code.
    #[must_use]
    pub fn location(&self) -> String {
        match self {
            Frame::Ruby { path, line, .. } => format!("{path}:{line}"),
            Frame::Native(native) => native.location(),
        }
    }

    /// Its name for display: the method or function with its location, or just the location.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Frame::Ruby { method, .. } if method.is_empty() => self.location(),
            Frame::Ruby { method, .. } => format!("{method} ({})", self.location()),
            Frame::Native(native) => native.label(),
        }
    }
}

/// A node of the tree: a frame that its parent called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Index of the caller in [`Stacks::nodes`], lower than this node's. None: the outermost known frame.
    pub parent: Option<u32>,
    /// Index of the frame in [`Stacks::frames`].
    pub frame: u32,
}

/// The stacks of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Frames.
    pub frames: Vec<Frame>,
    /// The tree.
    pub nodes: Vec<Node>,
    /// Nodes whose innermost frame allocated, with their counts.
    pub counts: Vec<(u32, Counts)>,
}

impl Stacks {
    /// Names native frames from files on this machine, and adds frames for inlined functions.
    pub fn name(&mut self) {
        let mut inlined = symbols::name_inlined(&mut self.frames).0;
        let own = self.frames.len();
        let mut within: Vec<Range<u32>> = vec![0..0; own];
        for (place, within) in within.iter_mut().enumerate() {
            let first = self.frames.len() as u32;
            let frames = inlined.remove(&place).unwrap_or_default();
            self.frames.extend(frames.into_iter().map(Frame::Native));
            *within = first..self.frames.len() as u32;
        }
        if self.frames.len() == own {
            return;
        }
        let mut places: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in std::mem::take(&mut self.nodes) {
            let mut parent = node.parent.map(|parent| places[parent as usize]);
            for frame in std::iter::once(node.frame).chain(within[node.frame as usize].clone()) {
                let place = self.nodes.len() as u32;
                self.nodes.push(Node { parent, frame });
                parent = Some(place);
            }
            places.extend(parent);
        }
        for (node, _) in &mut self.counts {
            *node = places[*node as usize];
        }
    }

    /// The nodes of a stack, innermost first.
    pub fn path(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        Stacks::path_in(&self.nodes, node)
    }

    /// The same for a tree.
    pub(crate) fn path_in(nodes: &[Node], node: u32) -> impl Iterator<Item = u32> + '_ {
        let callers = |&node: &u32| nodes[node as usize].parent;
        std::iter::successors(Some(node), callers).take(MOST_FRAMES)
    }

    /// The frames of a stack for display, innermost first.
    pub fn labels(&self, node: u32) -> impl Iterator<Item = String> + '_ {
        self.path(node).map(|node| self.frame(node).label())
    }

    /// The frame of a node.
    #[must_use]
    pub fn frame(&self, node: u32) -> &Frame {
        &self.frames[self.nodes[node as usize].frame as usize]
    }

    /// Whether any stack has more than one frame.
    #[must_use]
    pub fn have_callers(&self) -> bool {
        self.nodes.iter().any(|node| node.parent.is_some())
    }

    /// Location of a stack's allocation: its innermost Ruby line that is not the VM's own, or else any Ruby line, or else
    /// native code, with `operator new` replaced by its caller.
    #[must_use]
    pub fn location(&self, node: u32) -> String {
        self.allocating_frame(node).location()
    }

    /// The allocating frame of a stack, for `location`.
    pub(crate) fn allocating_frame(&self, node: u32) -> &Frame {
        let is_ruby = |node: &u32| matches!(self.frame(*node), Frame::Ruby { .. });
        let is_users = |node: &u32| match self.frame(*node) {
            Frame::Ruby { path, .. } => !memprof_paths::is_vms(path.as_bytes()),
            Frame::Native(_) => false,
        };
        let is_caller = |node: &u32| match self.frame(*node) {
            Frame::Native(native) => !native.is_operator_new(),
            Frame::Ruby { .. } => true,
        };
        let at = self.path(node).find(is_users);
        let at = at.or_else(|| self.path(node).find(is_ruby));
        let at = at.or_else(|| self.path(node).find(is_caller));
        self.frame(at.unwrap_or(node))
    }

    /// Removes all stacks but those that allocated at a location.
    pub fn only_at(&mut self, location: &str) {
        let counts = std::mem::take(&mut self.counts);
        let is_there = |(node, _): &(u32, Counts)| self.location(*node) == location;
        self.counts = counts.into_iter().filter(is_there).collect();
    }

    /// Sum of all allocations.
    #[must_use]
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for (_, counts) in &self.counts {
            total.add(counts);
        }
        total
    }

    /// Allocations by location.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        let mut places: FxHashMap<String, usize> = FxHashMap::default();
        for (node, counts) in &self.counts {
            let place = *places.entry(self.location(*node)).or_insert_with_key(|location| {
                rows.push(Row { location: location.clone(), ..Row::default() });
                rows.len() - 1
            });
            rows[place].counts.add(counts);
        }
        rows
    }
}
