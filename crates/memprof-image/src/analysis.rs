//! An image and the analysis of its memory.

use std::sync::{Arc, OnceLock};

use memprof_recording::LiveBlocks;
use rustc_hash::FxHashMap;

use crate::allocator;
use crate::blocks::{Block, Kind};
use crate::containers::{Container, Containers};
use crate::glibc::GlibcHeap;
use crate::image::{Image, WORD};
use crate::memory_map::MemoryMap;
use crate::questions::LastMembers;
use crate::recorded::{Mismatch, Recorded};
use crate::references::{Node, References};
use crate::ruby_heap::{self, Learned};
use crate::ruby_pages::{ObjectType, RubyPages};
use crate::sets::{SetName, Sets};

/// An image, its blocks, Ruby's pages, and the references between them.
#[derive(Debug)]
pub struct Analysis {
    /// The memory.
    pub image: Image,
    /// Ruby's heap.
    pub ruby: RubyPages,
    /// malloc's heap.
    pub heap: GlibcHeap,
    /// The rest of the writable memory.
    pub map: MemoryMap,
    references: OnceLock<References>,
    containers: OnceLock<Containers>,
    sets: Sets,
    recorded: OnceLock<Recorded>,
    /// By the address of the class.
    class_names: OnceLock<FxHashMap<u64, String>>,
    pub(crate) learned: OnceLock<Arc<Learned>>,
    pub(crate) last_members: LastMembers,
}

impl Analysis {
    /// Reads the pages and blocks of an image; references are found on demand.
    #[must_use]
    pub fn new(image: Image) -> Analysis {
        let ruby = RubyPages::find(&image);
        let pages: Vec<_> = ruby.ranges().collect();
        let heap = allocator::of_program(GlibcHeap::read(&image, &pages), &ruby, &image);
        let map = MemoryMap::new(&image, &heap, &ruby);
        Analysis::of_parts(image, ruby, heap, map)
    }

    pub(crate) fn of_parts(
        image: Image,
        ruby: RubyPages,
        heap: GlibcHeap,
        map: MemoryMap,
    ) -> Analysis {
        Analysis {
            image,
            ruby,
            heap,
            map,
            references: OnceLock::new(),
            containers: OnceLock::new(),
            sets: Sets::default(),
            recorded: OnceLock::new(),
            class_names: OnceLock::new(),
            learned: OnceLock::new(),
            last_members: LastMembers::default(),
        }
    }

    /// Bytes used by the analysis itself: mostly blocks and references.
    #[must_use]
    pub fn memsize(&self) -> usize {
        let references = self.references.get().map_or(0, |references| {
            let graph = references.graph();
            (graph.offsets.len() + graph.targets.len()) * 4
        });
        let recorded = self.recorded().map_or(0, Recorded::memsize);
        let containers = self.containers.get().map_or(0, Containers::memsize);
        size_of::<Analysis>() + self.heap.blocks.len() * 16 + references + containers + recorded
    }

    /// Adds the allocation sites from a recording of the same process; only the first matching recording counts. `pids` are the
    /// process's ids in other namespaces.
    ///
    /// # Errors
    ///
    /// If the recording is of another process, or has no addresses.
    pub fn add_recording(&self, live: LiveBlocks, pids: &[u64]) -> Result<(), Mismatch> {
        let recorded = Recorded::new(live, &self.image, &self.heap.blocks, pids)?;
        let _ = self.recorded.set(recorded);
        Ok(())
    }

    /// The facts from a recording, if one was added.
    #[must_use]
    pub fn recorded(&self) -> Option<&Recorded> {
        self.recorded.get()
    }

    /// References between blocks and objects.
    pub fn references(&self) -> &References {
        self.references
            .get_or_init(|| References::find(&self.image, &self.heap.blocks, &self.ruby, &self.map))
    }

    /// The role of a block in a container of the C++ standard library.
    pub fn container(&self, number: u32) -> Option<Container> {
        let containers = (self.containers).get_or_init(|| Containers::find(self));
        containers.of(number)
    }

    /// Whether a block is in a set.
    pub fn contains(&self, set: SetName, number: u32) -> bool {
        let blocks = &self.heap.blocks;
        // These do not need references, which are the slowest to find.
        let kind = blocks.get(number).map(|block| block.kind);
        match set {
            SetName::Allocations => kind.is_some(),
            SetName::Used => kind == Some(Kind::Used),
            SetName::Free => kind.is_some_and(|kind| kind != Kind::Used),
            SetName::ThreadCached => kind == Some(Kind::ThreadCached),
            _ => self.sets.contains(self.references(), blocks, set, number),
        }
    }

    /// Whether a block or an object is reachable from outside of malloc's memory and Ruby's heap.
    pub fn is_anchored(&self, node: u32) -> bool {
        self.sets.anchored(self.references()).contains(node)
    }

    /// The node that an address points into.
    pub fn node_at(&self, address: u64) -> Option<u32> {
        self.references().node_at(&self.heap.blocks, &self.ruby, address)
    }

    /// The slot of Ruby's heap that contains an address, not only at its beginning.
    pub fn object_around(&self, address: u64) -> Option<u32> {
        let page = &self.ruby.pages[self.ruby.containing(address)?];
        let offset = address.checked_sub(page.slots)?;
        self.node_at(address - offset % page.slot_size)
    }

    /// The block or slot of a node.
    pub fn node(&self, node: u32) -> Node {
        self.references().node(&self.ruby, node)
    }

    /// The block with a number.
    #[must_use]
    pub fn block(&self, number: u32) -> Option<Block> {
        self.heap.blocks.get(number)
    }

    /// The node of the Ruby object that owns a block.
    pub fn owner_node(&self, number: u32) -> Option<u32> {
        self.sets.owner(self.references(), number)
    }

    /// The address of the Ruby object that owns a block, and whether it references the block directly.
    pub fn owner(&self, number: u32) -> Option<(u64, bool)> {
        let references = self.references();
        let owner = self.owner_node(number)?;
        let directly = references.graph().edges(owner).any(|target| target == number);
        match self.node(owner) {
            Node::Slot(address) => Some((address, directly)),
            Node::Block(_) => None,
        }
    }

    /// The type of a block's owner, if it is a Ruby object that references the block directly.
    pub(crate) fn direct_owner(&self, number: u32) -> Option<ObjectType> {
        if self.ruby.pages.is_empty() {
            return None;
        }
        let owner = self.owner(number).filter(|(_, directly)| *directly);
        self.object_type(owner?.0)
    }

    /// The type of the object at an address; None if the slot is empty.
    #[must_use]
    pub fn object_type(&self, address: u64) -> Option<ObjectType> {
        ObjectType::of_flags(self.image.word(address)?)
    }

    /// The name of the class of the object at an address, if it has one.
    #[must_use]
    pub fn class_of(&self, address: u64) -> Option<&str> {
        // VM-internal objects have something else in place of their class.
        let kind = self.object_type(address)?.name();
        if matches!(kind, "IMEMO" | "ICLASS" | "NODE") {
            return None;
        }
        let class = self.image.word(address.checked_add(WORD)?)?;
        let names = self.class_names.get_or_init(|| ruby_heap::class_names(self));
        names.get(&class).map(String::as_str)
    }

    /// The first word of a block if it points to read-only memory of a file, as vtable pointers do.
    #[must_use]
    pub fn signature(&self, block: Block) -> Option<u64> {
        let word = (block.size >= 8).then(|| self.image.word(block.address))??;
        self.is_constant(word).then_some(word)
    }

    /// Whether an address is in read-only memory of a file.
    pub(crate) fn is_constant(&self, address: u64) -> bool {
        let segment = self.image.segment(address);
        segment.is_some_and(|segment| segment.file.is_some() && !segment.access.write)
    }

    /// A file and the offset of an address in it, as `libpq.so.5+0x1f2`.
    #[must_use]
    pub fn in_file(&self, address: u64) -> Option<String> {
        let file = self.image.segment(address)?.file?;
        let path = self.image.files.get(file as usize)?;
        let name = path.rsplit('/').next().unwrap_or(path);
        Some(format!("{name}+{:#x}", address - self.start_of(file)?))
    }

    /// The name of the file whose variables include an address. Covers variables behind the mapping of the file, which are
    /// initially zero.
    #[must_use]
    pub fn library_of(&self, address: u64) -> Option<&str> {
        let mut segment = self.image.segment(address)?;
        if segment.file.is_none() {
            let before = segment.start.checked_sub(1)?;
            segment = self.image.segment(before)?;
        }
        let path = self.image.files.get(segment.file? as usize)?;
        Some(path.rsplit('/').next().unwrap_or(path))
    }

    /// The C++ class whose vtable begins at a signature. The address of the class's `typeinfo` precedes the functions; its second
    /// word is the address of the name (Itanium C++ ABI, 2.5.2 and 2.9.4).
    #[must_use]
    pub fn class_of_cxx(&self, signature: u64) -> Option<String> {
        const LONGEST: usize = 1 << 10;
        let of_file = |address: &u64| {
            let segment = self.image.segment(*address);
            segment.is_some_and(|segment| segment.file.is_some())
        };
        let info = self.image.word(signature.checked_sub(WORD)?);
        let info = info.filter(|info| info % WORD == 0).filter(of_file)?;
        let name = self.image.word(info.checked_add(WORD)?).filter(of_file)?;
        let mut bytes = vec![0; LONGEST];
        let count = self.image.read(name, &mut bytes);
        let length = bytes[..count].iter().position(|byte| *byte == 0)?;
        let mangled = std::str::from_utf8(&bytes[..length]).ok()?;
        // A name to be compared by its address is preceded by a star.
        let mangled = mangled.strip_prefix('*').unwrap_or(mangled);
        let named = memprof_recording::demangled(format!("_ZTS{mangled}"));
        let class = named.strip_prefix("typeinfo name for ")?;
        (!class.is_empty()).then(|| class.to_owned())
    }

    /// The name of a signature: the C++ class, or a place in a file.
    #[must_use]
    pub fn name_of_signature(&self, signature: u64) -> Option<String> {
        self.class_of_cxx(signature).or_else(|| self.in_file(signature))
    }

    /// Whether a place in a file is in read-only memory.
    pub(crate) fn has_constant_place(&self, place: &str) -> bool {
        let Some((name, offset)) = place.rsplit_once("+0x") else {
            return false;
        };
        let Ok(offset) = u64::from_str_radix(offset, 16) else {
            return false;
        };
        let files = (0..).zip(&self.image.files);
        let mut named = files.filter(|(_, path)| path.rsplit('/').next() == Some(name));
        named.any(|(file, _)| {
            let start = self.start_of(file);
            let address = start.and_then(|start| start.checked_add(offset));
            address.is_some_and(|address| self.is_constant(address))
        })
    }

    fn start_of(&self, file: u32) -> Option<u64> {
        let mut segments = self.image.segments.iter();
        let first = segments.find(|segment| segment.file == Some(file))?;
        Some(first.start)
    }
}
