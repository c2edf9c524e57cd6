use super::*;

/// Rows with three measures, few of them different.
struct Sample(Vec<[Option<u64>; 3]>);

impl Rows for Sample {
    fn measure(&self, row: u32, measure: Measure) -> Option<u64> {
        let [count, size, retained] = self.0[row as usize];
        match measure {
            Measure::Count => count,
            Measure::Size => size,
            _ => retained,
        }
    }

    /// Backwards.
    fn compare_keys(&self, one: u32, other: u32) -> Ordering {
        other.cmp(&one)
    }

    fn is_listed(&self, row: u32) -> bool {
        row % 7 != 3
    }
}

fn sample(length: usize) -> Sample {
    let mut state = 1_u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let value = u64::from((state >> 16) % below);
        (value > 0).then_some(if value == 1 { u64::MAX - 1 } else { value })
    };
    Sample((0..length).map(|_| [next(3), next(5), next(1000)]).collect())
}

/// All rows of a list, sorted by the standard library.
fn sorted(rows: &Sample, order: Order) -> Vec<u32> {
    let listed = (0..rows.0.len() as u32).filter(|&row| rows.is_listed(row));
    let mut listed: Vec<u32> = listed.collect();
    listed.sort_by(|&one, &other| {
        let rank = |row| order.iter().map(move |&measure| rows.measure(row, measure));
        rank(other).cmp(rank(one)).then_with(|| rows.compare_keys(one, other))
    });
    listed
}

const ORDERS: [Order; 4] = [
    BY_KEY,
    &[Measure::Count],
    &[Measure::Count, Measure::Size],
    &[Measure::Size, Measure::Count, Measure::Retained],
];

#[test]
fn pages_are_parts_of_the_sorted_rows() {
    for length in [0, 1, 6, 100, 5000] {
        let rows = sample(length);
        for order in ORDERS {
            let sorted = sorted(&rows, order);
            for (limit, offset) in
                [(0, 0), (0, 3), (1, 0), (20, 0), (20, 7), (700, 1500), (3, 9999), (usize::MAX, 5)]
            {
                let page =
                    List::new(&rows, order).page(0..length as u32, Limit::<20>(limit), offset);
                let shown = sorted.iter().copied().skip(offset).take(limit);
                assert_eq!(page.shown, shown.collect::<Vec<u32>>(), "{length} {limit} {offset}");
                assert_eq!(page.more, sorted.len().saturating_sub(offset.saturating_add(limit)));
            }
        }
    }
}

#[test]
fn collectors_of_several_threads_find_the_same_rows() {
    let rows = sample(9000);
    for order in ORDERS {
        for end in [0, 10, 600, 20_000] {
            let list = List::new(&rows, order);
            let mut all = list.first(end);
            for start in [6000, 0, 3000] {
                let mut part = list.first(end);
                part.extend(start..start + 3000);
                all.join(part);
            }
            assert_eq!(all.page(0), list.page(0..9000, Limit::<20>(end), 0), "{end}");
        }
    }
}

#[test]
fn rows_are_nested_as_deeply_as_asked() {
    let sizes = [1, 5, 2, 9, 4];
    let rows = Measured(|row: u32, _| Some(sizes[row as usize]));
    let children = [vec![1, 2], vec![3], vec![], vec![4], vec![], vec![0]];
    let shown = |limit, depth| {
        let make = |row: u32, rows: Vec<String>, more: usize| format!("{row}{rows:?}+{more}");
        let list = List::new(&rows, BY_VALUE);
        list.nested(&children, 5, Limit::<20>(limit), depth, &make)
    };
    assert_eq!(shown(9, 0), (vec![], 1));
    assert_eq!(shown(9, 1), (vec!["0[]+2".to_owned()], 0));
    let text = shown(1, 9).0.concat().replace(['\\', '"'], "");
    assert_eq!(text, "0[1[3[4[]+0]+0]+0]+1");
}

#[test]
fn negative_measures_come_after_positive_ones() {
    let changes = [0, -5, 7, i64::MIN, i64::MAX];
    let rows = Measured(|row: u32, _| signed(changes[row as usize]));
    let page = List::new(&rows, BY_VALUE).page(0..5, Limit::<9>(9), 0);
    assert_eq!(page.of(changes.to_vec()), [i64::MAX, 7, 0, -5, i64::MIN]);
}

#[test]
fn parts_are_summed_up() {
    #[derive(Clone, Default)]
    struct Sum(u64);

    impl sums::Merge for Sum {
        fn merge(&mut self, other: &Sum) {
            self.0 += other.0;
        }
    }
    let sums = sums::summed(3, (1000, 7), |sums: &mut [Sum], part| {
        part.for_each(|number| sums[number % 3].0 += number as u64);
    });
    let sums: Vec<u64> = sums.iter().map(|sum| sum.0).collect();
    let expected = [0, 1, 2].map(|rest| (rest..1000).step_by(3).sum::<usize>() as u64);
    assert_eq!(sums, expected);
}
