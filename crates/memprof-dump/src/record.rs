//! The facts of a dump, independent of the format.
//!
//! Repeated text (names of instance variables, classes, methods, files) is interned: records contain a [`NameId`], and
//! [`Tables`] the text. Objects with unique contents contain their bytes ([`Text`]).

pub use super::flags::Flags;
pub use super::name_tables::Tables;

/// Number of an interned text in [`Tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Number of an allocation site in [`Tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(pub u32);

/// Where an object was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Path.
    pub file: NameId,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Method, such as `fetch`; `None` outside of methods.
    pub method: Option<NameId>,
}

/// Type of a heap slot: Ruby's T_ number (enum ruby_value_type, the same from 3.1 to 4.0); or a malloc block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(pub u8);

#[allow(missing_docs)]
impl Kind {
    pub const NONE: Kind = Kind(0x00);
    pub const OBJECT: Kind = Kind(0x01);
    pub const CLASS: Kind = Kind(0x02);
    pub const MODULE: Kind = Kind(0x03);
    pub const FLOAT: Kind = Kind(0x04);
    pub const STRING: Kind = Kind(0x05);
    pub const REGEXP: Kind = Kind(0x06);
    pub const ARRAY: Kind = Kind(0x07);
    pub const HASH: Kind = Kind(0x08);
    pub const STRUCT: Kind = Kind(0x09);
    pub const BIGNUM: Kind = Kind(0x0a);
    pub const FILE: Kind = Kind(0x0b);
    pub const DATA: Kind = Kind(0x0c);
    pub const MATCH: Kind = Kind(0x0d);
    pub const COMPLEX: Kind = Kind(0x0e);
    pub const RATIONAL: Kind = Kind(0x0f);
    /// A malloc block, with a number that Ruby does not use.
    pub const BLOCK: Kind = Kind(0x10);
    pub const SYMBOL: Kind = Kind(0x14);
    pub const IMEMO: Kind = Kind(0x1a);
    pub const NODE: Kind = Kind(0x1b);
    pub const ICLASS: Kind = Kind(0x1c);
    pub const ZOMBIE: Kind = Kind(0x1d);
    pub const MOVED: Kind = Kind(0x1e);

    /// Name of the type, such as `string`.
    pub fn name(self) -> &'static str {
        super::kinds::lower(self)
    }
}

/// A value in a slot of an object, as Ruby sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// nil.
    Nil,
    /// true.
    True,
    /// false.
    False,
    /// The VM's mark for "no value".
    Undef,
    /// An Integer that is not a heap object.
    Int(i64),
    /// A Float that is not a heap object.
    Float(f64),
    /// A Symbol that is not a heap object; its name without the colon.
    Symbol(NameId),
    /// A heap object's address.
    Address(u64),
    /// A text about the object, not a Ruby object: a path, a method's name.
    Name(NameId),
    /// A JSON text, for structured facts (a thread's backtrace).
    Json(NameId),
}

/// The kind and name of a reference from an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Unnamed in Ruby.
    None,
    /// Element of an array, counted from 0.
    Index(u32),
    /// Key of a hash. The next edge is its [`Label::Entry`].
    Key,
    /// Value of a hash, for the key of the previous edge.
    Entry,
    /// Instance variable, with its `@`.
    Ivar(NameId),
    /// Class variable, with its `@@`.
    ClassVariable(NameId),
    /// Constant, such as `VERSION`.
    Constant(NameId),
    /// Member of a struct, such as `name`.
    Member(NameId),
    /// Local variable that a proc or binding captured.
    Local(NameId),
    /// Global variable, with its `$`.
    Global(NameId),
    /// Method of a class or module, such as `fetch`.
    Method(NameId),
    /// Internal reference of the VM: `super`, `self`, `default`, `shared`, `receiver`, `numerator`.
    Role(NameId),
}

/// A value in an object. It is a reference if it is an address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge<'a> {
    /// The label of the value.
    pub label: Label,
    /// The value.
    pub value: Value,
    /// The start of a hash key that is a string, for the label of its entry: at most [`PREVIEW`] bytes.
    pub preview: Option<&'a [u8]>,
}

/// Longest [`Edge::preview`], in bytes.
pub const PREVIEW: usize = 64;

/// State of a string's bytes, as cached by Ruby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CodeRange {
    Unknown,
    SevenBit,
    Valid,
    Broken,
}

/// The written part of a text, according to the `values:` option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// All of it.
    Full(&'a [u8]),
    /// Its beginning.
    Truncated(&'a [u8]),
    /// A mark that equal texts share.
    Mark(u64),
    /// Nothing (except its length, if present).
    Absent,
}

/// Bytes of a string, symbol, regexp or bignum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// Length in bytes; `None` if it must not be written.
    pub length: Option<u64>,
    /// Bytes that the string has room for, where Ruby distinguishes that from the length.
    pub capacity: Option<u64>,
    /// Name of the encoding, such as `UTF-8`.
    pub encoding: NameId,
    /// State of the bytes.
    pub coderange: CodeRange,
    /// The bytes.
    pub content: Content<'a>,
}

/// Facts that depend on the type of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detail<'a> {
    /// No further facts.
    None,
    /// T_STRING. A shared string has [`Flags::SHARED`].
    String(Text<'a>),
    /// T_SYMBOL.
    Symbol(Text<'a>),
    /// T_REGEXP: its source.
    Regexp(Text<'a>),
    /// T_BIGNUM: decimal digits, with a minus sign if negative.
    Bignum(Text<'a>),
    /// T_FLOAT.
    Float(f64),
    /// T_ARRAY, T_STRUCT: number of elements.
    Length(u64),
    /// T_HASH.
    Hash {
        /// Number of entries.
        size: u64,
        /// Default value, or the default proc.
        default: Value,
        /// Whether `default` is a proc to call.
        default_proc: bool,
    },
    /// T_OBJECT: number of instance variables, as counted by objspace.
    Object {
        /// Slots for instance variables.
        ivars: u64,
    },
    /// T_CLASS, T_MODULE, T_ICLASS. A singleton class has [`Flags::SINGLETON`].
    Class {
        /// Name; `None` for an anonymous class.
        name: Option<NameId>,
        /// Name of an anonymous class's first named ancestor.
        real_name: Option<NameId>,
        /// Address of the superclass, 0 if it has none.
        superclass: u64,
        /// Its name.
        super_name: Option<NameId>,
        /// Number of shapes below the class (T_CLASS, Ruby 3.2 and later).
        variations: Option<u32>,
    },
    /// T_DATA.
    Data {
        /// Name of the C struct's type; `None` for an untyped one.
        type_name: Option<NameId>,
    },
    /// T_FILE.
    File {
        /// File descriptor; `None` if it was never opened.
        fd: Option<i32>,
    },
    /// T_IMEMO: an internal object of the VM.
    Imemo {
        /// Its kind, such as `iseq`.
        name: NameId,
        /// Name of the method to call (callinfo).
        mid: Option<NameId>,
        /// Name of the called method (callcache).
        called_id: Option<NameId>,
        /// Class that the method was called on (callcache); 0 if unknown.
        receiver_class: u64,
    },
}

/// A fact without a place in [`Detail`], such as `lambda` of a proc.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Key.
    pub name: NameId,
    /// Value.
    pub value: Value,
}

/// Name of the fact of a malloc block that is not used: `free`, or `cached` by a thread.
pub const STATE: &str = "state";

/// When and where a tracked object was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The allocation site.
    pub site: SiteId,
    /// The innermost application line on that stack, if the site is in a library.
    pub caller: Option<SiteId>,
    /// Number of earlier garbage collections.
    pub generation: u64,
    /// Microseconds since the epoch at the start of that generation; 0 if unknown.
    pub time: u64,
}

/// An object without its edges, which follow it in pieces ([`super::Writer::edges`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object<'a> {
    /// Address of the slot.
    pub address: u64,
    /// Type.
    pub kind: Kind,
    /// Address of the class (the singleton class, if there is one); 0 for internal objects.
    pub class: u64,
    /// Class name as returned by Ruby's `class` method; `None` for internal objects.
    pub class_name: Option<NameId>,
    /// Bytes of the slot.
    pub slot_size: u32,
    /// Bytes of the slot and of the object's malloc'ed memory.
    pub memsize: u64,
    /// Number of the shape (Ruby 3.2 and later).
    pub shape_id: Option<u32>,
    /// Boolean facts.
    pub flags: Flags,
    /// Garbage collections survived, as counted by the GC (Ruby 4.0 and later).
    pub age: Option<u8>,
    /// `object_id`, if it was ever requested (Ruby 4.0 and later).
    pub object_id: Option<u64>,
    /// Facts by type.
    pub detail: Detail<'a>,
    /// More facts, in output order.
    pub fields: &'a [Field],
    /// When and where it was allocated.
    pub allocation: Option<Allocation>,
}

impl Object<'_> {
    /// Whether it is a malloc block that is not used.
    pub fn is_free_block(&self, tables: &Tables) -> bool {
        self.kind == Kind::BLOCK && self.fields.iter().any(|field| tables.name(field.name) == STATE)
    }
}

/// A shape: the layout of objects' instance variables (Ruby 3.2 and later).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Address.
    pub address: u64,
    /// Number.
    pub id: u64,
    /// Number of the parent shape; `None` for a root.
    pub parent_id: Option<u64>,
    /// Steps to the root.
    pub depth: u64,
    /// ROOT, IVAR, OBJ_ID, FROZEN, T_OBJECT, OBJ_TOO_COMPLEX.
    pub shape_type: NameId,
    /// Name of the added instance variable.
    pub edge_name: Option<NameId>,
    /// Number of child shapes.
    pub edges: u64,
    /// Bytes.
    pub memsize: u64,
}

/// The subject of a note, a line about the process or the whole heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum NoteKind {
    Header,
    Finalizers,
    Globals,
    Frame,
    Lsof,
    Ps,
    Footer,
}

/// Counts of written records, for the last line and the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Objects.
    pub objects: u64,
    /// References to heap objects (edges whose value is an address; the class of an object does not count).
    pub references: u64,
    /// Sum of the objects' memsizes.
    pub memsize: u64,
    /// References from roots.
    pub roots: u64,
    /// Shapes.
    pub shapes: u64,
}
