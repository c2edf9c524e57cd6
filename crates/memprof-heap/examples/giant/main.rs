//! Writes a generated dump of any size for benchmarking readers: `giant OBJECTS FILE [FORMAT]`, in the binary format by default.
//! The output is never buffered in memory: each address is computed from the object's number.
//!
//! The heap models a shop. Four stores lead to directories, directories to pages of orders, and an order is a small tree:
//! strings, lines that lead back to it, a hash. Lines share products, some orders lead to an older one anywhere, and the orders
//! of some pages form a list that is as long as the heap is large. Some strings at the end are garbage.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Instant;

use memprof_dump::record::{
    Allocation, CodeRange, Content, Detail, Edge, Flags, Kind, Label, NameId, NoteKind, Object,
    Site, SiteId, Tables, Text, Value,
};
use memprof_dump::{Compression, Dump, Format, Options, Writer, create};

mod layout;

use layout::{LISTS, Layout, ORDERS, PAGES, PRODUCTS, SLOT, STORES, address, scattered};

/// GC runs during the program's life.
const GENERATIONS: u64 = 200;

const CLASSES: [&str; layout::CLASSES as usize] =
    ["Object", "Class", "String", "Array", "Hash", "Order", "Line", "Product"];
const OBJECT: usize = 0;
const CLASS: usize = 1;
const STRING: usize = 2;
const ARRAY: usize = 3;
const HASH: usize = 4;
const ORDER: usize = 5;
const LINE: usize = 6;
const PRODUCT: usize = 7;

const ORDER_IVARS: [&str; 7] =
    ["@number", "@customer", "@lines", "@address", "@memo", "@previous", "@next"];
const LINE_IVARS: [&str; 3] = ["@order", "@product", "@count"];

fn to(number: u64) -> Value {
    Value::Address(address(number))
}

fn edge(label: Label, value: Value) -> Edge<'static> {
    Edge { label, value, preview: None }
}

struct Giant {
    dump: Dump,
    tables: Tables,
    layout: Layout,
    names: Names,
    /// One for each class; the objects allocated at it are of that class.
    sites: Vec<SiteId>,
    edges: Vec<Edge<'static>>,
    generation: u64,
}

struct Names {
    classes: [NameId; CLASSES.len()],
    order: [NameId; ORDER_IVARS.len()],
    line: [NameId; LINE_IVARS.len()],
    product: NameId,
    encoding: NameId,
    country: NameId,
    global: NameId,
}

impl Giant {
    fn new(path: &str, format: Format, layout: Layout) -> io::Result<Giant> {
        let options = Options { format, compression: Compression::None, ruby: (3, 3) };
        let mut tables = Tables::default();
        let names = Names {
            classes: CLASSES.map(|name| tables.intern(name)),
            order: ORDER_IVARS.map(|name| tables.intern(name)),
            line: LINE_IVARS.map(|name| tables.intern(name)),
            product: tables.intern("@name"),
            encoding: tables.intern("UTF-8"),
            country: tables.intern("country"),
            global: tables.intern("$queue"),
        };
        let sites = (0..)
            .zip(CLASSES)
            .map(|(number, class)| {
                let file = format!("/shop/app/models/{}.rb", class.to_lowercase());
                let file = tables.intern(&file);
                let method = Some(tables.intern("initialize"));
                tables.intern_site(Site { file, line: 10 + number, method })
            })
            .collect();
        Ok(Giant {
            dump: create(File::create(path)?, options)?,
            tables,
            layout,
            names,
            sites,
            edges: Vec::new(),
            generation: 0,
        })
    }

    fn write(&mut self) -> io::Result<()> {
        let header = r#"{"_id":"header","type":"header","format":"memprof","version":1,"pid":1,"generation":200}"#;
        self.dump.note(&self.tables, NoteKind::Header, header)?;
        let queue = edge(Label::Global(self.names.global), to(Layout::store(2)));
        let roots = [
            ("vm", edge(Label::None, to(OBJECT as u64))),
            ("global_tbl", queue),
            ("machine_context", edge(Label::None, to(Layout::store(3)))),
        ];
        for (category, edge) in roots {
            self.dump.roots(&self.tables, category, &[edge])?;
        }
        for class in 0..CLASSES.len() {
            self.class(class)?;
        }
        for number in 0..PRODUCTS {
            self.product(number)?;
        }
        for store in 0..STORES {
            let directories = 0..self.layout.directories;
            let mine = directories.filter(|&number| Layout::store_of(number) == store);
            self.array(Layout::store(store), mine.map(Layout::directory).collect())?;
        }
        for directory in 0..self.layout.directories {
            let last = (directory * PAGES + PAGES).min(self.layout.pages);
            let pages = (directory * PAGES..last).map(|number| self.layout.page(number));
            let pages = pages.collect();
            self.array(Layout::directory(directory), pages)?;
        }
        for page in 0..self.layout.pages {
            self.generation = page * GENERATIONS / self.layout.pages;
            self.page(page)?;
        }
        for number in self.layout.page(self.layout.pages)..self.layout.objects {
            self.string(number, &format!("garbage {number}"))?;
        }
        Ok(())
    }

    fn object(
        &mut self,
        number: u64,
        class: usize,
        kind: Kind,
        memsize: u64,
        detail: Detail<'_>,
    ) -> io::Result<()> {
        let object = Object {
            address: address(number),
            kind,
            class: address(class as u64),
            class_name: Some(self.names.classes[class]),
            slot_size: SLOT as u32,
            memsize,
            shape_id: None,
            flags: Flags(Flags::WB_PROTECTED.0 | Flags::OLD.0 | Flags::MARKED.0),
            age: None,
            object_id: None,
            detail,
            fields: &[],
            allocation: (class != CLASS).then_some(Allocation {
                site: self.sites[class],
                caller: None,
                generation: self.generation,
                time: 1_700_000_000_000_000 + self.generation * 1_000_000,
            }),
        };
        self.dump.object(&self.tables, &object)?;
        self.dump.edges(&self.tables, &self.edges)?;
        self.edges.clear();
        self.dump.end(&self.tables)
    }

    /// Object has the constants, as in Ruby: the other classes and the first store. Order has the second store in a class
    /// variable.
    fn class(&mut self, class: usize) -> io::Result<()> {
        if class == OBJECT {
            let constants = (1..).zip(&self.names.classes[1..]);
            self.edges
                .extend(constants.map(|(number, &name)| edge(Label::Constant(name), to(number))));
            let name = self.tables.intern("ORDERS");
            let store = to(Layout::store(0));
            self.edges.push(edge(Label::Constant(name), store));
        } else if class == ORDER {
            let name = self.tables.intern("@@recent");
            let store = to(Layout::store(1));
            self.edges.push(edge(Label::ClassVariable(name), store));
        }
        let above = class != OBJECT;
        let detail = Detail::Class {
            name: Some(self.names.classes[class]),
            real_name: None,
            superclass: if above { address(OBJECT as u64) } else { 0 },
            super_name: above.then_some(self.names.classes[OBJECT]),
            variations: None,
        };
        self.object(class as u64, CLASS, Kind::CLASS, 600, detail)
    }

    fn ivars<const N: usize>(&mut self, names: [NameId; N], values: [Value; N]) {
        let pairs = names.into_iter().zip(values);
        self.edges.extend(pairs.map(|(name, value)| edge(Label::Ivar(name), value)));
    }

    fn string(&mut self, number: u64, content: &str) -> io::Result<()> {
        let length = content.len() as u64;
        let text = Text {
            length: Some(length),
            capacity: None,
            encoding: self.names.encoding,
            coderange: CodeRange::SevenBit,
            content: Content::Full(content.as_bytes()),
        };
        // Contents that do not fit into the slot are allocated outside.
        let memsize = SLOT + if length > 23 { length + 1 } else { 0 };
        self.object(number, STRING, Kind::STRING, memsize, Detail::String(text))
    }

    fn array(&mut self, number: u64, elements: Vec<u64>) -> io::Result<()> {
        let elements = (0..).zip(elements);
        self.edges.extend(elements.map(|(index, element)| edge(Label::Index(index), to(element))));
        let length = self.edges.len() as u64;
        let memsize = SLOT + if length > 3 { length * 8 } else { 0 };
        let detail = Detail::Length(length);
        self.object(number, ARRAY, Kind::ARRAY, memsize, detail)
    }

    /// The name is another product's string: leaves are shared, too.
    fn product(&mut self, number: u64) -> io::Result<()> {
        let place = Layout::product(number);
        if number % 2 == 0 {
            return self.string(place, &format!("product {number}"));
        }
        let label = Label::Ivar(self.names.product);
        self.edges.push(edge(label, to(place - 1)));
        let detail = Detail::Object { ivars: 1 };
        self.object(place, PRODUCT, Kind::OBJECT, SLOT, detail)
    }

    fn page(&mut self, page: u64) -> io::Result<()> {
        let list = page % LISTS == LISTS - 1;
        let held = if list { 1 } else { ORDERS };
        let orders = (0..held).map(|order| self.layout.order(page, order));
        let orders = orders.collect();
        self.array(self.layout.page(page), orders)?;
        for order in 0..ORDERS {
            let next = match order + 1 {
                _ if !list => None,
                ORDERS => {
                    let page = page + LISTS;
                    (page < self.layout.pages).then(|| self.layout.order(page, 0))
                }
                next => Some(self.layout.order(page, next)),
            };
            self.order(page * ORDERS + order, self.layout.order(page, order), next)?;
        }
        Ok(())
    }

    fn order(&mut self, number: u64, place: u64, next: Option<u64>) -> io::Result<()> {
        let chance = scattered(number);
        let [customer, lines, first, second, hash, mail, memo] = [1, 2, 3, 4, 5, 6, 7];
        // One in eight leads to an older order.
        let previous = (chance % 8 == 0 && number > 0).then(|| {
            let older = (chance >> 8) % number;
            self.layout.order(older / ORDERS, older % ORDERS)
        });
        let values = [
            Value::Int(number as i64),
            to(place + customer),
            to(place + lines),
            to(place + hash),
            to(place + memo),
            previous.map_or(Value::Nil, to),
            next.map_or(Value::Nil, to),
        ];
        self.ivars(self.names.order, values);
        let ivars = values.len() as u64;
        let memsize = SLOT + ivars * 8;
        let detail = Detail::Object { ivars };
        self.object(place, ORDER, Kind::OBJECT, memsize, detail)?;
        self.string(place + customer, &format!("customer {}", chance % 1_000_000))?;
        self.array(place + lines, vec![place + first, place + second])?;
        for (part, product) in [(first, chance >> 20), (second, chance >> 40)] {
            let values =
                [to(place), to(Layout::product(product)), Value::Int((product % 10) as i64)];
            self.ivars(self.names.line, values);
            let detail = Detail::Object { ivars: 3 };
            self.object(place + part, LINE, Kind::OBJECT, SLOT, detail)?;
        }
        self.edges.extend([
            edge(Label::Key, to(Layout::product(0))),
            Edge { preview: Some(b"product 0"), ..edge(Label::Entry, to(place + mail)) },
            edge(Label::Key, Value::Symbol(self.names.country)),
            edge(Label::Entry, Value::Int((chance % 200) as i64)),
        ]);
        let detail = Detail::Hash { size: 2, default: Value::Nil, default_proc: false };
        self.object(place + hash, HASH, Kind::HASH, SLOT + 128, detail)?;
        self.string(place + mail, &format!("{chance:x}@shop.example.com"))?;
        let text = format!("order {number} is to be left at the door of {}", chance % 97);
        self.string(place + memo, &text)
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [objects, path, rest @ ..] = &arguments[..] else {
        return Err(io::Error::other("giant OBJECTS FILE [FORMAT]"));
    };
    let objects = objects.replace('_', "").parse().map_err(io::Error::other)?;
    let format = rest.first().map_or("binary", String::as_str);
    let format = format.parse().map_err(io::Error::other)?;
    let begin = Instant::now();
    let mut giant = Giant::new(path, format, Layout::of(objects)?)?;
    giant.write()?;
    let counts = giant.dump.finish(&giant.tables, true)?;
    let seconds = begin.elapsed().as_secs_f64();
    writeln!(io::stderr(), "{seconds:.1} s, {} bytes", giant.dump.bytes())?;
    println!("{}", serde_json::to_string(&counts).map_err(io::Error::other)?);
    Ok(())
}
