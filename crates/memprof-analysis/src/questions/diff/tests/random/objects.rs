//! Changed objects, against those found by comparing one by one.

use serde_json::json;

use super::{only, rounds, same};

#[test]
fn objects_are_those_of_a_change() {
    rounds(|round| {
        let diff = round.diff();
        let new = only(&round.after, &round.before);
        let survived = round.survived();
        let temporary = new
            .iter()
            .copied()
            .filter(|object| !survived.iter().any(|there| same(object, there)));
        let expected = [
            (
                "new",
                new.iter()
                    .map(|object| object.address)
                    .collect::<Vec<u64>>(),
            ),
            (
                "gone",
                only(&round.before, &round.after)
                    .iter()
                    .map(|object| object.address)
                    .collect(),
            ),
            (
                "survived",
                survived.iter().map(|object| object.address).collect(),
            ),
            (
                "temporary",
                temporary.map(|object| object.address).collect(),
            ),
        ];
        for (change, mut addresses) in expected {
            addresses.sort_unstable();
            let question = json!({ "change": change, "sort": "address", "limit": 1000 });
            let answer = diff.answer_to("objects", question);
            let found: Vec<String> = answer["objects"]
                .as_array()
                .expect("objects")
                .iter()
                .map(|object| object["address"].as_str().expect("an address").to_owned())
                .collect();
            let addresses: Vec<String> = addresses
                .iter()
                .map(|address| format!("{address:#x}"))
                .collect();
            assert_eq!(found, addresses);
            if change != "gone" {
                // The same through a query.
                let filter = if change == "temporary" {
                    "change = new and change != survived".to_owned()
                } else {
                    format!("change = {change}")
                };
                let totals = diff.answer_to("totals", json!({ "where": filter }));
                assert_eq!(totals["after"]["count"], json!(addresses.len()));
                let answer =
                    diff.answer_to("totals", json!({ "where": format!("not ({filter})") }));
                assert_eq!(
                    answer["after"]["count"],
                    json!(round.after.len() - addresses.len())
                );
            }
        }
    });
}
