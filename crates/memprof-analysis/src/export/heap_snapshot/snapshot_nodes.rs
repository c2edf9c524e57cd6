//! The nodes of a snapshot: roots, objects, and summaries of objects that are not in the file.

use std::io;

use super::super::naming;
use super::{META, Snapshot};
use memprof_dump::record::Kind;

/// Types of nodes, by their position in the header.
mod types {
    pub const HIDDEN: u8 = 0;
    pub const STRING: u8 = 2;
    pub const OBJECT: u8 = 3;
    pub const CODE: u8 = 4;
    pub const CLOSURE: u8 = 5;
    pub const REGEXP: u8 = 6;
    pub const NUMBER: u8 = 7;
    pub const NATIVE: u8 = 8;
    pub const SYNTHETIC: u8 = 9;
    pub const SYMBOL: u8 = 12;
    pub const BIGINT: u8 = 13;
}

impl Snapshot<'_, '_> {
    pub(super) fn nodes(&mut self) -> io::Result<()> {
        let edges: u64 = self.degrees.iter().map(|&degree| u64::from(degree)).sum();
        self.out.push(META);
        self.out.push("\"node_count\":");
        self.out.number(self.degrees.len());
        self.out.push(",\"edge_count\":");
        self.out.number(edges);
        self.out.push(",\"trace_function_count\":0},\n\"nodes\":[");
        let loose = if self.has_roots() { "(unreachable)" } else { "(held by others)" };
        self.synthetic(0, "", 0);
        self.synthetic(1, "(GC roots)", 0);
        for category in 0..self.categories() {
            let name = naming::shown(&self.heap.categories()[category as usize].name).into_owned();
            self.synthetic(2 + category, &name, 0);
        }
        self.synthetic(self.loose(), loose, 0);
        let memsizes = self.heap.memsizes()?;
        let choice = self.choice;
        let addresses = self.heap.addresses();
        for (id, at) in
            choice.nodes.iter().take_while(|&id| id < self.heap.len()).zip(self.first_object()..)
        {
            let name = self.name(id)?;
            self.names.push(name);
            let kind = self.kind(id);
            let address = addresses.of(id);
            self.node(at, kind, name, (address >> 3) as u32, memsizes.get(id));
            self.out.flush_if_full()?;
        }
        for (more, at) in choice.more.iter().zip(self.first_more()..) {
            self.synthetic(at, &format!("({} more)", more.objects), more.size);
        }
        self.out.flush_if_full()
    }

    fn synthetic(&mut self, at: u32, name: &str, size: u64) {
        let name = self.strings.text(name);
        self.node(at, types::SYNTHETIC, name, at + 1, size);
    }

    fn node(&mut self, at: u32, kind: u8, name: u32, id: u32, size: u64) {
        self.out.push(if at == 0 { "" } else { ",\n" });
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        self.out.number(kind);
        for number in [name, id, size, self.degrees[at as usize]] {
            self.out.text.push(b',');
            self.out.number(number);
        }
        self.out.push(",0,0");
    }

    fn kind(&self, id: u32) -> u8 {
        match self.naming.kind(id) {
            Kind::STRING => types::STRING,
            Kind::SYMBOL => types::SYMBOL,
            Kind::REGEXP => types::REGEXP,
            Kind::BIGNUM => types::BIGINT,
            Kind::FLOAT | Kind::COMPLEX | Kind::RATIONAL => types::NUMBER,
            Kind::IMEMO | Kind::NODE => types::CODE,
            Kind::BLOCK => types::NATIVE,
            Kind::DATA if self.naming.class(id) == "Proc" => types::CLOSURE,
            // DevTools adds the size of hidden nodes to their owner, so nodes with an owner are not hidden.
            Kind::NONE | Kind::ZOMBIE | Kind::MOVED => types::HIDDEN,
            _ => types::OBJECT,
        }
    }

    /// Contents of strings, names of classes; other objects are named by their class, by which DevTools groups them.
    fn name(&mut self, id: u32) -> io::Result<u32> {
        match self.naming.kind(id) {
            Kind::CLASS | Kind::MODULE | Kind::ICLASS => {
                let title = self.naming.class_title(id);
                return Ok(self.strings.text(&naming::shown(&title)));
            }
            Kind::STRING | Kind::SYMBOL | Kind::REGEXP | Kind::BIGNUM => {
                if let Some(text) = self.naming.text(id)?.as_ref().and_then(naming::beginning) {
                    return Ok(self.strings.text(&text));
                }
            }
            _ => {}
        }
        let (number, class) = (self.naming.class_number(id), self.naming.class(id));
        Ok(self.strings.class(number, || naming::shown(class)))
    }
}
