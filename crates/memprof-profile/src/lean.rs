//! Tables that grow for as long as a program runs, with little unused capacity.

/// Appends a value. A `Vec` doubles its capacity; this one grows by an eighth, so that little of it is unused. The kernel moves
/// large blocks without copying.
pub fn push<T>(values: &mut Vec<T>, value: T) {
    if values.len() == values.capacity() {
        values.reserve_exact((values.len() / 8).max(16));
    }
    values.push(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_an_eighth_empty_at_most() {
        let mut values = Vec::new();
        for value in 0..100_000u32 {
            push(&mut values, value);
            assert!(values.capacity() <= values.len() + (values.len() / 8).max(16));
        }
        assert!(values.iter().copied().eq(0..100_000));
    }
}
