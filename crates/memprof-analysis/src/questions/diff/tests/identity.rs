//! When two objects are the same.

use super::{diff, gone, new};
use crate::questions::Remark;
use crate::subset::sample_subsets::{Made, heap, heap_of, made};
use memprof_dump::record::Kind;

/// Whether an object before and one after at the same address are the same.
fn same(before: Made, after: Made) -> bool {
    let (before, after) = (heap(&[], &[before]), heap(&[], &[after]));
    let diff = diff(&before, &after);
    assert_eq!(new(&diff).is_empty(), gone(&diff).is_empty());
    new(&diff).is_empty()
}

#[test]
fn generation_class_type_and_site_have_to_agree() {
    let tracked = || made(0x10, "A", &[]).allocated(4, 12);
    assert!(same(tracked(), tracked()));
    assert!(!same(tracked(), made(0x10, "A", &[]).allocated(5, 12)));
    assert!(!same(tracked(), made(0x10, "A", &[]).allocated(4, 13)));
    assert!(!same(tracked(), made(0x10, "B", &[]).allocated(4, 12)));
    assert!(!same(tracked(), Made { kind: Kind::DATA, ..tracked() }));
    // An object that grew is still the same.
    assert!(same(tracked(), Made { size: 4000, references: vec![0x10], ..tracked() }));
}

#[test]
fn an_address_is_not_enough_if_one_generation_is_known() {
    let unknown = || made(0x10, "A", &[]);
    assert!(!same(unknown(), unknown().allocated(4, 12)));
    assert!(!same(unknown().allocated(4, 12), unknown()));
    assert!(same(unknown(), unknown()));
    assert!(!same(unknown(), made(0x10, "B", &[])));
}

#[test]
fn objects_are_identified_by_object_id() {
    let with = |object_id| Made { object_id, ..made(0x10, "A", &[]) };
    assert!(same(with(Some(8)), with(Some(8))));
    assert!(!same(with(Some(8)), with(Some(16))));
    assert!(same(with(None), with(Some(16))));
}

#[test]
fn an_object_that_moved_is_known_by_its_object_id() {
    let at = |address, object_id| Made { object_id: Some(object_id), ..made(address, "A", &[]) };
    let before = heap(&[], &[at(0x10, 8), at(0x20, 16)]);
    let after = heap(&[], &[at(0x10, 16), at(0x30, 24)]);
    let diff = diff(&before, &after);
    assert_eq!((new(&diff), gone(&diff)), (vec![0x30], vec![0x10]));
    assert_eq!(diff.changes().origin(0), Some(1));
}

#[test]
fn a_class_that_got_a_name_is_the_same() {
    // An object of an anonymous class, and the class, which the dump only has by address.
    let anonymous = "{\"address\":\"0x80\",\"type\":\"CLASS\",\"memsize\":40}";
    let named = "{\"address\":\"0x80\",\"type\":\"CLASS\",\"name\":\"Plan\",\"memsize\":40}";
    let object =
        "{\"address\":\"0x10\",\"type\":\"OBJECT\",\"class\":\"0x80\",\"ivars\":1,\"memsize\":40}";
    let read = |lines: [&str; 2]| {
        let text = lines.join("\n") + "\n";
        memprof_heap::Heap::read(
            Box::new(std::io::Cursor::new(text)),
            None,
            &memprof_heap::Options::default(),
        )
        .expect("a dump")
    };
    let (before, after) = (read([anonymous, object]), read([named, object]));
    let id = after.at(0x10).expect("read");
    assert_eq!(after.class_name(id).expect("there"), "Plan");
    let diff = diff(&before, &after);
    assert_eq!((new(&diff), gone(&diff)), (vec![], vec![]));
}

fn warnings(before: &str, after: &str, tracked: [bool; 2]) -> Vec<Remark> {
    let heap = |header: &str, tracked: bool| {
        let object = made(0x10, "A", &[]);
        heap_of(header, &[], &[if tracked { object.allocated(1, 1) } else { object }])
    };
    let (before, after) = (heap(before, tracked[0]), heap(after, tracked[1]));
    diff(&before, &after).warnings().to_vec()
}

#[test]
fn warns_of_what_makes_it_wrong() {
    let header = |pid: u32, compactions: u32, time: u32| {
        format!("{{\"pid\":{pid},\"compactions\":{compactions},\"moved\":true,\"time_us\":{time}}}")
    };
    let first = header(7, 2, 100);
    assert!(warnings(&first, &header(7, 2, 200), [true, true]).is_empty());
    let one = |after: &str, tracked: [bool; 2], limit: Remark| {
        assert_eq!(warnings(&first, after, tracked), [limit]);
    };
    one(&header(7, 3, 200), [true, true], Remark::Compacted);
    one(&header(8, 2, 200), [true, true], Remark::TwoProcesses);
    one(&header(7, 2, 50), [true, true], Remark::WrongOrder);
    let blocks = header(7, 2, 200).replace('{', "{\"blocks\":true,");
    one(&blocks, [true, true], Remark::BlocksDiffer);
    assert!(warnings(&blocks, &blocks, [true, true]).is_empty());
    let image = header(7, 2, 200).replace('{', "{\"source\":\"image\",");
    one(&image, [true, true], Remark::ImagesDiffer);
    assert!(warnings(&image, &image, [true, true]).is_empty());
    one(&header(7, 2, 200), [false, false], Remark::NoGenerations);
    one(&header(7, 2, 200), [true, false], Remark::TrackingEnded);
    assert!(warnings("{}", "not JSON", [false, true]).is_empty());
    assert_eq!(warnings("{}", "{\"moved\":true}", [true, true]), [Remark::Compacted]);
}
