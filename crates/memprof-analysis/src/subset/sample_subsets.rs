//! For tests: small heaps from short descriptions.

use rustc_hash::FxHashMap;

use memprof_dump::Writer;
use memprof_dump::record::{
    Allocation, Detail, Edge, Flags, Kind, Label, NoteKind, Object, Site, Tables, Value,
};
pub use memprof_dump::testing::Random;
use memprof_heap::{Builder, Heap, Options, Source};

/// An object to create.
#[derive(Clone, Debug)]
pub struct Made {
    pub address: u64,
    pub class: &'static str,
    pub kind: Kind,
    pub size: u64,
    pub references: Vec<u64>,
    /// Generation and line.
    pub allocated: Option<(u64, u32)>,
    pub method: Option<&'static str>,
    pub object_id: Option<u64>,
}

/// An object of 40 bytes.
pub fn made(address: u64, class: &'static str, references: &[u64]) -> Made {
    Made {
        address,
        class,
        kind: match class {
            "Array" => Kind::ARRAY,
            "Hash" => Kind::HASH,
            "String" => Kind::STRING,
            _ => Kind::OBJECT,
        },
        size: 40,
        references: references.to_vec(),
        allocated: None,
        method: None,
        object_id: None,
    }
}

impl Made {
    pub fn allocated(self, generation: u64, line: u32) -> Made {
        Made { allocated: Some((generation, line)), ..self }
    }
}

/// A heap of these objects, in which `vm` references `roots`.
pub fn heap(roots: &[u64], objects: &[Made]) -> Heap {
    heap_of("{}", roots, objects)
}

/// The same with a header.
pub fn heap_of(header: &str, roots: &[u64], objects: &[Made]) -> Heap {
    let mut builder = Builder::new(tempfile::tempfile().expect("a file")).expect("a builder");
    let mut tables = Tables::default();
    builder.note(&tables, NoteKind::Header, header).expect("a note");
    builder.roots(&tables, "vm", &edges(roots)).expect("roots");
    for object in objects {
        let allocation = object.allocated.map(|(generation, line)| {
            let file = tables.intern("app/cache.rb");
            let method = object.method.map(|method| tables.intern(method));
            let site = tables.intern_site(Site { file, line, method });
            Allocation { site, caller: None, generation, time: 0 }
        });
        let record = Object {
            address: object.address,
            kind: object.kind,
            class: 0,
            class_name: (object.kind != Kind::IMEMO).then(|| tables.intern(object.class)),
            slot_size: 40,
            memsize: object.size,
            shape_id: None,
            flags: Flags::default(),
            age: None,
            object_id: object.object_id,
            detail: if object.kind == Kind::IMEMO {
                Detail::Imemo {
                    name: tables.intern("iseq"),
                    mid: None,
                    called_id: None,
                    receiver_class: 0,
                }
            } else {
                Detail::None
            },
            fields: &[],
            allocation,
        };
        builder.object(&tables, &record).expect("an object");
        builder.edges(&tables, &edges(&object.references)).expect("edges");
    }
    builder.end(&tables).expect("an end");
    builder.finish(&tables, false).expect("an end");
    Heap::build(builder, Source::default(), &Options::default()).expect("a heap")
}

fn edges(addresses: &[u64]) -> Vec<Edge<'static>> {
    let edges = addresses.iter().map(|&address| Edge {
        label: Label::None,
        value: Value::Address(address),
        preview: None,
    });
    edges.collect()
}

const CLASSES: [&str; 6] = ["Plan", "Array", "Hash", "String", "Session", "Set"];

/// Objects at 0x100, 0x140, ..., with references between them, some to missing objects.
pub fn random_objects(random: &mut Random) -> Vec<Made> {
    let count = 1 + random.below(24);
    let address = |index: u64| 0x100 + 0x40 * index;
    let dense = 1 + random.below(3);
    (0..count)
        .map(|index| {
            let references: Vec<u64> =
                (0..random.below(2 + dense)).map(|_| address(random.below(count + 1))).collect();
            let class = CLASSES[random.below(CLASSES.len() as u64) as usize];
            Made { size: 40 + 8 * random.below(5), ..made(address(index), class, &references) }
        })
        .collect()
}

/// A heap of random objects, a few of which `vm` references.
pub fn random_heap(random: &mut Random) -> Heap {
    let objects = random_objects(random);
    let roots: Vec<u64> = (0..random.below(4))
        .map(|_| objects[random.below(objects.len() as u64) as usize].address)
        .collect();
    heap(&roots, &objects)
}

/// References by node, in the simplest form.
pub type Naive = FxHashMap<u32, Vec<u32>>;

/// The nodes reachable from some nodes, including these.
pub fn closure(edges: &Naive, from: &[u32]) -> Vec<u32> {
    let mut reached: Vec<u32> = Vec::new();
    let mut open = from.to_vec();
    while let Some(node) = open.pop() {
        if !reached.contains(&node) && edges.contains_key(&node) {
            reached.push(node);
            open.extend(&edges[&node]);
        }
    }
    reached.sort_unstable();
    reached
}

/// Distance from the closest of `from`, for each reachable node.
pub fn distances(edges: &Naive, from: &[u32]) -> FxHashMap<u32, usize> {
    let mut distances: FxHashMap<u32, usize> = FxHashMap::default();
    let mut level: Vec<u32> = from.to_vec();
    let mut distance = 0;
    while !level.is_empty() {
        level.retain(|node| edges.contains_key(node) && !distances.contains_key(node));
        level.sort_unstable();
        level.dedup();
        distances.extend(level.iter().map(|&node| (node, distance)));
        level = level.iter().flat_map(|node| edges[node].clone()).collect();
        distance += 1;
    }
    distances
}
