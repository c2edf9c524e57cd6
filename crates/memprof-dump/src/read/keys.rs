//! Keys by number.

/// Defines an enum of a format's keys, and the lookup by word.
macro_rules! keys {
    ($($name:ident $text:literal)*) => {
        /// A key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Known {
            $($name,)*
            /// Any other key.
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
