//! Records: numbers of 7 bits a byte, least significant first. The low three bits of the first say what it is.

const ALLOCATION: u64 = 0;
const FREE: u64 = 1;
const CLOCK: u64 = 2;
const RUBY_FRAME: u64 = 3;
const NATIVE_FRAME: u64 = 4;
const NODE: u64 = 5;
const NAME: u64 = 6;
const OTHER: u64 = 7;
const KIND_BITS: u32 = 3;

const START: u64 = 0;
const END: u64 = 1;
const SAMPLES: u64 = 2;

/// Longer texts are cut off.
const MOST_TEXT: usize = 1 << 14;

/// A block that was allocated or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The stack that allocated it.
    pub node: u64,
    /// Bytes asked for.
    pub size: u64,
}

/// One record. Frames and nodes are numbered from 1 in their order in the file, and defined before they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A block was allocated.
    Allocation(Event),
    /// A block of the recording was freed.
    Free(Event),
    /// What follows happened at this time.
    Clock {
        /// Milliseconds since the start.
        ms: u64,
        /// RSS of the process in bytes.
        rss: u64,
    },
    /// The next frame: a line of Ruby.
    RubyFrame {
        /// File as Ruby names it.
        path: &'a [u8],
        /// Its line.
        line: u64,
        /// Method; may be empty.
        method: &'a [u8],
    },
    /// The next frame: native code.
    NativeFrame {
        /// Address behind the call.
        address: u64,
        /// How far it is from where the module begins in memory.
        offset: u64,
        /// Path of the module; empty if it is not known.
        module: &'a [u8],
    },
    /// The next node of the tree of stacks.
    Node {
        /// The node of its caller; 0: none is known.
        parent: u64,
        /// Its frame.
        frame: u64,
    },
    /// The function of a native frame.
    Name {
        /// The frame.
        frame: u64,
        /// How far behind its beginning the address is.
        distance: u64,
        /// Its name.
        function: &'a [u8],
    },
    /// The first record.
    Start {
        /// Process.
        pid: u64,
        /// When it started, in milliseconds since 1970.
        time: u64,
        /// What was run.
        command: &'a [u8],
    },
    /// Only samples are recorded. Comes before the first block.
    Samples {
        /// Bytes between samples on average.
        period: u64,
    },
    /// The last record.
    End {
        /// Blocks that could not be recorded.
        missed: u64,
    },
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(MOST_TEXT)];
    put(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn head(out: &mut Vec<u8>, kind: u64, number: u64) {
    put(out, number << KIND_BITS | kind);
}

impl Record<'_> {
    /// Appends the record.
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Record::Allocation(Event { node, size }) => {
                head(out, ALLOCATION, node);
                put(out, size);
            }
            Record::Free(Event { node, size }) => {
                head(out, FREE, node);
                put(out, size);
            }
            Record::Clock { ms, rss } => {
                head(out, CLOCK, ms);
                put(out, rss);
            }
            Record::RubyFrame { path, line, method } => {
                head(out, RUBY_FRAME, line);
                put_text(out, path);
                put_text(out, method);
            }
            Record::NativeFrame {
                address,
                offset,
                module,
            } => {
                head(out, NATIVE_FRAME, offset);
                put(out, address);
                put_text(out, module);
            }
            Record::Node { parent, frame } => {
                head(out, NODE, parent);
                put(out, frame);
            }
            Record::Name {
                frame,
                distance,
                function,
            } => {
                head(out, NAME, frame);
                put(out, distance);
                put_text(out, function);
            }
            Record::Start { pid, time, command } => {
                head(out, OTHER, START);
                put(out, pid);
                put(out, time);
                put_text(out, command);
            }
            Record::Samples { period } => {
                head(out, OTHER, SAMPLES);
                put(out, period);
            }
            Record::End { missed } => {
                head(out, OTHER, END);
                put(out, missed);
            }
        }
    }
}

/// Takes records from the front of a block.
pub struct Records<'a>(pub &'a [u8]);

impl<'a> Records<'a> {
    /// The next record; None at the end, and where there is no valid one: then bytes are left.
    pub fn next(&mut self) -> Option<Record<'a>> {
        let before = self.0;
        let record = self.take();
        if record.is_none() {
            self.0 = before;
        }
        record
    }

    fn take(&mut self) -> Option<Record<'a>> {
        let head = self.number()?;
        let number = head >> KIND_BITS;
        Some(match head & ((1 << KIND_BITS) - 1) {
            ALLOCATION => Record::Allocation(Event {
                node: number,
                size: self.number()?,
            }),
            FREE => Record::Free(Event {
                node: number,
                size: self.number()?,
            }),
            CLOCK => Record::Clock {
                ms: number,
                rss: self.number()?,
            },
            RUBY_FRAME => Record::RubyFrame {
                line: number,
                path: self.text()?,
                method: self.text()?,
            },
            NATIVE_FRAME => Record::NativeFrame {
                offset: number,
                address: self.number()?,
                module: self.text()?,
            },
            NODE => Record::Node {
                parent: number,
                frame: self.number()?,
            },
            NAME => Record::Name {
                frame: number,
                distance: self.number()?,
                function: self.text()?,
            },
            _ if number == START => Record::Start {
                pid: self.number()?,
                time: self.number()?,
                command: self.text()?,
            },
            _ if number == SAMPLES => Record::Samples {
                period: self.number()?,
            },
            _ if number == END => Record::End {
                missed: self.number()?,
            },
            _ => return None,
        })
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }
}
