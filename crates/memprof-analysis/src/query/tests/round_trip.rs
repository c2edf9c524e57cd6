//! A written query is read back unchanged.

use super::random::Random;
use crate::query::Query;

#[test]
fn any_expression_is_what_its_text_is_parsed_to() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        let expression = random.expression(4);
        let text = expression.to_string();
        let query = Query::parse(&text)
            .unwrap_or_else(|error| panic!("{error}\n{}", error.pointing(&text)));
        assert_eq!(query.expression(), &expression, "{text}");
        assert_eq!(query.to_string(), text);
        assert_eq!(text.parse(), Ok(query));
    }
}
