//! Sampled objects, and what they stand for: the allocations of an interval, and the objects that are alive.
//!
//! Objects are sampled in bursts: all allocations of a short time at a random moment, or some of them. Each sample has a
//! weight, the inverse of the probability with which it was taken, so that sums of weights are unbiased (Horvitz and Thompson
//! 1952). Samples of one burst are not independent of each other, but bursts are: so the variance of a sum is estimated by the
//! squares of what each burst contributes.

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
    objects: f64,
    bytes: f64,
    /// Sums of squares of the finished bursts.
    objects_squared: f64,
    bytes_squared: f64,
    /// The burst in progress.
    burst: u32,
    burst_objects: f64,
    burst_bytes: f64,
}

impl Sum {
    fn add(&mut self, burst: u32, objects: f64, bytes: f64) {
        if self.burst != burst {
            self.end_burst();
            self.burst = burst;
        }
        self.burst_objects += objects;
        self.burst_bytes += bytes;
    }

    fn end_burst(&mut self) {
        let (objects, bytes) =
            (std::mem::take(&mut self.burst_objects), std::mem::take(&mut self.burst_bytes));
        self.objects += objects;
        self.bytes += bytes;
        self.objects_squared += objects * objects;
        self.bytes_squared += bytes * bytes;
    }

    fn estimate(mut self) -> Estimate {
        self.end_burst();
        Estimate {
            objects: self.objects,
            bytes: self.bytes,
            objects_error: self.objects_squared.sqrt(),
            bytes_error: self.bytes_squared.sqrt(),
        }
    }
}

/// All samples.
#[derive(Debug)]
pub struct Samples {
    live: FxHashMap<u64, Sample>,
    allocated: FxHashMap<SiteId, Sum>,
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
        let weight = f64::from(sample.weight);
        let sum = self.allocated.entry(sample.site).or_default();
        sum.add(sample.burst, weight, weight * f64::from(sample.bytes));
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

    /// Ends an interval, `now` seconds after the start: the estimates of its sites. The next one begins. `meta` lacks the
    /// sampling interval.
    pub fn end_interval(&mut self, sites: &Sites, now: f32, mut meta: Meta) -> Estimates {
        let allocated = std::mem::take(&mut self.allocated);
        let stand_for: f64 = allocated.values().map(|sum| sum.estimate().objects).sum();
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
