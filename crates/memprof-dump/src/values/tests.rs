use super::*;

fn values(policy: Policy, key: u64) -> Values {
    Values { policy, key: Key([key, 2]) }
}

#[test]
fn each_policy_writes_less() {
    let text = [b'x'; 200];
    let content = |policy| values(policy, 1).content(&text);
    assert_eq!(content(Policy::Full), Content::Full(&text));
    assert_eq!(content(Policy::Truncate), Content::Truncated(&text[..128]));
    assert!(matches!(content(Policy::Hash), Content::Mark(_)));
    assert_eq!(content(Policy::Length), Content::Absent);
    assert_eq!(content(Policy::None), Content::Absent);
    assert_eq!(values(Policy::Length, 1).length(200), Some(200));
    assert_eq!(values(Policy::None, 1).length(200), None);
    assert_eq!(values(Policy::Truncate, 1).content(b"short"), Content::Full(b"short"));
}

#[test]
fn a_mark_is_the_texts_and_the_keys() {
    let hash = values(Policy::Hash, 1);
    assert_eq!(hash.mark(b"secret"), hash.mark(b"secret"));
    assert_ne!(hash.mark(b"secret"), hash.mark(b"secret "));
    assert_ne!(hash.mark(b"secret"), values(Policy::Hash, 3).mark(b"secret"));
}

#[test]
fn symbols_are_hidden_with_the_strings() {
    assert_eq!(values(Policy::Full, 1).symbol("password"), None);
    let marked = values(Policy::Hash, 1).symbol("password").unwrap();
    assert!(marked.starts_with("0x") && marked.len() == 18);
    assert_eq!(values(Policy::Length, 1).symbol("password").unwrap(), "...");
}

#[test]
fn characters_are_not_cut() {
    assert_eq!(beginning("aé".as_bytes(), 2), b"a");
    assert_eq!(beginning("aé".as_bytes(), 3), "aé".as_bytes());
    assert_eq!(beginning(b"\xff\xff\xff", 2), b"\xff\xff");
}

#[test]
fn names_of_policies() {
    assert_eq!("hash".parse(), Ok(Policy::Hash));
    let error = "all".parse::<Policy>().unwrap_err();
    assert_eq!(
        error,
        "unknown values \"all\"; expected one of: full, truncate, hash, length, none"
    );
}
