//! Comparisons per second. Run with `cargo test --release -p memprof-analysis -- --ignored --nocapture query`.

use std::borrow::Cow;
use std::hint::black_box;
use std::time::Instant;

use crate::query::{Field, Query, Row};

struct Columns {
    size: Vec<u64>,
    class: Vec<u32>,
    names: Vec<String>,
}

struct At<'a> {
    columns: &'a Columns,
    object: usize,
}

impl Row for At<'_> {
    #[inline]
    fn number(&self, field: Field) -> Option<u64> {
        match field {
            Field::Size => Some(self.columns.size[self.object]),
            Field::Address => Some(40 * self.object as u64),
            _ => None,
        }
    }

    #[inline]
    fn text(&self, field: Field) -> Option<Cow<'_, str>> {
        let key = self.text_key(field)?;
        Some(self.columns.names[key as usize].as_str().into())
    }

    #[inline]
    fn truth(&self, field: Field) -> Option<bool> {
        (field == Field::Frozen).then_some(self.object % 3 == 0)
    }

    #[inline]
    fn text_key(&self, field: Field) -> Option<u32> {
        (field == Field::Class).then(|| self.columns.class[self.object])
    }
}

#[test]
#[ignore = "measures; says nothing in a debug build"]
fn of_comparisons() {
    const OBJECTS: usize = 10_000_000;
    let columns = Columns {
        size: (0..OBJECTS as u64).map(|n| n * 7919 % 4096).collect(),
        class: (0..OBJECTS as u32).map(|n| n.wrapping_mul(2_654_435_761) % 2000).collect(),
        names: (0..2000).map(|n| format!("Shop::Order{n}")).collect(),
    };
    for text in [
        "size > 2KiB",
        "size in 1KiB..2KiB",
        "frozen",
        "class =~ /Order1.*7$/",
        "class =~ /Order1.*7$/ and size > 2KiB and frozen",
    ] {
        let query = Query::parse(text).unwrap();
        let mut prepared = query.prepare();
        let columns = black_box(&columns);
        let begin = Instant::now();
        let found = (0..OBJECTS)
            .filter(|object| {
                let object = *object;
                prepared.matches(&At { columns, object })
            })
            .count();
        let rate = OBJECTS as f64 / begin.elapsed().as_secs_f64() / 1e6;
        println!("{rate:6.0} M objects/s, {found:8} found: {text}");
    }
}
