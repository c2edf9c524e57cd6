//! Builds small heaps by passing records to a [`Builder`].

use crate::{Builder, Heap, Options, Source};
use memprof_dump::Writer;
use memprof_dump::record::{
    Allocation, CodeRange, Content, Detail, Edge, Field, Flags, Kind, Label, NoteKind, Object,
    Site, Tables, Text, Value,
};

/// A description of an object.
#[derive(Clone)]
pub struct Thing {
    pub address: u64,
    pub kind: Kind,
    pub class: String,
    pub size: u64,
    pub slot: u32,
    pub length: Option<u64>,
    pub text: Option<Vec<u8>>,
    /// The mark that the dump has in place of the text.
    pub mark: Option<u64>,
    pub truncated: bool,
    pub site: Option<(String, u32, Option<String>)>,
    /// The application line that called it.
    pub caller: Option<(String, u32)>,
    pub generation: u64,
    pub flags: u32,
    pub shape: Option<u32>,
    /// Type of data, kind of imemo; name of a class.
    pub name: Option<String>,
    pub superclass: u64,
    pub facts: Vec<(String, Fact)>,
    pub edges: Vec<(String, u64)>,
}

#[derive(Clone)]
pub enum Fact {
    Text(String),
    Number(i64),
    Json(String),
}

/// A 40-byte object of this class.
pub fn thing(address: u64, kind: Kind, class: &str) -> Thing {
    Thing {
        address,
        kind,
        class: class.to_owned(),
        size: 40,
        slot: 40,
        length: None,
        text: None,
        mark: None,
        truncated: false,
        site: None,
        caller: None,
        generation: 0,
        flags: 0,
        shape: None,
        name: None,
        superclass: 0,
        facts: Vec::new(),
        edges: Vec::new(),
    }
}

/// A class; objects refer to it if they have its name.
pub fn class(address: u64, name: &str, superclass: u64) -> Thing {
    let mut class = thing(address, Kind::CLASS, "Class").named(name);
    class.superclass = superclass;
    class
}

/// A string.
pub fn string(address: u64, text: &str) -> Thing {
    let mut string = thing(address, Kind::STRING, "String").length(text.len() as u64);
    string.text = Some(text.as_bytes().to_vec());
    string
}

impl Thing {
    pub fn size(mut self, size: u64) -> Thing {
        self.size = size;
        self
    }

    pub fn slot(mut self, slot: u32) -> Thing {
        self.slot = slot;
        self
    }

    pub fn length(mut self, length: u64) -> Thing {
        self.length = Some(length);
        self
    }

    pub fn named(mut self, name: &str) -> Thing {
        self.name = Some(name.to_owned());
        self
    }

    pub fn flags(mut self, flags: Flags) -> Thing {
        self.flags |= flags.0;
        self
    }

    pub fn shape(mut self, shape: u32) -> Thing {
        self.shape = Some(shape);
        self
    }

    pub fn at(mut self, file: &str, line: u32, method: &str, generation: u64) -> Thing {
        let method = (!method.is_empty()).then(|| method.to_owned());
        self.site = Some((file.to_owned(), line, method));
        self.generation = generation;
        self
    }

    /// Call it after [`Thing::at`], which sets the library's line.
    pub fn called_at(mut self, file: &str, line: u32) -> Thing {
        self.caller = Some((file.to_owned(), line));
        self
    }

    pub fn fact(mut self, name: &str, fact: Fact) -> Thing {
        self.facts.push((name.to_owned(), fact));
        self
    }

    pub fn written(self, file: &str, line: i64) -> Thing {
        self.fact("source_file", Fact::Text(file.to_owned()))
            .fact("source_line", Fact::Number(line))
    }

    /// A reference: `@user`, `[3]`, `local user`, `$cache`, `CONST`, `#call`, `self`; unlabeled if empty.
    pub fn to(mut self, label: &str, address: u64) -> Thing {
        self.edges.push((label.to_owned(), address));
        self
    }
}

/// A heap of these objects, which are sorted by address.
pub fn heap(roots: &[(&str, &[u64])], things: &[Thing]) -> Heap {
    heap_of("{}", roots, things)
}

/// The same, with a header.
pub fn heap_of(header: &str, roots: &[(&str, &[u64])], things: &[Thing]) -> Heap {
    let mut tables = Tables::default();
    let mut builder = Builder::new(tempfile::tempfile().expect("a file")).expect("a builder");
    builder.note(&tables, NoteKind::Header, header).expect("a note");
    for (category, addresses) in roots {
        let edges: Vec<Edge<'_>> =
            addresses.iter().map(|&address| edge(&mut tables, "", address)).collect();
        builder.roots(&tables, category, &edges).expect("roots");
    }
    for thing in things {
        write(&mut builder, &mut tables, thing, things);
    }
    builder.finish(&tables, true).expect("finished");
    Heap::build(builder, Source::default(), &Options::default()).expect("a heap")
}

fn edge(tables: &mut Tables, label: &str, address: u64) -> Edge<'static> {
    let label = match label.split_at(label.len().min(1)) {
        ("", _) => Label::None,
        ("@", _) => Label::Ivar(tables.intern(label)),
        ("#", name) => Label::Method(tables.intern(name)),
        ("$", _) => Label::Global(tables.intern(label)),
        ("[", rest) => Label::Index(rest.trim_end_matches(']').parse().unwrap_or(0)),
        _ => match label.strip_prefix("local ") {
            Some(name) => Label::Local(tables.intern(name)),
            None if label.starts_with(char::is_uppercase) => Label::Constant(tables.intern(label)),
            None => Label::Role(tables.intern(label)),
        },
    };
    Edge { label, value: Value::Address(address), preview: None }
}

fn write(builder: &mut Builder, tables: &mut Tables, thing: &Thing, things: &[Thing]) {
    let class = things.iter().find(|other| {
        let named = other.name.as_deref() == Some(&thing.class);
        named && matches!(other.kind, Kind::CLASS | Kind::MODULE)
    });
    let name = thing.name.as_deref().map(|name| tables.intern(name));
    let content = match (&thing.text, thing.mark) {
        (Some(text), _) if thing.truncated => Content::Truncated(text),
        (Some(text), _) => Content::Full(text),
        (None, Some(mark)) => Content::Mark(mark),
        (None, None) => Content::Absent,
    };
    let text = Text {
        length: thing.length,
        capacity: None,
        encoding: tables.intern("UTF-8"),
        coderange: CodeRange::Valid,
        content,
    };
    let detail = match thing.kind {
        Kind::STRING => Detail::String(text),
        Kind::SYMBOL => Detail::Symbol(text),
        Kind::CLASS | Kind::MODULE | Kind::ICLASS => Detail::Class {
            name,
            real_name: None,
            superclass: thing.superclass,
            super_name: None,
            variations: None,
        },
        Kind::DATA => Detail::Data { type_name: name },
        Kind::IMEMO => Detail::Imemo {
            name: name.unwrap_or_else(|| tables.intern("iseq")),
            mid: None,
            called_id: None,
            receiver_class: 0,
        },
        _ => thing.length.map_or(Detail::None, Detail::Length),
    };
    let fields: Vec<Field> = thing
        .facts
        .iter()
        .map(|(name, fact)| Field {
            name: tables.intern(name),
            value: match fact {
                Fact::Text(text) => Value::Name(tables.intern(text)),
                Fact::Number(number) => Value::Int(*number),
                Fact::Json(text) => Value::Json(tables.intern(text)),
            },
        })
        .collect();
    let allocation = thing.site.as_ref().map(|(file, line, method)| {
        let site = Site {
            file: tables.intern(file),
            line: *line,
            method: method.as_deref().map(|method| tables.intern(method)),
        };
        let caller = thing.caller.as_ref().map(|(file, line)| Site {
            file: tables.intern(file),
            line: *line,
            method: None,
        });
        Allocation {
            site: tables.intern_site(site),
            caller: caller.map(|caller| tables.intern_site(caller)),
            generation: thing.generation,
            time: 0,
        }
    });
    let class_name = (!thing.class.is_empty()).then(|| tables.intern(&thing.class));
    let object = Object {
        address: thing.address,
        kind: thing.kind,
        class: class.map_or(0, |class| class.address),
        class_name,
        slot_size: thing.slot,
        memsize: thing.size,
        shape_id: thing.shape,
        flags: Flags(thing.flags),
        age: None,
        object_id: None,
        detail,
        fields: &fields,
        allocation,
    };
    builder.object(tables, &object).expect("an object");
    let edges: Vec<Edge<'_>> =
        thing.edges.iter().map(|(label, address)| edge(tables, label, *address)).collect();
    builder.edges(tables, &edges).expect("edges");
    builder.end(tables).expect("an end");
}

/// Pseudorandom numbers.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// The address of a numbered object in [`random`].
pub fn address(number: u64) -> u64 {
    0x7f00_0000_0000 + 40 * number
}

/// Objects of all kinds with random references, some of them garbage.
pub fn random(seed: u64, count: u64) -> (Vec<Thing>, Heap) {
    let mut random = Random(seed);
    let names = ["Object", "Shop::Order", "Shop::Item", "Shop", "Session"];
    let mut things: Vec<Thing> = names
        .iter()
        .zip(0..)
        .map(|(name, number)| {
            class(
                address(number),
                name,
                if number == 0 { 0 } else { address(random.below(number)) },
            )
        })
        .collect();
    for number in things.len() as u64..count {
        let name = names[random.below(names.len() as u64) as usize];
        let mut made = match random.below(6) {
            0 => string(address(number), &format!("text {}", random.below(5))),
            1 => thing(address(number), Kind::ARRAY, "Array").length(random.below(20)),
            2 => thing(address(number), Kind::IMEMO, "").named("iseq"),
            _ => thing(address(number), Kind::OBJECT, name).shape(random.below(4) as u32),
        };
        made.size = 40 + random.below(4) * random.below(2000);
        if random.below(3) != 0 {
            let file =
                ["app/a.rb", "/gems/rack-3.1.0/lib/b.rb", "lib/c.rb"][random.below(3) as usize];
            let method = ["fetch", ""][random.below(2) as usize];
            made = made.at(file, random.below(3) as u32, method, random.below(6));
        }
        if random.below(4) == 0 {
            made = made.flags(Flags::FROZEN);
        }
        for _ in 0..random.below(4) {
            made = made.to("", address(random.below(count)));
        }
        things.push(made);
    }
    let roots: Vec<u64> = (0..count / 12 + 1).map(|_| address(random.below(count))).collect();
    let (vm, stack) = roots.split_at(roots.len() / 2);
    let heap = heap_of("{\"generation\":5}", &[("vm", vm), ("machine_context", stack)], &things);
    (things, heap)
}
