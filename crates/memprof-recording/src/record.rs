//! Records: numbers of 7 bits a byte, least significant first. The low three bits of the first are the type.

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
const ADDRESSES: u64 = 3;

/// Longer texts are truncated.
const MOST_TEXT: usize = 1 << 14;

/// log2 of the alignment of block addresses: no allocator aligns less.
const ALIGNMENT_BITS: u32 = 3;

/// The allocation or free of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The allocating stack.
    pub node: u64,
    /// Requested bytes.
    pub size: u64,
    /// Its address; 0 in a recording without addresses.
    pub address: u64,
}

/// Encodes addresses of events as differences to the previous event's in the same file block, since blocks allocated together
/// are close. Recordings have no addresses until a record enables them.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    are_there: bool,
    last: u64,
}

impl Addresses {
    /// A file block can be read without those before it.
    pub fn begin_block(&mut self) {
        self.last = 0;
    }

    /// Alternates positive and negative differences (zigzag), so that small ones have small numbers.
    fn put(&mut self, out: &mut Vec<u8>, address: u64) {
        if self.are_there {
            let place = address >> ALIGNMENT_BITS;
            let difference = place.wrapping_sub(self.last) as i64;
            self.last = place;
            put(out, (difference << 1 ^ difference >> 63) as u64);
        }
    }

    fn take(&mut self, records: &mut Numbers<'_>) -> Option<u64> {
        if !self.are_there {
            return Some(0);
        }
        let number = records.number()?;
        let difference = (number >> 1) ^ (number & 1).wrapping_neg();
        self.last = self.last.wrapping_add(difference);
        Some(self.last << ALIGNMENT_BITS)
    }
}

/// One record. Frames and nodes are numbered from 1 in their order in the file, and defined before they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A block was allocated.
    Allocation(Event),
    /// A recorded block was freed.
    Free(Event),
    /// The time of the following events.
    Clock {
        /// Milliseconds since the start.
        ms: u64,
        /// RSS of the process in bytes.
        rss: u64,
    },
    /// The next frame: a Ruby line.
    RubyFrame {
        /// File, as named by Ruby.
        path: &'a [u8],
        /// Its line.
        line: u64,
        /// Method; may be empty.
        method: &'a [u8],
    },
    /// The next frame: native code.
    NativeFrame {
        /// Return address of the call.
        address: u64,
        /// Offset from the module's load address.
        offset: u64,
        /// Path of the module; empty if unknown.
        module: &'a [u8],
    },
    /// The next node of the stack tree.
    Node {
        /// The node of its caller; 0 if unknown.
        parent: u64,
        /// Its frame.
        frame: u64,
    },
    /// The function of a native frame.
    Name {
        /// The frame.
        frame: u64,
        /// Offset of the address within the function.
        distance: u64,
        /// Its name.
        function: &'a [u8],
    },
    /// The first record.
    Start {
        /// Process.
        pid: u64,
        /// Start time, in milliseconds since 1970.
        time: u64,
        /// The recorded command.
        command: &'a [u8],
    },
    /// Only samples are recorded. Precedes the first block.
    Samples {
        /// Average bytes between samples.
        period: u64,
    },
    /// Events have addresses. Precedes the first block.
    Addresses,
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
    pub(crate) fn write(&self, out: &mut Vec<u8>, addresses: &mut Addresses) {
        let mut event = |kind, event: Event| {
            head(out, kind, event.node);
            put(out, event.size);
            addresses.put(out, event.address);
        };
        match *self {
            Record::Allocation(block) => event(ALLOCATION, block),
            Record::Free(block) => event(FREE, block),
            Record::Clock { ms, rss } => {
                head(out, CLOCK, ms);
                put(out, rss);
            }
            Record::RubyFrame { path, line, method } => {
                head(out, RUBY_FRAME, line);
                put_text(out, path);
                put_text(out, method);
            }
            Record::NativeFrame { address, offset, module } => {
                head(out, NATIVE_FRAME, offset);
                put(out, address);
                put_text(out, module);
            }
            Record::Node { parent, frame } => {
                head(out, NODE, parent);
                put(out, frame);
            }
            Record::Name { frame, distance, function } => {
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
            Record::Addresses => {
                head(out, OTHER, ADDRESSES);
                addresses.are_there = true;
            }
            Record::End { missed } => {
                head(out, OTHER, END);
                put(out, missed);
            }
        }
    }
}

/// Reads records from a block of the file.
pub(crate) struct Records<'a> {
    numbers: Numbers<'a>,
    addresses: &'a mut Addresses,
}

/// The remaining bytes.
struct Numbers<'a>(&'a [u8]);

impl<'a> Records<'a> {
    pub fn new(block: &'a [u8], addresses: &'a mut Addresses) -> Records<'a> {
        addresses.begin_block();
        Records { numbers: Numbers(block), addresses }
    }

    /// The next record; None at the end, or if it is invalid: then bytes remain.
    pub fn next(&mut self) -> Option<Record<'a>> {
        let before = self.numbers.0;
        let record = self.take();
        if record.is_none() {
            self.numbers.0 = before;
        }
        record
    }

    /// Whether no bytes remain.
    pub fn is_at_end(&self) -> bool {
        self.numbers.0.is_empty()
    }

    fn take(&mut self) -> Option<Record<'a>> {
        let numbers = &mut self.numbers;
        let head = numbers.number()?;
        let number = head >> KIND_BITS;
        let event = |numbers: &mut Numbers<'_>, addresses: &mut Addresses| {
            Some(Event { node: number, size: numbers.number()?, address: addresses.take(numbers)? })
        };
        Some(match head & ((1 << KIND_BITS) - 1) {
            ALLOCATION => Record::Allocation(event(numbers, self.addresses)?),
            FREE => Record::Free(event(numbers, self.addresses)?),
            CLOCK => Record::Clock { ms: number, rss: numbers.number()? },
            RUBY_FRAME => {
                Record::RubyFrame { line: number, path: numbers.text()?, method: numbers.text()? }
            }
            NATIVE_FRAME => Record::NativeFrame {
                offset: number,
                address: numbers.number()?,
                module: numbers.text()?,
            },
            NODE => Record::Node { parent: number, frame: numbers.number()? },
            NAME => Record::Name {
                frame: number,
                distance: numbers.number()?,
                function: numbers.text()?,
            },
            _ if number == START => Record::Start {
                pid: numbers.number()?,
                time: numbers.number()?,
                command: numbers.text()?,
            },
            _ if number == SAMPLES => Record::Samples { period: numbers.number()? },
            _ if number == ADDRESSES => {
                self.addresses.are_there = true;
                Record::Addresses
            }
            _ if number == END => Record::End { missed: numbers.number()? },
            _ => return None,
        })
    }
}

impl<'a> Numbers<'a> {
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
