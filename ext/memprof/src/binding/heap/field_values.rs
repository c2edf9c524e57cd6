//! Numbers of objects by field, for sums and orders.

use std::io;

use magnus::{Error, Ruby};
use memprof_analysis::query::Field;
use memprof_heap::{Heap, NONE};

/// Fields that are numbers of each object.
const FIELDS: [Field; 7] = [
    Field::Size,
    Field::Retained,
    Field::Length,
    Field::Slot,
    Field::References,
    Field::Generation,
    Field::Address,
];

/// The field of a name.
pub fn field(ruby: &Ruby, name: &str) -> Result<Field, Error> {
    let found = Field::parse(name).filter(|field| FIELDS.contains(field));
    found.ok_or_else(|| {
        let known: Vec<&str> = FIELDS.iter().map(|field| field.name()).collect();
        let message = format!(
            "no sum or order by {name:?}; expected one of: {}",
            known.join(", ")
        );
        Error::new(ruby.exception_arg_error(), message)
    })
}

/// What a field is of each object; 0 where it is not known.
pub fn values<'h>(heap: &'h Heap, field: Field) -> io::Result<Box<dyn Fn(u32) -> u64 + 'h>> {
    let column = |column: &'h [u32]| -> Box<dyn Fn(u32) -> u64 + 'h> {
        Box::new(move |id| {
            let value = column
                .get(id as usize)
                .copied()
                .filter(|&value| value != NONE);
            value.map_or(0, u64::from)
        })
    };
    Ok(match field {
        Field::Retained => {
            let sizes = heap.retained()?;
            Box::new(|id| sizes.get(id))
        }
        Field::Length => column(heap.lengths()?),
        Field::Generation => column(heap.generations()?),
        Field::Slot => Box::new(|id| u64::from(heap.slot_size(id))),
        Field::Address => Box::new(|id| heap.addresses().of(id)),
        Field::References => {
            let graph = heap.graph(&[])?;
            Box::new(move |id| graph.row(id).len() as u64)
        }
        _ => {
            let sizes = heap.memsizes()?;
            Box::new(|id| sizes.get(id))
        }
    })
}
