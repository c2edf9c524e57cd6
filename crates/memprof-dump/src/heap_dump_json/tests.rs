use crate::format::Format;
use crate::testing::{converted, made, options};
use crate::values::Policy;

fn array(bytes: &[u8]) -> Vec<serde_json::Value> {
    serde_json::from_slice(bytes).expect("a JSON array")
}

#[test]
fn it_is_an_array_with_one_object_a_line() {
    for seed in 1..20 {
        let bytes = made(options(Format::HeapDump), seed, 200);
        let objects = array(&bytes);
        assert_eq!(objects.len(), 201);
        assert_eq!(objects[0]["id"], "_ROOTS_");
        assert_eq!(objects[0]["global_tbl"]["$x"]["data"], ":secret");
        assert!(objects[0]["roots"]["vm"].is_array());
        let lines: Vec<&str> = std::str::from_utf8(&bytes).unwrap().lines().collect();
        assert_eq!(lines.len(), 202);
        assert!(lines[0].starts_with("[{\"id\":\"_ROOTS_\""));
        assert!(lines[1..201].iter().all(|line| line.starts_with(",{\"id\":\"0x")));
        assert_eq!(lines[201], "]");
    }
}

#[test]
fn values_have_places_by_type() {
    let objects = array(&made(options(Format::HeapDump), 3, 400));
    let of = |bt: &str| objects.iter().filter(|object| object["bt"] == bt).collect::<Vec<_>>();
    assert!(of("T_ARRAY").iter().all(|object| object["val"].is_array()));
    let mut pairs = of("T_HASH").into_iter().flat_map(|object| object["val"].as_array().unwrap());
    assert!(pairs.all(|pair| pair.as_array().unwrap().len() == 2));
    assert!(of("T_OBJECT").iter().any(|object| object["ivs"]["@n0"] != serde_json::Value::Null));
    assert!(of("T_OBJECT").iter().all(|object| object["generic_ivars"].is_null()));
    assert!(of("T_CLASS").iter().any(|object| object["methods"].is_object()));
    assert!(of("T_IMEMO").iter().all(|object| object["imemo_type"] == "callcache"));
}

#[test]
fn it_is_made_of_any_other_format() {
    let format = options(Format::HeapDump);
    let direct = made(format, 4, 100);
    let (converted, _) = converted(&made(options(Format::Binary), 4, 100), format, Policy::Full);
    assert!(direct == converted);
}
