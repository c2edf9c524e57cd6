//! Numeric objects with more facts than a Float.

use memprof_dump::record::{CodeRange, Detail, Text};
use rb_sys::{StableApiDefinition, VALUE};

use super::details::word;
use super::ruby_value;
use super::walk::Walk;

/// The two numbers of a Rational or Complex, including immediates.
///
/// # Safety
/// `object` is one of these: two VALUEs behind the header.
pub unsafe fn numbers(walk: &mut Walk, object: VALUE, names: [&'static str; 2]) -> Detail<'static> {
    if walk.scope.labels {
        for (index, name) in names.into_iter().enumerate() {
            // SAFETY: the caller vouches.
            let number = ruby_value::decode(&mut walk.names, unsafe { word(object, 2 + index) });
            walk.field(name, number);
        }
    }
    Detail::None
}

/// Maximum words of an Integer to write in decimal, some twenty thousand digits: the conversion takes quadratic time.
const DECIMAL_WORDS: usize = 1024;

/// Digits of an Integer that is an object: decimal up to [`DECIMAL_WORDS`], hexadecimal beyond.
///
/// # Safety
/// `object` is a T_BIGNUM.
pub unsafe fn bignum(walk: &mut Walk, object: VALUE) -> Detail<'static> {
    /// INTEGER_PACK_LSWORD_FIRST | INTEGER_PACK_NATIVE_BYTE_ORDER of ruby/internal/intern/bignum.h.
    const LEAST_FIRST: i32 = 0x02 | 0x40;
    // SAFETY: the caller vouches; `words` has the room that is said. The functions read the digits, and allocate
    // nothing.
    let (words, negative) = unsafe {
        let mut zeros = 0;
        let bytes = rb_sys::rb_absint_size(object, &raw mut zeros);
        let mut words = vec![0u64; (bytes as usize).div_ceil(8)];
        rb_sys::rb_integer_pack(
            object,
            words.as_mut_ptr().cast(),
            words.len() as _,
            8,
            0,
            LEAST_FIRST,
        );
        let negative = rb_sys::stable_api::get_default().bignum_negative_p(object);
        (words, negative)
    };
    let sign = if negative { "-" } else { "" };
    let digits = match words.as_slice() {
        [] => "0".to_owned(),
        [low] => format!("{sign}{low}"),
        [low, high] => format!("{sign}{}", u128::from(*high) << 64 | u128::from(*low)),
        words if words.len() <= DECIMAL_WORDS => format!("{sign}{}", decimal(words)),
        _ => {
            let tail: String =
                words.iter().rev().skip(1).map(|word| format!("{word:016x}")).collect();
            format!("{sign}0x{:x}{tail}", words.last().copied().unwrap_or(0))
        }
    };
    let encoding = walk.names.encoding(2);
    walk.digits.clear();
    walk.digits.extend_from_slice(digits.as_bytes());
    // SAFETY: the walk's own buffer, which is not touched until the record is written.
    let bytes: &'static [u8] =
        unsafe { std::slice::from_raw_parts(walk.digits.as_ptr(), walk.digits.len()) };
    Detail::Bignum(Text {
        length: walk.names.values.length(bytes.len() as u64),
        capacity: None,
        encoding,
        coderange: CodeRange::SevenBit,
        content: walk.names.values.content(bytes),
    })
}

/// The decimal digits of a number whose lowest word comes first.
fn decimal(words: &[u64]) -> String {
    /// The largest power of ten in a word, and its zeros.
    const POWER: u64 = 10_000_000_000_000_000_000;
    const ZEROS: usize = 19;
    let mut words = words.to_vec();
    let mut groups = Vec::new();
    while let Some(top) = words.last() {
        if *top == 0 {
            words.pop();
            continue;
        }
        let mut rest = 0;
        for word in words.iter_mut().rev() {
            let number = u128::from(rest) << 64 | u128::from(*word);
            // Below the power of two, as the rest is below the divisor.
            *word = (number / u128::from(POWER)) as u64;
            rest = (number % u128::from(POWER)) as u64;
        }
        groups.push(rest);
    }
    let mut digits = groups.pop().unwrap_or(0).to_string();
    for group in groups.iter().rev() {
        digits += &format!("{group:0ZEROS$}");
    }
    digits
}
