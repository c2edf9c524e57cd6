//! Estimates by site, with their errors.

use rustc_hash::FxHashMap;

use super::Sample;
use crate::group::{SiteRows, Sort};
use crate::profile::{Amount, Meta, Profile, SiteRow};
use crate::recorder::ProfileBuilder;
use crate::sites::{SiteId, Sites};

/// Estimated objects and bytes, with standard errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Objects.
    pub objects: f64,
    /// Bytes.
    pub bytes: f64,
    /// Standard error of the objects.
    pub objects_error: f64,
    /// Standard error of the bytes.
    pub bytes_error: f64,
}

impl Estimate {
    fn add(&mut self, other: Estimate) {
        self.objects += other.objects;
        self.bytes += other.bytes;
        self.objects_error = root(self.objects_error, other.objects_error);
        self.bytes_error = root(self.bytes_error, other.bytes_error);
    }

    fn amount(&self) -> Amount {
        Amount::new(self.objects.round() as u64, self.bytes.round() as u64)
    }
}

/// What is known about a site besides its amounts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowFacts {
    /// Allocations in the interval.
    pub allocated: Estimate,
    /// Objects alive at its end.
    pub live: Estimate,
    /// Mean age in seconds of the live objects, by weight.
    pub mean_age: f64,
    /// The largest age.
    pub oldest: f64,
}

impl RowFacts {
    fn add(&mut self, other: RowFacts) {
        let objects = self.live.objects + other.live.objects;
        if objects > 0.0 {
            self.mean_age =
                (self.mean_age * self.live.objects + other.mean_age * other.live.objects) / objects;
        }
        self.oldest = self.oldest.max(other.oldest);
        self.allocated.add(other.allocated);
        self.live.add(other.live);
    }
}

/// The estimates of an interval.
#[derive(Debug)]
pub struct Estimates {
    /// Their profile: `allocated` in the interval, `retained` for the objects alive at its end.
    pub profile: Profile,
    /// Facts for each row of the profile, which are in the order of reports.
    pub rows: Vec<RowFacts>,
    /// Samples taken in the interval.
    pub taken: u64,
    /// Samples dropped in it because there were too many live ones.
    pub dropped: u64,
    /// Live samples.
    pub live: usize,
}

/// The profile of a site's sums and of the live samples, and the facts of its rows.
pub fn profile<'a>(
    sites: &Sites,
    allocated: &FxHashMap<SiteId, Estimate>,
    live: impl Iterator<Item = &'a Sample>,
    now: f32,
    meta: Meta,
) -> (Profile, Vec<RowFacts>) {
    let mut by_site: FxHashMap<SiteId, RowFacts> = FxHashMap::default();
    for (site, estimate) in allocated {
        by_site.entry(*site).or_default().allocated = *estimate;
    }
    add_live(&mut by_site, live, now);
    let mut by_site: Vec<(SiteId, RowFacts)> = by_site.into_iter().collect();
    by_site.sort_unstable_by_key(|(site, _)| *site);

    let mut builder = ProfileBuilder::new(sites);
    let mut rows: Vec<(SiteRow, RowFacts)> = Vec::new();
    let mut known: FxHashMap<(u32, u32, u32), usize> = FxHashMap::default();
    for (site, facts) in by_site {
        let Some(site) = sites.get(site) else {
            continue;
        };
        let row = builder.row(site);
        let at = *known.entry((row.site, row.stack, row.class)).or_insert(rows.len());
        match rows.get_mut(at) {
            Some((_, same)) => same.add(facts),
            None => rows.push((row, facts)),
        }
    }
    for (row, facts) in &mut rows {
        row.allocated = facts.allocated.amount();
        row.retained = facts.live.amount();
    }
    let profile = Profile {
        rows: rows.iter().map(|(row, _)| row.clone()).collect(),
        meta,
        ..builder.finish()
    };
    in_order(profile, rows)
}

/// Live samples: those of one burst are not independent.
fn add_live<'a>(
    by_site: &mut FxHashMap<SiteId, RowFacts>,
    live: impl Iterator<Item = &'a Sample>,
    now: f32,
) {
    let mut bursts: FxHashMap<(SiteId, u32), (f64, f64)> = FxHashMap::default();
    for sample in live {
        let weight = f64::from(sample.weight);
        let age = f64::from((now - sample.allocated_at).max(0.0));
        let facts = by_site.entry(sample.site).or_default();
        facts.live.objects += weight;
        facts.live.bytes += weight * f64::from(sample.bytes);
        // A sum until all samples are known.
        facts.mean_age += weight * age;
        facts.oldest = facts.oldest.max(age);
        let burst = bursts.entry((sample.site, sample.burst)).or_default();
        burst.0 += weight;
        burst.1 += weight * f64::from(sample.bytes);
    }
    for facts in by_site.values_mut().filter(|facts| facts.live.objects > 0.0) {
        facts.mean_age /= facts.live.objects;
    }
    for ((site, _), (objects, bytes)) in bursts {
        let live = &mut by_site.entry(site).or_default().live;
        live.objects_error = root(live.objects_error, objects);
        live.bytes_error = root(live.bytes_error, bytes);
    }
}

/// Standard error of a sum of independent estimates. `f64::hypot` would need a newer libc than the gems.
fn root(a: f64, b: f64) -> f64 {
    (a * a + b * b).sqrt()
}

/// Puts rows and facts into the order in which a report lists the sites.
fn in_order(mut profile: Profile, rows: Vec<(SiteRow, RowFacts)>) -> (Profile, Vec<RowFacts>) {
    let sorted = SiteRows::new(&profile).rows(Sort::Memory, None);
    let by_key: FxHashMap<(u32, u32, u32), RowFacts> =
        rows.into_iter().map(|(row, facts)| ((row.site, row.stack, row.class), facts)).collect();
    let facts = sorted
        .iter()
        .map(|row| by_key.get(&(row.site, row.stack, row.class)).copied().unwrap_or_default());
    let facts = facts.collect();
    profile.rows = sorted;
    (profile, facts)
}
