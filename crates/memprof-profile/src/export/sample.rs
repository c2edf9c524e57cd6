//! A small profile for tests of exports: Ruby and C frames, equal names under two ids, hostile names.

use crate::profile::{Ages, Amount, Frame, Meta, Profile, SiteRow, StackNode};

/// Two requests of a program that caches its results.
pub(crate) fn profile() -> Profile {
    let frame = |file, method: &str, first_line, native| Frame {
        file,
        method: method.to_owned(),
        first_line,
        native,
    };
    let node = |parent, frame, line| StackNode { parent, frame, line };
    Profile {
        meta: Meta {
            runtime: "ruby 3.3.0".to_owned(),
            memprof: "0.1.0".to_owned(),
            pid: 42,
            command: "ruby app.rb".to_owned(),
            directory: "/srv/app".to_owned(),
            started_at: 1_700_000_000.5,
            duration: 0.25,
            sample: 1,
            malloc_sample: None,
            stack: 8,
            gc_count: 3,
            incomplete: false,
            peak: None,
        },
        files: ["app.rb", "/g/gems/rack-3.1.0/lib/rack.rb", "", "app.rb"]
            .map(str::to_owned)
            .to_vec(),
        frames: vec![
            frame(0, "<main>", 0, false),
            frame(1, "Rack::Lint#call", 10, false),
            frame(2, "Array#map", 0, true),
            frame(0, "Cache#fetch", 20, false),
            frame(3, "Cache#fetch", 20, false),
            frame(0, "odd;\n\u{2028}\"name\" ü", 1, false),
        ],
        stacks: vec![
            node(None, 0, 1),
            node(Some(0), 1, 12),
            node(Some(1), 3, 22),
            node(Some(2), 2, 0),
            node(Some(1), 4, 22),
            node(Some(4), 2, 0),
            node(Some(0), 5, 3),
        ],
        classes: ["String", "Hash", "Odd;Class"].map(str::to_owned).to_vec(),
        rows: vec![
            row(2, 3, 0, Amount::new(3, 120), Amount::new(1, 40)),
            row(4, 5, 0, Amount::new(2, 80), Amount::new(2, 80)),
            row(2, 2, 1, Amount::new(1, 168), Amount::new(0, 0)),
            row(6, 6, 2, Amount::new(7, 280), Amount::new(0, 0)),
        ],
        ..Profile::default()
    }
}

fn row(site: u32, stack: u32, class: u32, allocated: Amount, retained: Amount) -> SiteRow {
    let freed = Amount::new(allocated.objects - retained.objects, allocated.bytes - retained.bytes);
    let ages = Ages { sum: freed.objects, max: 1 };
    SiteRow { site, stack, class, allocated, retained, freed, ages, peak: Amount::default() }
}
