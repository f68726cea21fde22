//! A click-stream: which user visited which site, the categories of the sites, and where the users
//! live.

use std::ops::Range;

pub const SITES: u32 = 10_000;
pub const CITIES: u32 = 1_000;
pub const CATEGORIES: u32 = 100;

/// The data of each user. Users are numbered from 0.
pub struct Clicks {
    pub cities: Vec<u32>,
    /// Spending of each user: 30 bits, all different, so that every contender has the same order.
    pub cents: Vec<i64>,
    /// The sites that each user visited, ascending, without duplicates.
    pub sites: Lists,
    /// The categories of these sites, ascending, without duplicates.
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

/// Returns one of `kinds` numbers by Zipf's law: the n-th is about 1/n as frequent as the first.
fn zipf(random: &mut fastrand::Rng, kinds: u32) -> u32 {
    (f64::from(kinds + 1).powf(random.f64()) - 1.0) as u32
}

impl Clicks {
    /// Generates `visits` visits by `users` users, each user with the same probability.
    pub fn generate(seed: u64, users: u32, visits: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let about: Vec<u32> = (0..SITES).map(|_| zipf(&mut random, CATEGORIES)).collect();
        let mut visits: Vec<(u32, u32)> =
            (0..visits).map(|_| (random.u32(..users), zipf(&mut random, SITES))).collect();
        visits.sort_unstable();
        visits.dedup();
        let cities = (0..users).map(|_| zipf(&mut random, CITIES)).collect();
        // Multiplication by an odd number is a bijection modulo 2^30, so the results are distinct.
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

    /// Computes the report by a scan over all users: the expected result for every contender.
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

/// Users who visited a site, live in a city, and visited no site of a category.
#[derive(Clone, Copy, Debug)]
pub struct Audience {
    pub site: u32,
    pub city: u32,
    pub not_category: u32,
}
