use super::*;

#[test]
fn an_object_that_gets_a_class_counts_as_if_it_had_been_allocated_with_it() {
    let mut recorder = Recorder::new(1);
    let outer = recorder.open(options(None));
    let segment = recorder.sessions.process_segment().unwrap();
    let first = site(&mut recorder, 1);
    let named = recorder.sites.get(first).unwrap();
    let hidden = recorder.sites.class("<string>");
    let hidden = recorder.sites.site(Site {
        class: hidden,
        ..named
    });
    let cell = recorder.cell(segment, hidden);
    for address in [40, 80, 120] {
        recorder.allocated(address, cell, || 40);
    }
    // Its session is closed before: the cell is joined to another one.
    let inner = recorder.open(options(None));
    let segment = recorder.sessions.process_segment().unwrap();
    let cell = recorder.cell(segment, hidden);
    recorder.allocated(160, cell, || 40);
    recorder.close(inner);
    for address in [80, 160] {
        let record = recorder.record(address).unwrap();
        assert!(recorder.is_hidden(record));
        let now = recorder.reveal(record, named.class);
        recorder.replace(address, now);
        assert_eq!(recorder.record(address), Some(now));
        assert!(!recorder.is_hidden(now));
        assert_eq!(now.slot_size(), 40);
    }
    let counts = |recorder: &Recorder| -> Vec<(String, u64, u64)> {
        let rows = recorder.counts(outer, &Survivors::default());
        let row = |row: CountRow| (row.class, row.live, row.allocated.objects);
        rows.into_iter().map(row).collect()
    };
    let row = |class: &str, live, allocated| (class.to_owned(), live, allocated);
    assert_eq!(
        counts(&recorder),
        [row("<string>", 2, 2), row("Object", 2, 2)]
    );
    for address in [40, 80, 160] {
        recorder.freed(address);
    }
    assert_eq!(
        counts(&recorder),
        [row("<string>", 1, 2), row("Object", 0, 2)]
    );
    recorder.close(outer);
    assert_eq!(recorder.live_objects(), 0);
}
