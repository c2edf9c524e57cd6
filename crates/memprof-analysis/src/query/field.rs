//! The fields that a query can ask an object for, and sets of them.

use super::nearest::nearest;

/// Type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An integer, at least 0.
    Number,
    /// A number of bytes.
    Size,
    /// A text.
    Text,
    /// True or false.
    Bool,
    /// Where an object is in memory.
    Address,
}

impl Kind {
    /// For people: "number", "size", "text", "bool", "address".
    pub fn name(self) -> &'static str {
        match self {
            Kind::Number => "number",
            Kind::Size => "size",
            Kind::Text => "text",
            Kind::Bool => "bool",
            Kind::Address => "address",
        }
    }
}

/// One row per field: its name in Rust, its name in queries, type, aliases, description.
macro_rules! fields {
    ($($field:ident $name:literal $kind:ident [$($alias:literal)*] $about:literal;)*) => {
        /// A property of an object, to choose, sort or group objects by.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Field {
            $(#[doc = concat!("`", $name, "`: ", $about)] $field,)*
        }

        impl Field {
            /// All fields, in display order.
            pub const ALL: &'static [Field] = &[$(Field::$field),*];

            /// Its name in a query.
            pub fn name(self) -> &'static str {
                match self {
                    $(Field::$field => $name,)*
                }
            }

            /// Type of its values.
            #[inline]
            pub fn kind(self) -> Kind {
                match self {
                    $(Field::$field => Kind::$kind,)*
                }
            }

            /// Other names that a query may use.
            pub fn aliases(self) -> &'static [&'static str] {
                match self {
                    $(Field::$field => &[$($alias),*],)*
                }
            }

            /// Its description, on one line.
            pub fn about(self) -> &'static str {
                match self {
                    $(Field::$field => $about,)*
                }
            }
        }
    };
}

fields! {
    Class "class" Text [] "name of its class";
    Type "type" Text ["kind"] "type in the VM, such as STRING, in lower or upper case; BLOCK for a block of malloc";
    Imemo "imemo" Text ["imemo_type"] "kind of an internal object of the VM, such as iseq";
    Name "name" Text [] "name of a class, module, instruction sequence or thread";
    Value "value" Text ["text"] "text of a string, symbol or regexp";
    Length "length" Number ["elements"] "elements of an array, hash or struct; bytes of a string";
    Size "size" Size ["memsize" "bytes"] "memsize: the slot, and what Ruby allocated outside of it";
    Slot "slot" Size ["slot_size"] "size of its slot";
    Retained "retained" Size ["retained_size"] "its retained size: what would be freed with it";
    File "file" Text ["path"] "file of the line that allocated it";
    Line "line" Number [] "number of the line that allocated it";
    Site "site" Text ["location"] "file and line, such as app.rb:5";
    Method "method" Text [] "method that allocated it";
    Gem "gem" Text [] "gem whose code allocated it";
    Application "application" Text ["own"] "line of the application that allocated it, itself or by a call of a library";
    Generation "generation" Number ["gen"] "number of GC runs before it was allocated";
    Age "age" Number [] "GC runs that it has survived";
    Tracked "tracked" Bool [] "it is known where it was allocated";
    References "references" Number ["refs" "outgoing"] "outgoing references";
    Referrers "referrers" Number ["incoming"] "incoming references";
    Depth "depth" Number ["distance"] "references on the shortest path from a GC root";
    Reachable "reachable" Bool [] "reachable from a GC root; otherwise it is garbage";
    Leaked "leaked" Bool [] "a block of malloc that C code leaked: not even garbage of Ruby references it";
    State "state" Text [] "state of a malloc block: used, free, cached; only queries with it find free ones";
    Root "root" Text ["roots"] "root categories that reference it directly, such as vm";
    Address "address" Address ["addr"] "its address";
    Shape "shape" Number ["shape_id"] "its shape id (Ruby 3.2 and later)";
    Frozen "frozen" Bool [] "frozen";
    Shared "shared" Bool [] "a string or array that shares its contents with another";
    Embedded "embedded" Bool ["embed"] "its contents are in its slot";
    Old "old" Bool [] "in the old generation";
    Singleton "singleton" Bool [] "a singleton class";
    Unshared "unshared" Bool [] "on a page that a worker shared with its parent until one of them wrote to it";
    Change "change" Text [] "between dumps: new, gone, kept, survived";
}

/// Types, without their `T_`.
const TYPES: &[&str] = &[
    "OBJECT", "CLASS", "MODULE", "FLOAT", "STRING", "REGEXP", "ARRAY", "HASH", "STRUCT", "BIGNUM",
    "FILE", "DATA", "MATCH", "COMPLEX", "RATIONAL", "SYMBOL", "IMEMO", "NODE", "ICLASS", "ZOMBIE",
    "MOVED", "BLOCK",
];

const STATES: &[&str] = &["used", "free", "cached"];

const CHANGES: &[&str] = &["new", "gone", "kept", "survived"];

impl Field {
    /// The field that has this name or alias.
    pub fn parse(name: &str) -> Option<Field> {
        let mut fields = Field::ALL.iter().copied();
        fields.find(|field| field.names().any(|known| known == name))
    }

    /// The name or alias that `name` is probably a typo of.
    pub fn nearest(name: &str) -> Option<&'static str> {
        nearest(name, Field::ALL.iter().flat_map(|field| field.names()))
    }

    /// The possible texts of the field, if they are few.
    pub fn values(self) -> Option<&'static [&'static str]> {
        match self {
            Field::Type => Some(TYPES),
            Field::State => Some(STATES),
            Field::Change => Some(CHANGES),
            _ => None,
        }
    }

    /// True if its text is a comma-separated list of names. Comparisons look at each name separately.
    #[inline]
    pub fn is_list(self) -> bool {
        self == Field::Root
    }

    /// True if its numbers may have a unit of bytes.
    pub(super) fn takes_unit(self) -> bool {
        self.kind() == Kind::Size || self == Field::Length
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name()).chain(self.aliases().iter().copied())
    }
}

/// The fields that a query uses, which must be loaded or computed before it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields(u64);

// One bit per field.
const _: () = assert!(Field::ALL.len() <= 64);

impl Fields {
    /// Adds a field.
    pub fn insert(&mut self, field: Field) {
        self.0 |= Fields::bit(field);
    }

    /// True if it is in the set.
    pub fn contains(self, field: Field) -> bool {
        self.0 & Fields::bit(field) != 0
    }

    /// True if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The fields, in the order of [`Field::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Field> {
        let fields = Field::ALL.iter().copied();
        fields.filter(move |field| self.contains(*field))
    }

    fn bit(field: Field) -> u64 {
        1 << field as u32
    }
}

impl FromIterator<Field> for Fields {
    fn from_iter<I: IntoIterator<Item = Field>>(fields: I) -> Fields {
        let mut set = Fields::default();
        fields.into_iter().for_each(|field| set.insert(field));
        set
    }
}
