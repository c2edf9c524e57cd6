//! What a dump says of an object, whatever the format.
//!
//! Text that repeats (names of instance variables, classes, methods, files) is interned: records carry a [`NameId`], and
//! [`Tables`] has the text. Contents of objects that have none of their own name carry their bytes ([`Text`]).

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
    /// Line, from 1; 0 if not known.
    pub line: u32,
    /// Method, as `fetch`; `None` outside of one.
    pub method: Option<NameId>,
}

/// Type of a heap slot: Ruby's T_ number (enum ruby_value_type, the same from 3.1 to 4.0); or a block of malloc.
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
    /// A block of malloc, in a number that Ruby does not use.
    pub const BLOCK: Kind = Kind(0x10);
    pub const SYMBOL: Kind = Kind(0x14);
    pub const IMEMO: Kind = Kind(0x1a);
    pub const NODE: Kind = Kind(0x1b);
    pub const ICLASS: Kind = Kind(0x1c);
    pub const ZOMBIE: Kind = Kind(0x1d);
    pub const MOVED: Kind = Kind(0x1e);

    /// Name of the type, as `string`.
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
    /// An Integer that is no heap object.
    Int(i64),
    /// A Float that is no heap object.
    Float(f64),
    /// A Symbol that is no heap object; its name without the colon.
    Symbol(NameId),
    /// A heap object's address.
    Address(u64),
    /// A text about the object, not an object of Ruby's: a path, a method's name.
    Name(NameId),
    /// A text that is JSON itself, for facts with a structure (a thread's backtrace).
    Json(NameId),
}

/// What leads from an object to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Ruby has no name for it.
    None,
    /// Element of an array; counts from 0.
    Index(u32),
    /// Key of a hash. The edge after it is this key's [`Label::Entry`].
    Key,
    /// Value of a hash, under the key of the edge before it.
    Entry,
    /// Instance variable, with its `@`.
    Ivar(NameId),
    /// Class variable, with its `@@`.
    ClassVariable(NameId),
    /// Constant, as `VERSION`.
    Constant(NameId),
    /// Member of a struct, as `name`.
    Member(NameId),
    /// Local variable that a proc or binding captured.
    Local(NameId),
    /// Global variable, with its `$`.
    Global(NameId),
    /// Method of a class or module, as `fetch`.
    Method(NameId),
    /// What the VM keeps for itself, as `super`, `self`, `default`, `shared`, `receiver`, `numerator`.
    Role(NameId),
}

/// One value that an object holds. It is a reference if it is an address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge<'a> {
    /// What leads to it.
    pub label: Label,
    /// The value.
    pub value: Value,
    /// Beginning of the string that a hash key is, for the label of its entry: at most [`PREVIEW`] bytes.
    pub preview: Option<&'a [u8]>,
}

/// Longest [`Edge::preview`], in bytes.
pub const PREVIEW: usize = 64;

/// State of a string's bytes, as Ruby remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CodeRange {
    Unknown,
    SevenBit,
    Valid,
    Broken,
}

/// What is written of a text, as the `values:` option says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// All of it.
    Full(&'a [u8]),
    /// Its beginning.
    Truncated(&'a [u8]),
    /// A mark that equal texts share.
    Mark(u64),
    /// Nothing (only its length, if that is there).
    Absent,
}

/// Bytes of a string, symbol, regexp or bignum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// Length in bytes; `None` if it is not to be written.
    pub length: Option<u64>,
    /// Bytes the string has room for, where Ruby distinguishes it from the length.
    pub capacity: Option<u64>,
    /// Name of the encoding, as `UTF-8`.
    pub encoding: NameId,
    /// State of the bytes.
    pub coderange: CodeRange,
    /// The bytes.
    pub content: Content<'a>,
}

/// What is known of an object by its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detail<'a> {
    /// Nothing more.
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
        /// True if `default` is a proc to call.
        default_proc: bool,
    },
    /// T_OBJECT: number of instance variables, as objspace counts them.
    Object {
        /// Slots for instance variables.
        ivars: u64,
    },
    /// T_CLASS, T_MODULE, T_ICLASS. A singleton class has [`Flags::SINGLETON`].
    Class {
        /// Name; `None` for an anonymous one.
        name: Option<NameId>,
        /// Name of the first ancestor of an anonymous class that has one.
        real_name: Option<NameId>,
        /// Address of the superclass, 0 if there is none.
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
    /// T_IMEMO: an object of the VM's own.
    Imemo {
        /// Its kind, as `iseq`.
        name: NameId,
        /// Method that a call names (callinfo).
        mid: Option<NameId>,
        /// Method that was called (callcache).
        called_id: Option<NameId>,
        /// Class it was called on (callcache); 0 if there is none.
        receiver_class: u64,
    },
}

/// A fact that has no place in [`Detail`], as `lambda` of a proc.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Key.
    pub name: NameId,
    /// Value.
    pub value: Value,
}

/// When and where an object was allocated, if it was tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Where.
    pub site: SiteId,
    /// The innermost line of the application on that stack, if the site is in a library.
    pub caller: Option<SiteId>,
    /// Number of collections before.
    pub generation: u64,
    /// Microseconds since the epoch at the beginning of that generation; 0 if not known.
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
    /// Name of the class that Ruby's `class` method answers; `None` for internal objects.
    pub class_name: Option<NameId>,
    /// Bytes of the slot.
    pub slot_size: u32,
    /// Bytes of the slot and of what the object holds by malloc.
    pub memsize: u64,
    /// Number of the shape (Ruby 3.2 and later).
    pub shape_id: Option<u32>,
    /// True or false.
    pub flags: Flags,
    /// Collections survived, as the collector counts them (Ruby 4.0 and later).
    pub age: Option<u8>,
    /// `object_id`, for an object that was asked for it (Ruby 4.0 and later).
    pub object_id: Option<u64>,
    /// By type.
    pub detail: Detail<'a>,
    /// More facts, in the order to write them.
    pub fields: &'a [Field],
    /// When and where it was allocated.
    pub allocation: Option<Allocation>,
}

/// A shape: how the instance variables of objects lie (Ruby 3.2 and later).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Address.
    pub address: u64,
    /// Number.
    pub id: u64,
    /// Number of the shape it grew from; `None` for a root.
    pub parent_id: Option<u64>,
    /// Steps to the root.
    pub depth: u64,
    /// ROOT, IVAR, OBJ_ID, FROZEN, T_OBJECT, OBJ_TOO_COMPLEX.
    pub shape_type: NameId,
    /// Name of the instance variable that was added.
    pub edge_name: Option<NameId>,
    /// Shapes that grew from it.
    pub edges: u64,
    /// Bytes.
    pub memsize: u64,
}

/// What a note, a line about the process or the whole heap, is about.
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

/// What was written, for the last line and the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Objects.
    pub objects: u64,
    /// References to heap objects (edges whose value is an address; the class of an object is none).
    pub references: u64,
    /// Sum of the objects' memsizes.
    pub memsize: u64,
    /// References from roots.
    pub roots: u64,
    /// Shapes.
    pub shapes: u64,
}
