//! Keys by number.

/// Makes an enum of the keys that a format has, and the way to them from a word.
macro_rules! keys {
    ($($name:ident $text:literal)*) => {
        /// A key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Known {
            $($name,)*
            /// None of these.
            Other,
        }

        impl Known {
            #[allow(non_upper_case_globals)]
            #[inline(always)]
            pub fn of(word: $crate::read::word::Word) -> Known {
                use $crate::read::word::Word;
                $(
                    const $name: Word = Word::new($text);
                )*
                match word {
                    $($name => Known::$name,)*
                    _ => Known::Other,
                }
            }
        }
    };
}

pub(super) use keys;
