//! A click-stream: who visited which site, which is about what, and where the visitors live.

use std::ops::Range;

pub const SITES: u32 = 10_000;
pub const CITIES: u32 = 1_000;
pub const CATEGORIES: u32 = 100;

/// What is known of each user, the users being numbered from 0.
pub struct Clicks {
    pub cities: Vec<u32>,
    /// What each has spent: 30 bits, all different, so that every contender has the same order.
    pub cents: Vec<i64>,
    /// The sites that each visited, ascending, each once.
    pub sites: Lists,
    /// What these sites are about, ascending, each once.
    pub categories: Lists,
}

/// A list of numbers per user.
#[derive(Default)]
pub struct Lists {
    ends: Vec<usize>,
    values: Vec<u32>,
}

impl Lists {
    pub fn of(&self, user: usize) -> &[u32] {
        let from = if user == 0 { 0 } else { self.ends[user - 1] };
        &self.values[from..self.ends[user]]
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    fn push(&mut self, list: impl IntoIterator<Item = u32>) {
        self.values.extend(list);
        self.ends.push(self.values.len());
    }
}

/// The n-th of `kinds` things is met about 1/n as often as the first, as Zipf found of words.
fn zipf(random: &mut fastrand::Rng, kinds: u32) -> u32 {
    (f64::from(kinds + 1).powf(random.f64()) - 1.0) as u32
}

impl Clicks {
    /// So many visits by so many users, each user as likely as the others.
    pub fn generate(seed: u64, users: u32, visits: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let about: Vec<u32> = (0..SITES).map(|_| zipf(&mut random, CATEGORIES)).collect();
        let mut visits: Vec<(u32, u32)> =
            (0..visits).map(|_| (random.u32(..users), zipf(&mut random, SITES))).collect();
        visits.sort_unstable();
        visits.dedup();
        let cities = (0..users).map(|_| zipf(&mut random, CITIES)).collect();
        // The products by an odd number differ in their last 30 bits, as the numbers do.
        let product = |user: u32| user.wrapping_mul(0x9E37_79B9) % (1 << 30);
        let cents = (0..users).map(|user| i64::from(product(user))).collect();
        let (mut sites, mut categories) = (Lists::default(), Lists::default());
        let mut next = 0;
        for user in 0..users {
            let from = next;
            next += visits[from..].iter().take_while(|visit| visit.0 == user).count();
            let visited = visits[from..next].iter().map(|visit| visit.1);
            let mut about: Vec<u32> = visited.clone().map(|site| about[site as usize]).collect();
            about.sort_unstable();
            about.dedup();
            sites.push(visited);
            categories.push(about);
        }
        Self { cities, cents, sites, categories }
    }

    pub fn users(&self) -> Range<usize> {
        0..self.cities.len()
    }

    /// The report by looking at every user: what every contender must say.
    pub fn report(&self, audience: &Audience) -> Vec<(u32, u64)> {
        let mut counts = vec![0; CATEGORIES as usize];
        for user in self.users().filter(|user| self.is_in(*user, audience)) {
            self.categories.of(user).iter().for_each(|category| counts[*category as usize] += 1);
        }
        (0..).zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    pub fn count(&self, audience: &Audience) -> usize {
        self.users().filter(|user| self.is_in(*user, audience)).count()
    }

    pub fn is_in(&self, user: usize, audience: &Audience) -> bool {
        self.cities[user] == audience.city
            && self.sites.of(user).binary_search(&audience.site).is_ok()
            && self.categories.of(user).binary_search(&audience.not_category).is_err()
    }
}

/// Who visited a site, lives in a city, and visited nothing that is about a category.
#[derive(Clone, Copy, Debug)]
pub struct Audience {
    pub site: u32,
    pub city: u32,
    pub not_category: u32,
}
