//! `Memprof::Native::Profile`: a profile taken, ready to be grouped, filtered and exported.

use std::str::FromStr;

use magnus::{
    Class, DataTypeFunctions, Error, Module, RArray, RHash, RModule, RString, Ruby, TryConvert,
    TypedData, Value, method,
};
use memprof_profile::export::{self, Format};
use memprof_profile::group::{By, Kind, Sort};
use memprof_profile::profile::Profile;

use crate::convert::to_ruby;

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
    class.define_method("strings", method!(NativeProfile::strings, 2))?;
    class.define_method("files", method!(NativeProfile::files, 0))?;
    class.define_method("classes", method!(NativeProfile::classes, 0))?;
    class.define_method("meta", method!(NativeProfile::meta, 0))?;
    class.define_method("filter", method!(NativeProfile::filter, 2))?;
    class.define_method("export", method!(NativeProfile::export, 2))?;
    class.define_method("to_h", method!(NativeProfile::to_h, 0))
}

/// Parses one of a set of words; a wrong one is an ArgumentError that lists the right ones.
fn parse<T: FromStr>(ruby: &Ruby, word: &str) -> Result<T, Error>
where
    T::Err: std::fmt::Display,
{
    word.parse()
        .map_err(|error: T::Err| Error::new(ruby.exception_arg_error(), error.to_string()))
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

    fn to_h(ruby: &Ruby, this: &Self) -> Result<RHash, Error> {
        RHash::try_convert(to_ruby(ruby, &this.0.to_report())?)
    }
}
