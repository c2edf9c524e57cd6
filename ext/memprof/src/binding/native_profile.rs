//! `Memprof::Native::Profile`: a finished profile to group, filter and export.

use std::str::FromStr;

use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RArray, RHash, RModule, RString, Ruby,
    TryConvert, TypedData, Value, function, method, typed_data::Obj, value::ReprValue,
};
use memprof_profile::compare::{MEASURES, Side, compare};
use memprof_profile::export::pprof::{Served, write_served};
use memprof_profile::export::{self, Format};
use memprof_profile::group::{By, Kind, SiteRows, Sort};
use memprof_profile::profile::Profile;
use memprof_profile::running_total;
use rustc_hash::FxHashMap;

use crate::ruby_values::to_ruby;

#[derive(TypedData)]
#[magnus(class = "Memprof::Native::Profile", free_immediately, size)]
pub struct NativeProfile(Profile);

impl DataTypeFunctions for NativeProfile {
    fn size(&self) -> usize {
        size_of_val(self.0.rows.as_slice()) + size_of_val(self.0.stacks.as_slice())
    }
}

pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Profile", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("totals", method!(NativeProfile::totals, 0))?;
    class.define_method("group", method!(NativeProfile::group, 4))?;
    class.define_method("sites", method!(NativeProfile::sites, 2))?;
    class.define_method("each_site", method!(NativeProfile::each_site, 0))?;
    class.define_method("places", method!(NativeProfile::places, 3))?;
    class.define_method("sites_json", method!(NativeProfile::sites_json, 0))?;
    class.define_method("sources", method!(NativeProfile::sources, 0))?;
    class.define_method("strings", method!(NativeProfile::strings, 2))?;
    class.define_method("files", method!(NativeProfile::files, 0))?;
    class.define_method("classes", method!(NativeProfile::classes, 0))?;
    class.define_method("meta", method!(NativeProfile::meta, 0))?;
    class.define_method("filter", method!(NativeProfile::filter, 2))?;
    class.define_method("export", method!(NativeProfile::export, 2))?;
    class.define_method("bounded", method!(NativeProfile::bounded, 1))?;
    class.define_method("add", method!(NativeProfile::add, 2))?;
    class.define_method("served_pprof", method!(NativeProfile::served_pprof, 3))?;
    class.define_method("to_h", method!(NativeProfile::to_h, 0))?;
    native.define_singleton_method("compare_reports", function!(compare_reports, 4))
}

/// Compares reports, one or more runs on each side; each is a pair of its name and its JSON.
fn compare_reports(
    ruby: &Ruby,
    before: Vec<(String, String)>,
    after: Vec<(String, String)>,
    measure: String,
    internal: bool,
) -> Result<Value, Error> {
    let failed = |message: String| Error::new(ruby.exception_arg_error(), message);
    let measure = MEASURES.iter().position(|name| *name == measure);
    let measure = measure.ok_or_else(|| failed("no such measure".to_owned()))?;
    let before = Side::read(&before).map_err(failed)?;
    let after = Side::read(&after).map_err(failed)?;
    to_ruby(ruby, &compare(&before, &after, measure, internal))
}

/// Parses a keyword; an invalid one raises an ArgumentError that lists the valid ones.
fn parse<T: FromStr>(ruby: &Ruby, word: &str) -> Result<T, Error>
where
    T::Err: std::fmt::Display,
{
    word.parse().map_err(|error: T::Err| Error::new(ruby.exception_arg_error(), error.to_string()))
}

impl NativeProfile {
    pub fn new(profile: Profile) -> Self {
        NativeProfile(profile)
    }

    fn totals(ruby: &Ruby, this: &Self) -> Result<Value, Error> {
        to_ruby(ruby, &this.0.totals())
    }

    fn group(
        ruby: &Ruby,
        this: &Self,
        kind: String,
        by: String,
        sort: String,
        limit: Option<usize>,
    ) -> Result<RArray, Error> {
        let (kind, by): (Kind, By) = (parse(ruby, &kind)?, parse(ruby, &by)?);
        let rows = ruby.ary_new();
        for row in this.0.group(kind, by, parse::<Sort>(ruby, &sort)?, limit) {
            rows.push((row.label, row.amount.objects, row.amount.bytes))?;
        }
        Ok(rows)
    }

    fn sites(ruby: &Ruby, this: &Self, sort: String, limit: Option<usize>) -> Result<Value, Error> {
        to_ruby(ruby, &this.0.sites(parse::<Sort>(ruby, &sort)?, limit))
    }

    /// Yields each site, most bytes allocated first. Sites share the lines of their stacks.
    fn each_site(ruby: &Ruby, this: &Self) -> Result<(), Error> {
        let sites = SiteRows::new(&this.0);
        let lines = ruby.ary_new();
        let mut numbers: FxHashMap<u32, isize> = FxHashMap::default();
        for row in sites.rows(Sort::Memory, None) {
            let site = RHash::try_convert(to_ruby(ruby, &sites.site(&row))?)?;
            let stack = ruby.ary_new();
            for node in sites.stack(&row) {
                let number = match numbers.get(&node) {
                    Some(number) => *number,
                    None => {
                        let line = ruby.str_new(sites.line(node));
                        line.freeze();
                        lines.push(line)?;
                        numbers.insert(node, lines.len() as isize - 1);
                        lines.len() as isize - 1
                    }
                };
                stack.push(lines.entry::<Value>(number)?)?;
            }
            site.aset("stack", stack)?;
            ruby.yield_value::<_, Value>(site)?;
        }
        Ok(())
    }

    /// Number of places with objects of this kind, and the first of them: sites regardless of their stacks.
    fn places(
        ruby: &Ruby,
        this: &Self,
        kind: String,
        sort: String,
        limit: usize,
    ) -> Result<(usize, Value), Error> {
        let (kind, sort): (Kind, Sort) = (parse(ruby, &kind)?, parse(ruby, &sort)?);
        let (count, rows) = this.0.places(kind, sort, limit);
        Ok((count, to_ruby(ruby, &rows)?))
    }

    /// Yields the sites as the elements of a JSON array, in chunks.
    fn sites_json(ruby: &Ruby, this: &Self) -> Result<(), Error> {
        SiteRows::new(&this.0).write_json(|chunk| {
            // serde writes Strings as UTF-8 JSON.
            let chunk = ruby.enc_str_new(chunk, ruby.utf8_encoding());
            ruby.yield_value::<_, Value>(chunk).map(|_| ())
        })
    }

    fn sources(ruby: &Ruby, this: &Self) -> Result<Value, Error> {
        to_ruby(ruby, &this.0.sources())
    }

    fn strings(
        ruby: &Ruby,
        this: &Self,
        kind: String,
        limit: Option<usize>,
    ) -> Result<RArray, Error> {
        let rows = ruby.ary_new();
        for row in this.0.strings(parse::<Kind>(ruby, &kind)?, limit) {
            let locations = ruby.ary_new_capa(row.locations.len());
            for location in row.locations {
                locations.push((location.location, location.objects))?;
            }
            rows.push((row.value, row.objects, locations))?;
        }
        Ok(rows)
    }

    fn files(&self) -> Vec<&str> {
        self.0.file_names()
    }

    fn classes(&self) -> Vec<&str> {
        self.0.class_names()
    }

    fn meta(ruby: &Ruby, this: &Self) -> Result<Value, Error> {
        to_ruby(ruby, &this.0.meta)
    }

    fn filter(&self, files: Option<Vec<String>>, classes: Option<Vec<String>>) -> NativeProfile {
        NativeProfile(self.0.filter(files.as_deref(), classes.as_deref()))
    }

    fn export(ruby: &Ruby, this: &Self, format: String, value: String) -> Result<RString, Error> {
        let (format, value): (Format, export::Value) =
            (parse(ruby, &format)?, parse(ruby, &value)?);
        let bytes = export::export(&this.0, format, value);
        Ok(if format == Format::Pprof {
            ruby.str_from_slice(&bytes)
        } else {
            ruby.str_new(&String::from_utf8_lossy(&bytes))
        })
    }

    /// The profile with at most so many sites; the rest is one site.
    fn bounded(&self, limit: usize) -> NativeProfile {
        NativeProfile(running_total::bounded(&self.0, limit))
    }

    /// The total of this profile and the one that follows it, with at most so many sites.
    fn add(&self, next: &NativeProfile, limit: usize) -> NativeProfile {
        NativeProfile(running_total::add(&self.0, &next.0, limit))
    }

    /// The profile in pprof's format, for those who scrape it.
    fn served_pprof(
        ruby: &Ruby,
        this: &Self,
        default_type: String,
        earlier: Option<Obj<NativeProfile>>,
        comments: Vec<String>,
    ) -> RString {
        let earlier = earlier.as_deref().map(|profile| &profile.0);
        let served = Served { default_type: &default_type, earlier, comments: &comments };
        let mut bytes = Vec::new();
        write_served(&this.0, served, &mut bytes).expect("memory takes all that is written to it");
        ruby.str_from_slice(&bytes)
    }

    fn to_h(ruby: &Ruby, this: &Self) -> Result<RHash, Error> {
        RHash::try_convert(to_ruby(ruby, &this.0.to_report())?)
    }
}
