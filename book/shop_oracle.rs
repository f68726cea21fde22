//! The shop against plain collections: the same random operations, then every question.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Memory, Result, Store, Writer};
use keyloom_patterns::{Continuation, Page, descending};

use crate::shop::{Cart, Checkout, Product, Shop};

/// The model has no totals and no counts of sold pieces: it computes them from all orders.
#[derive(Default)]
struct Model {
    products: BTreeMap<u32, ModelProduct>,
    orders: Vec<ModelOrder>,
    /// (customer, order) -> (text, read)
    notices: BTreeMap<(u32, u64), (String, bool)>,
    mails: Vec<String>,
}

struct ModelProduct {
    category: String,
    cents: u32,
    /// All pieces that were ever in stock.
    delivered: u32,
}

struct ModelOrder {
    request: String,
    customer: u32,
    day: u32,
    /// product -> (pieces, cents)
    lines: BTreeMap<u32, (u32, u32)>,
    cancelled: bool,
}

impl Model {
    fn sold(&self, product: u32) -> u32 {
        let orders = self.orders.iter().filter(|order| !order.cancelled);
        orders.filter_map(|order| order.lines.get(&product)).map(|(pieces, _)| pieces).sum()
    }

    fn stock(&self, product: u32) -> u32 {
        self.products.get(&product).map_or(0, |known| known.delivered - self.sold(product))
    }

    fn revenue(&self, day: u32) -> i64 {
        let orders = self.orders.iter().filter(|order| !order.cancelled && order.day == day);
        let lines = orders.flat_map(|order| order.lines.values());
        lines.map(|(pieces, cents)| i64::from(*pieces) * i64::from(*cents)).sum()
    }

    fn checkout(&mut self, cart: &Cart) -> Checkout {
        if let Some(place) = self.orders.iter().position(|order| order.request == cart.request) {
            return Checkout::Placed(place as u64 + 1);
        }
        let mut lines = BTreeMap::new();
        for (product, pieces) in &cart.items {
            let cents = self.products.get(product).map_or(0, |known| known.cents);
            lines.entry(*product).or_insert((0, cents)).0 += pieces;
        }
        lines.retain(|_, (pieces, _)| *pieces > 0);
        if lines.is_empty() {
            return Checkout::Empty;
        }
        if let Some((id, _)) = lines.iter().find(|(id, (pieces, _))| self.stock(**id) < *pieces) {
            return Checkout::SoldOut(*id);
        }
        let Cart { request, customer, day, .. } = cart.clone();
        self.orders.push(ModelOrder { request, customer, day, lines, cancelled: false });
        let id = self.orders.len() as u64;
        self.notify(id, "is placed");
        Checkout::Placed(id)
    }

    fn cancel(&mut self, id: u64) -> bool {
        let order = id.checked_sub(1).and_then(|place| self.orders.get_mut(place as usize));
        let Some(order) = order.filter(|order| !order.cancelled) else { return false };
        order.cancelled = true;
        self.notify(id, "is cancelled");
        true
    }

    fn notify(&mut self, id: u64, state: &str) {
        let text = format!("order {id} {state}");
        let customer = self.orders[id as usize - 1].customer;
        self.notices.insert((customer, id), (text.clone(), false));
        self.mails.push(text);
    }

    fn mark_read(&mut self, customer: u32, limit: usize) -> usize {
        let all = self.notices.range_mut((customer, 0)..=(customer, u64::MAX));
        let unread = all.filter(|(_, (_, read))| !read).take(limit);
        unread.map(|(_, (_, read))| *read = true).count()
    }
}

/// Wrong shops. The comparison must find each of them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The client chooses another id for a repeated request.
    RequestForgotten,
    /// A form of the staff writes the record that it has read before the checkout.
    StaleForm,
    /// A product that is named twice is bought once.
    LineOverwritten,
    /// An order can be cancelled twice.
    CancelledTwice,
    /// A program changes a total directly.
    TotalChanged,
    /// Reading a notice leaves its index entry.
    NoticeStaysUnread,
}

const PRODUCTS: u32 = 12;
const CUSTOMERS: u32 = 4;
const DAYS: u32 = 3;
const CATEGORIES: u32 = 3;

fn category(id: u32) -> String {
    format!("category {}", id % CATEGORIES)
}

/// A shop, its model, and the carts so far.
struct Both {
    store: Memory,
    shop: Shop,
    model: Model,
    carts: Vec<Cart>,
    random: fastrand::Rng,
    fault: Fault,
}

impl Both {
    fn new(seed: u64, fault: Fault) -> Self {
        let store = Memory::new();
        let shop = Shop::open(&store).unwrap();
        let random = fastrand::Rng::with_seed(seed);
        Self { store, shop, model: Model::default(), carts: Vec::new(), random, fault }
    }

    /// Another price and a delivery, as the staff enters them: a read and a write in one
    /// transaction.
    fn deliver(&mut self) {
        let (id, cents) = (self.random.u32(..PRODUCTS), self.random.u32(1..20));
        let more = self.random.u32(..5);
        let change = |old: Option<Product>| {
            let (stock, sold) = old.map_or((0, 0), |old| (old.stock, old.sold));
            let (category, name) = (category(id), format!("product {id}"));
            Product { id, category, name, cents, stock: stock + more, sold }
        };
        let products = &self.shop.products;
        let put = self.store.transact(|txn| {
            let old = products.get(txn, &id)?;
            products.put_record(txn, &change(old))
        });
        put.unwrap();
        let category = category(id);
        let new = ModelProduct { category, cents, delivered: 0 };
        let known = self.model.products.entry(id).or_insert(new);
        (known.cents, known.delivered) = (cents, known.delivered + more);
    }

    fn cart(&mut self) -> Cart {
        let lines = self.random.usize(..4);
        let items = (0..lines).map(|_| (self.random.u32(..PRODUCTS + 1), self.random.u32(..4)));
        let items = items.collect();
        let request = format!("request {}", self.carts.len());
        let (customer, day) = (self.random.u32(..CUSTOMERS), self.random.u32(..DAYS));
        Cart { request, customer, day, items }
    }

    /// A new cart, or an earlier one, which may have been refused.
    fn checkout(&mut self) -> Option<String> {
        let repeated = self.random.u8(..4) == 0 && !self.carts.is_empty();
        let cart = if repeated {
            self.carts[self.random.usize(..self.carts.len())].clone()
        } else {
            self.cart()
        };
        self.carts.push(cart.clone());
        let mut sent = cart.clone();
        if repeated && self.fault == Fault::RequestForgotten {
            sent.request = format!("again {}", self.carts.len());
        }
        if self.fault == Fault::LineOverwritten {
            sent.items = BTreeMap::from_iter(sent.items).into_iter().collect();
        }
        let Self { store, shop, .. } = self;
        let stale: Vec<Product> = if self.fault == Fault::StaleForm {
            let ids: Vec<u32> = cart.items.iter().map(|(id, _)| *id).collect();
            let found = shop.products.get_many(&store.snapshot().unwrap(), &ids).unwrap();
            found.into_iter().flatten().collect()
        } else {
            Vec::new()
        };
        let found = store.transact(|txn| shop.checkout(txn, &sent)).unwrap();
        for form in stale {
            store.transact(|txn| shop.products.put_record(txn, &form)).unwrap();
        }
        different("checkout", found, self.model.checkout(&cart))
    }

    fn cancel(&mut self) -> Option<String> {
        let id = self.random.u64(..self.model.orders.len() as u64 + 2);
        let Self { store, shop, .. } = self;
        if self.fault == Fault::CancelledTwice {
            let reset = store.transact(|txn| {
                let Some(mut order) = shop.orders.get(txn, &id)? else { return Ok(()) };
                // Fewer sold pieces would panic in the second call, instead of a wrong answer.
                for line in shop.lines.range(txn, id)?.collect::<Result<Vec<_>>>()? {
                    let product = shop.products.get(txn, &line.1.product)?;
                    if product.is_none_or(|product| product.sold < line.1.pieces) {
                        return Ok(());
                    }
                }
                order.cancelled = false;
                shop.orders.put_record(txn, &order)
            });
            reset.unwrap();
        }
        let found = store.transact(|txn| shop.cancel(txn, id)).unwrap();
        different("cancel", found, self.model.cancel(id))
    }

    fn mark_read(&mut self) -> Option<String> {
        let (customer, limit) = (self.random.u32(..CUSTOMERS), self.random.usize(1..4));
        let Self { store, shop, .. } = self;
        let found = store.transact(|txn| {
            let entries = shop.notices.unread.query().prefix(customer).keys(txn)?.items;
            let done = shop.mark_read(txn, customer, limit)?;
            if self.fault == Fault::NoticeStaysUnread {
                let space = shop.notices.unread.space();
                let lost = entries.iter().map(|(customer, order)| (*customer, *customer, *order));
                lost.take(done).try_for_each(|entry| txn.put(&space.pack(&entry), &[0x10, 2]))?;
            }
            Ok(done)
        });
        different("mark_read", found.unwrap(), self.model.mark_read(customer, limit))
    }

    fn step(&mut self) -> Option<String> {
        if self.fault == Fault::TotalChanged && self.random.u8(..8) == 0 {
            let total = self.shop.orders.revenue.space().pack(&1);
            self.store.transact(|txn| txn.add(&total, 1)).unwrap();
        }
        match self.random.u8(..10) {
            0..=2 => {
                self.deliver();
                None
            }
            3..=6 => self.checkout(),
            7 => self.cancel(),
            _ => self.mark_read(),
        }
    }

    /// Every question of the chapter, answered by keys and by the model.
    fn compare(&self) -> Result<Option<String>> {
        let Self { shop, model, .. } = self;
        let snapshot = self.store.snapshot()?;
        let mut found = Vec::new();
        for id in 0..PRODUCTS {
            let product = shop.products.get(&snapshot, &id)?;
            let product = product.map(|one| (one.category, one.cents, one.stock, one.sold));
            let expected = model.products.get(&id);
            let expected = expected.map(|one| (one.category.clone(), one.cents));
            let expected = expected.map(|(c, cents)| (c, cents, model.stock(id), model.sold(id)));
            found.push(different("1: product", product, expected));
        }
        for category in (0..CATEGORIES).map(category) {
            let of = |sort: &dyn Fn(u32, &ModelProduct) -> i64| {
                let all = model.products.iter().filter(|(_, one)| one.category == category);
                let mut all: Vec<_> = all.map(|(id, one)| (sort(*id, one), *id)).collect();
                all.sort_unstable();
                all.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
            };
            let query = shop.products.by_price.query().prefix(&category).limit(2);
            let paged = all_pages(|after| query.clone().after(after).records(&snapshot))?;
            let paged: Vec<u32> = paged.into_iter().map(|(id, _)| id).collect();
            found.push(different("2: by price", paged, of(&|_, one| i64::from(one.cents))));
            let best = shop.products.by_sold.query().prefix(&category).limit(2);
            let mut expected = of(&|id, _| -i64::from(model.sold(id)));
            expected.truncate(2);
            found.push(different("3: best sellers", best.keys(&snapshot)?.items, expected));
        }
        found.push(self.compare_orders(&snapshot)?);
        for customer in 0..CUSTOMERS {
            let unread = shop.notices.unread.query().prefix(customer).records(&snapshot)?.items;
            let unread: Vec<_> = unread.into_iter().map(|(_, one)| one.text).collect();
            let expected = model.notices.range((customer, 0)..=(customer, u64::MAX));
            let expected = expected.filter(|(_, (_, read))| !read);
            let expected: Vec<_> = expected.map(|(_, (text, _))| text.clone()).collect();
            let count = shop.notices.unread_count(&snapshot)?.get(&snapshot, customer)?;
            found.push(different("8: unread count", count, expected.len() as i64));
            found.push(different("8: unread", unread, expected));
        }
        let ready = shop.mails.counts(&snapshot, Some("shop"))?.ready;
        found.push(different("10: mails", ready as usize, model.mails.len()));
        Ok(found.into_iter().flatten().next())
    }

    fn compare_orders(&self, snapshot: &impl keyloom::Reader) -> Result<Option<String>> {
        let Self { shop, model, .. } = self;
        let mut found = Vec::new();
        let numbered = || model.orders.iter().enumerate().rev().map(|(n, one)| (n as u64 + 1, one));
        for customer in 0..CUSTOMERS {
            let query = shop.orders.by_customer.query().prefix(customer).reverse().limit(3);
            let paged = all_pages(|after| query.clone().after(after).records(snapshot))?;
            let paged: Vec<u64> = paged.into_iter().map(|(id, _)| id).collect();
            let expected = numbered().filter(|(_, order)| order.customer == customer);
            found.push(different("4: of a customer", paged, expected.map(|(id, _)| id).collect()));
        }
        for (id, order) in numbered() {
            let lines = shop
                .lines
                .range(snapshot, id)?
                .map(|line| line.map(|((_, product), line)| (product, (line.pieces, line.cents))));
            let lines = lines.collect::<Result<BTreeMap<_, _>>>()?;
            found.push(different("5: lines", lines, order.lines.clone()));
        }
        let paged = all_pages(|after| shop.orders.page(snapshot, descending(..), 3, after))?;
        let paged: Vec<_> = paged.into_iter().map(|(id, one)| (id, one.cancelled)).collect();
        let expected = numbered().map(|(id, one)| (id, one.cancelled)).collect();
        found.push(different("6: newest orders", paged, expected));
        for day in 0..DAYS {
            let revenue = shop.orders.revenue(snapshot)?.get(snapshot, day)?;
            found.push(different("7: revenue", revenue, model.revenue(day)));
        }
        Ok(found.into_iter().flatten().next())
    }

    /// Delivers all mails, and compares their texts.
    fn compare_mails(&mut self) -> Option<String> {
        let Self { store, shop, model, .. } = self;
        let mut mails = Vec::new();
        loop {
            let batch = shop.mails.dequeue(store, 100).unwrap();
            if batch.is_empty() {
                break;
            }
            for mail in batch {
                store.transact(|txn| shop.mails.complete(txn, &mail)).unwrap();
                mails.push(mail.job.payload);
            }
        }
        mails.sort_unstable();
        model.mails.sort_unstable();
        different("10: mails", mails, model.mails.clone())
    }
}

fn different<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Option<String> {
    (found != expected).then(|| format!("{what}: {found:?} instead of {expected:?}"))
}

fn all_pages<T>(page: impl Fn(Option<&Continuation>) -> Result<Page<T>>) -> Result<Vec<T>> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let one = page(next.as_ref())?;
        all.extend(one.items);
        next = one.next;
        if next.is_none() {
            return Ok(all);
        }
    }
}

/// The first difference between the shop and the model.
fn run(seed: u64, fault: Fault, steps: usize) -> Option<String> {
    let mut both = Both::new(seed, fault);
    for n in 0..steps {
        let found = both.step();
        let found = found.or_else(|| both.compare().unwrap_or_else(|e| Some(e.to_string())));
        if let Some(found) = found {
            return Some(format!("seed {seed}, step {n}: {found}"));
        }
    }
    both.compare_mails()
}

#[test]
fn shop_answers_as_plain_collections_do() {
    for seed in 0..12 {
        assert_eq!(run(seed, Fault::None, 200), None);
    }
}

#[test]
fn derived_data_of_the_shop_is_consistent() {
    let mut both = Both::new(7, Fault::None);
    (0..500).for_each(|_| assert_eq!(both.step(), None));
    assert!(both.model.orders.iter().any(|order| order.cancelled));
    assert!(both.model.orders.len() > 50);
    let (shop, snapshot) = (&both.shop, both.store.snapshot().unwrap());
    assert_eq!(shop.products.by_price.check(&snapshot).unwrap(), []);
    assert_eq!(shop.products.by_sold.check(&snapshot).unwrap(), []);
    assert_eq!(shop.orders.by_customer.check(&snapshot).unwrap(), []);
    assert_eq!(shop.orders.by_request.check(&snapshot).unwrap(), []);
    assert_eq!(shop.orders.revenue.check(&snapshot).unwrap(), []);
    assert_eq!(shop.notices.unread.check(&snapshot).unwrap(), []);
    assert_eq!(shop.notices.unread_count.check(&snapshot).unwrap(), []);
    assert_eq!(shop.mails.check(&snapshot).unwrap(), []);
}

#[test]
fn comparison_finds_every_wrong_shop() {
    let faults = [
        Fault::RequestForgotten,
        Fault::StaleForm,
        Fault::LineOverwritten,
        Fault::CancelledTwice,
        Fault::TotalChanged,
        Fault::NoticeStaysUnread,
    ];
    for fault in faults {
        assert!((0..3).any(|seed| run(seed, fault, 200).is_some()), "{fault:?} was not found");
    }
}

#[test]
fn concurrent_checkouts_never_oversell() {
    const STOCK: u32 = 40;
    let store = Memory::builder().optimistic(true).build();
    let shop = Shop::open(&store).unwrap();
    let product = Product { stock: STOCK, ..crate::shop::product(1) };
    store.transact(|txn| shop.products.put_record(txn, &product)).unwrap();
    // Threads 0 and 1 send the same requests, as do threads 2 and 3.
    let buy = |thread: u32| {
        let send = |n| {
            let request = format!("{} {n}", thread / 2);
            let cart = Cart { request, customer: 1, day: 1, items: vec![(1, 1)] };
            store.transact(|txn| shop.checkout(txn, &cart)).unwrap()
        };
        (0..25).map(send).collect::<Vec<_>>()
    };
    let buy = &buy;
    let answers: Vec<Vec<Checkout>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || buy(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let ids = |answers: &[Checkout]| -> BTreeSet<u64> {
        let placed = answers.iter().filter_map(|answer| match answer {
            Checkout::Placed(id) => Some(*id),
            _ => None,
        });
        placed.collect()
    };
    assert_eq!(ids(&answers.concat()), (1..=u64::from(STOCK)).collect());
    // Nothing returns to the stock, so the copies of a request get the same answer.
    assert_eq!((&answers[0], &answers[2]), (&answers[1], &answers[3]));
    let snapshot = store.snapshot().unwrap();
    let left = shop.products.get(&snapshot, &1).unwrap().unwrap();
    assert_eq!((left.stock, left.sold), (0, STOCK));
    assert_eq!(shop.orders.count(&snapshot, ..).unwrap(), u64::from(STOCK));
}

/// Code without what the two forms may differ in: docs, visibility, and the places of line breaks.
fn essence(code: &str) -> String {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("///"));
    let text: String = lines.collect::<Vec<_>>().join("\n").replace("pub ", "");
    let text: String = text.chars().filter(|one| !one.is_whitespace()).collect();
    text.replace(",)", ")").replace(",}", "}").replace(",]", "]")
}

/// The text between two marks.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let from = text.find(begin).unwrap();
    &text[from..from + text[from..].find(end).unwrap()]
}

#[test]
fn chapter_shows_the_shop_that_is_tested() {
    let begin = "#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]";
    let tested = between(include_str!("shop.rs"), begin, "/// The number of products");
    let shown = between(include_str!("src/application.md"), begin, "fn main()");
    assert_eq!(essence(shown), essence(tested));
    assert_ne!(essence(&shown.replace("stock -= pieces", "stock -= 1")), essence(tested));
}
