//! Sampled objects, and what they stand for: the allocations of an interval, and the objects that are alive.
//!
//! Objects are sampled in bursts: all allocations of a short time at a random moment, or some of them. Each sample has a
//! weight, the inverse of the probability with which it was taken, so that sums of weights are unbiased (Horvitz and Thompson
//! 1952). Samples of one burst are not independent of each other, but bursts are: this is cluster sampling.
//!
//! How much time of the program a burst has seen is known only at its end ([`Samples::end_burst`]): then its weights are
//! corrected, so that a burst that lasted twice as long as another doesn't count twice.
//!
//! The VM counts all allocations, so their number N in an interval is known. What a site has allocated is therefore estimated
//! as N times its share of what bursts have seen: the ratio estimator N * sum(y) / sum(x), where y is the weight of the site's
//! samples in a burst, and x that of all allocations which the burst has seen (Cochran, Sampling Techniques, 1977, chapters 6
//! and 9A). Its variance comes from the differences between bursts: the sum of (y - p x) squared, with p = sum(y) / sum(x). Of
//! live objects no such total is known: there the squares of what each burst contributes are summed.

mod estimates;

use rustc_hash::FxHashMap;

pub use estimates::{Estimate, Estimates, RowFacts};

use crate::profile::Meta;
use crate::sampler::Sampler;
use crate::sites::{SiteId, Sites};

/// A sampled object that is alive.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Where it was allocated.
    pub site: SiteId,
    /// The burst that sampled it.
    pub burst: u32,
    /// How many objects it stands for.
    pub weight: f32,
    /// Its bytes: the slot, until its memsize is known.
    pub bytes: u32,
    /// Seconds from the start of sampling to its allocation.
    pub allocated_at: f32,
    /// Whether its memsize is still to be read: it has survived a GC, and was not measured yet.
    pub state: State,
}

/// What is known about the size of a sampled object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No GC has marked it yet, so it may not be complete.
    New,
    /// It has survived a GC.
    Survived,
    /// Its memsize was read after that.
    Measured,
}

/// The sum of the weights of a site in an interval, burst by burst.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    objects: Moments,
    bytes: Moments,
    /// The burst in progress.
    burst_objects: f64,
    burst_bytes: f64,
}

/// Sums over bursts: of a site's weight y, of its square, and of its product with the weight x of all allocations.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    y: f64,
    yy: f64,
    xy: f64,
}

impl Moments {
    fn add(&mut self, y: f64, x: f64) {
        self.y += y;
        self.yy += y * y;
        self.xy += y * x;
    }

    /// The estimate and its standard error.
    fn estimate(&self, all: &All) -> (f64, f64) {
        let Some(total) = all.total.filter(|_| all.x > 0.0) else {
            return (self.y, self.yy.sqrt());
        };
        let share = self.y / all.x;
        let squares = (self.yy - 2.0 * share * self.xy + share * share * all.xx).max(0.0);
        let corrected = squares * all.bursts / (all.bursts - 1.0).max(1.0);
        (total * share, total / all.x * corrected.sqrt())
    }
}

/// Sums over the bursts of an interval: of the weight x of all allocations, and of its square.
#[derive(Clone, Copy, Debug, Default)]
struct All {
    x: f64,
    xx: f64,
    bursts: f64,
    /// Allocations in the interval, if the VM has counted them.
    total: Option<f64>,
}

impl Sum {
    fn estimate(&self, all: &All) -> Estimate {
        let (objects, objects_error) = self.objects.estimate(all);
        let (bytes, bytes_error) = self.bytes.estimate(all);
        Estimate { objects, bytes, objects_error, bytes_error }
    }
}

/// All samples.
#[derive(Debug)]
pub struct Samples {
    live: FxHashMap<u64, Sample>,
    allocated: FxHashMap<SiteId, Sum>,
    all: All,
    /// Sites and addresses of the samples of the burst in progress.
    current: Vec<(SiteId, u64)>,
    burst: u32,
    /// Maximum number of live samples.
    most: usize,
    /// Each live sample was also chosen with probability 2 to the power of minus this.
    thinning: u32,
    random: Sampler,
    taken: u64,
    dropped: u64,
    unmeasured: usize,
}

impl Samples {
    /// No samples yet. At most `most` live ones are kept. `seed` chooses those to drop.
    pub fn new(most: usize, seed: u64) -> Self {
        Samples {
            live: FxHashMap::default(),
            allocated: FxHashMap::default(),
            all: All::default(),
            current: Vec::new(),
            burst: 0,
            most: most.max(2),
            thinning: 0,
            random: Sampler::new(seed),
            taken: 0,
            dropped: 0,
            unmeasured: 0,
        }
    }

    /// An object of `bytes` bytes was allocated at `address`, and sampled. Any other sample at this address was freed.
    pub fn take(&mut self, address: u64, sample: Sample) {
        self.taken += 1;
        if sample.burst != self.burst {
            self.end_burst(1.0, None);
            self.burst = sample.burst;
        }
        let weight = f64::from(sample.weight);
        let sum = self.allocated.entry(sample.site).or_default();
        sum.burst_objects += weight;
        sum.burst_bytes += weight * f64::from(sample.bytes);
        self.current.push((sample.site, address));
        self.forget(address);
        if self.live.len() >= self.most {
            self.thin();
        }
        let factor = 1u64 << self.thinning;
        if self.thinning == 0 || self.random.uniform() * factor as f64 <= 1.0 {
            self.live.insert(address, Sample { weight: sample.weight * factor as f32, ..sample });
        } else {
            self.dropped += 1;
        }
    }

    /// Ends the burst in progress. `correction` is a factor for the weights of its samples, and `seen` the weight of all its
    /// allocations after that, sampled or not; `None` stands for that of the samples.
    pub fn end_burst(&mut self, correction: f64, seen: Option<f64>) {
        let x = seen.unwrap_or_else(|| {
            let weights = self.allocated.values().map(|sum| sum.burst_objects);
            if self.current.is_empty() { 0.0 } else { weights.sum::<f64>() * correction }
        });
        for (site, address) in self.current.drain(..) {
            if let Some(sum) = self.allocated.get_mut(&site) {
                // 0 for a further sample of the site.
                let objects = std::mem::take(&mut sum.burst_objects) * correction;
                let bytes = std::mem::take(&mut sum.burst_bytes) * correction;
                sum.objects.add(objects, x);
                sum.bytes.add(bytes, x);
            }
            if let Some(sample) = self.live.get_mut(&address) {
                if sample.burst == self.burst {
                    sample.weight *= correction as f32;
                }
            }
        }
        if x > 0.0 {
            self.all.x += x;
            self.all.xx += x * x;
            self.all.bursts += 1.0;
        }
    }

    /// Drops each live sample with probability 1/2; the others stand for twice as many objects.
    fn thin(&mut self) {
        self.thinning = (self.thinning + 1).min(31);
        let (random, before) = (&mut self.random, self.live.len());
        self.live.retain(|_, sample| {
            sample.weight *= 2.0;
            random.uniform() < 0.5
        });
        self.dropped += (before - self.live.len()) as u64;
        self.count_unmeasured();
    }

    fn count_unmeasured(&mut self) {
        let samples = self.live.values();
        self.unmeasured = samples.filter(|sample| sample.state == State::Survived).count();
    }

    /// The object at this address was freed.
    pub fn forget(&mut self, address: u64) {
        if let Some(sample) = self.live.remove(&address) {
            self.unmeasured -= usize::from(sample.state == State::Survived);
        }
    }

    /// A GC has marked: `is_marked` says which of the sampled objects survive. The others are dropped.
    pub fn keep(&mut self, mut is_marked: impl FnMut(u64) -> bool) {
        let mut unmeasured = 0;
        self.live.retain(|address, sample| {
            let lives = is_marked(*address);
            if sample.state == State::New {
                sample.state = State::Survived;
            }
            unmeasured += usize::from(lives && sample.state == State::Survived);
            lives
        });
        self.unmeasured = unmeasured;
        // Sampling becomes finer again when most of the objects are gone.
        if self.live.len() < self.most / 8 {
            self.thinning = self.thinning.saturating_sub(1);
        }
    }

    /// The addresses of all live samples are unknown from now on.
    pub fn forget_all(&mut self) {
        self.dropped += self.live.len() as u64;
        self.live.clear();
        self.unmeasured = 0;
    }

    /// Objects moved: `moved` returns the new address, or `None` for one that was freed.
    pub fn relocate(&mut self, moved: impl Fn(u64) -> Option<u64>) {
        let old = std::mem::take(&mut self.live);
        self.live = old.into_iter().filter_map(|(at, sample)| Some((moved(at)?, sample))).collect();
        self.count_unmeasured();
    }

    /// Whether some objects have survived a GC, and their memsizes are not known yet.
    pub fn has_unmeasured(&self) -> bool {
        self.unmeasured > 0
    }

    /// Reads the memsizes of at most `most` objects that have survived a GC; `None` leaves the slot's.
    pub fn measure(&mut self, most: usize, mut memsize: impl FnMut(u64) -> Option<u64>) {
        if self.unmeasured == 0 {
            return;
        }
        let waiting = self.live.iter_mut().filter(|(_, sample)| sample.state == State::Survived);
        let mut measured = 0;
        for (address, sample) in waiting.take(most) {
            sample.state = State::Measured;
            measured += 1;
            if let Some(bytes) = memsize(*address) {
                sample.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            }
        }
        self.unmeasured = self.unmeasured.saturating_sub(measured);
    }

    /// Number of live samples.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Ends an interval, `now` seconds after the start: the estimates of its sites. The next one begins. `total` is the number
    /// of allocations in it, if that is known. `meta` lacks the sampling interval.
    pub fn end_interval(
        &mut self,
        sites: &Sites,
        now: f32,
        total: Option<u64>,
        mut meta: Meta,
    ) -> Estimates {
        self.end_burst(1.0, None);
        let all = All { total: total.map(|count| count as f64), ..std::mem::take(&mut self.all) };
        let allocated: FxHashMap<SiteId, Estimate> = std::mem::take(&mut self.allocated)
            .into_iter()
            .map(|(site, sum)| (site, sum.estimate(&all)))
            .collect();
        let stand_for: f64 = allocated.values().map(|estimate| estimate.objects).sum();
        let mean = if self.taken > 0 { stand_for / self.taken as f64 } else { 1.0 };
        meta.sample = (mean.round() as u32).max(2);
        let (profile, rows) = estimates::profile(sites, &allocated, self.live.values(), now, meta);
        let estimates = Estimates {
            profile,
            rows,
            taken: std::mem::take(&mut self.taken),
            dropped: std::mem::take(&mut self.dropped),
            live: self.live.len(),
        };
        if self.live.len() < self.live.capacity() / 4 {
            self.live.shrink_to(self.live.len() * 2);
        }
        estimates
    }

    /// Sites of the live samples and of the interval.
    pub fn sites(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.live.values().map(|sample| sample.site).chain(self.allocated.keys().copied())
    }

    /// Sites were renumbered.
    pub fn renumber(&mut self, by_site: &FxHashMap<SiteId, SiteId>) {
        let moved = |site: SiteId| by_site.get(&site).copied().unwrap_or(site);
        self.live.values_mut().for_each(|sample| sample.site = moved(sample.site));
        let old = std::mem::take(&mut self.allocated);
        self.allocated = old.into_iter().map(|(site, sum)| (moved(site), sum)).collect();
        self.current.iter_mut().for_each(|(site, _)| *site = moved(*site));
    }

    /// Restarts the choice of samples with another sequence: forked processes must not drop the same ones.
    pub fn reseed(&mut self, seed: u64) {
        self.random.reseed(seed);
    }

    /// Memory size in bytes.
    pub fn memsize(&self) -> usize {
        self.live.capacity() * (size_of::<(u64, Sample)>() + 1)
            + self.allocated.capacity() * (size_of::<(SiteId, Sum)>() + 1)
    }
}

#[cfg(test)]
mod tests;
