//! The shop of the chapters on a whole application: its declarations, its transactions, and some
//! data.
//!
//! The first program of the chapter has the same code. A test of this crate compares both.

use keyloom::{Result, Store, Subspace, Writer};
use keyloom_patterns::locking::WorkQueue;
use keyloom_patterns::sequence::Sequence;
use keyloom_patterns::{Record, Schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A product with its stock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "products", key(id))] // 1
#[record(index(by_price = (category, cents)))] // 2
#[record(index(by_sold = (category, desc(sold))))] // 3
pub struct Product {
    /// The number of the product.
    pub id: u32,
    /// The only category of the product.
    pub category: String,
    /// The name on the page.
    pub name: String,
    /// The price of one piece.
    pub cents: u32,
    /// How many pieces are in stock.
    pub stock: u32,
    /// How many pieces are in orders that are not cancelled.
    pub sold: u32,
}

/// An order without its lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "orders", key(id))] // 6
#[record(totals(revenue = day, of = self.cents, when = !self.cancelled))] // 7
pub struct Order {
    /// The number of the order, in the order of the commits.
    pub id: u64,
    /// The id of the checkout, which the client chose.
    #[unique]
    pub request: String, // 9
    /// Who ordered.
    #[index]
    pub customer: u32, // 4
    /// The day of the order, in days since 1970.
    pub day: u32,
    /// The sum of the lines.
    pub cents: i64,
    /// Whether the order was cancelled.
    pub cancelled: bool,
}

/// A line of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "lines", key(order, product))] // 5
pub struct Line {
    /// The number of the order.
    pub order: u64,
    /// The number of the product.
    pub product: u32,
    /// How many pieces.
    pub pieces: u32,
    /// The price of one piece at the checkout.
    pub cents: u32,
}

/// The last message to a customer about an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "notices", key(customer, order))]
#[record(index(unread = customer, when = !self.read))] // 8
#[record(totals(unread_count = customer, when = !self.read))] // 8
pub struct Notice {
    /// Who gets the message.
    pub customer: u32,
    /// What the message is about.
    pub order: u64,
    /// The message.
    pub text: String,
    /// Whether the customer has seen the message.
    pub read: bool,
}

/// What a customer sends to order.
#[derive(Clone, Debug)]
pub struct Cart {
    /// Chosen by the client, the same in each repetition.
    pub request: String,
    /// Who orders.
    pub customer: u32,
    /// The day, in days since 1970.
    pub day: u32,
    /// Products and pieces.
    pub items: Vec<(u32, u32)>,
}

/// The result of a checkout.
#[derive(Clone, Debug, PartialEq)]
pub enum Checkout {
    /// The number of the order, for the first request and for its repetitions.
    Placed(u64),
    /// There are not so many pieces of this product.
    SoldOut(u32),
    /// The cart has no pieces.
    Empty,
}

/// The tables of the shop.
pub struct Shop {
    /// Products.
    pub products: ProductTable,
    /// Orders.
    pub orders: OrderTable,
    /// Lines of orders.
    pub lines: LineTable,
    /// Messages to customers.
    pub notices: NoticeTable,
    /// The numbers of orders.
    pub numbers: Sequence<()>,
    /// Mails to send.
    pub mails: WorkQueue<String>, // 10
}

impl Shop {
    /// Declares the tables of the shop.
    ///
    /// # Errors
    /// A schema in the store that differs; any error of the store.
    pub fn declare(schema: &Schema<'_, impl Store>) -> Result<Self> {
        Ok(Self {
            products: ProductTable::declare(schema)?,
            orders: OrderTable::declare(schema)?,
            lines: LineTable::declare(schema)?,
            notices: NoticeTable::declare(schema)?,
            numbers: Sequence::new(&Subspace::new("order number")),
            mails: WorkQueue::open(schema, "mails")?,
        })
    }

    /// The declarations of the shop.
    ///
    /// # Errors
    /// A schema in the store that differs; any error of the store.
    pub fn open(store: &impl Store) -> Result<Self> {
        let schema = Schema::open(store, "shop")?;
        let shop = Self::declare(&schema)?;
        schema.apply()?; // builds what a new version has added
        Ok(shop)
    }

    /// Places an order, once per request.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn checkout(&self, txn: &mut impl Writer, cart: &Cart) -> Result<Checkout> {
        // A repeated request gets the answer of the first one.
        let by_request = self.orders.by_request(txn)?;
        if let Some(found) = by_request.get(txn, &cart.request)? {
            return Ok(Checkout::Placed(found.record_key()?));
        }
        // One line per product, even if the cart names a product twice.
        let mut pieces = BTreeMap::<u32, u32>::new();
        for (product, more) in cart.items.iter().filter(|(_, more)| *more > 0) {
            let sum = pieces.entry(*product).or_default();
            *sum = sum.saturating_add(*more);
        }
        if pieces.is_empty() {
            return Ok(Checkout::Empty);
        }
        // Decide before the first write: a refused checkout writes nothing.
        let found = self.products.get_many(txn, pieces.keys())?;
        let mut bought = Vec::new();
        for ((id, pieces), product) in pieces.into_iter().zip(found) {
            match product.filter(|product| product.stock >= pieces) {
                Some(product) => bought.push((product, pieces)),
                None => return Ok(Checkout::SoldOut(id)),
            }
        }
        let id = self.numbers.next(txn, &())?;
        let (mut products, mut lines, mut cents) = (Vec::new(), Vec::new(), 0);
        for (mut product, pieces) in bought {
            cents += i64::from(product.cents) * i64::from(pieces);
            lines.push(Line { order: id, product: product.id, pieces, cents: product.cents });
            product.stock -= pieces;
            product.sold += pieces;
            products.push(product);
        }
        self.products.put_many(txn, products.into_iter().map(|p| (p.key(), p)))?;
        self.lines.put_many(txn, lines.into_iter().map(|l| (l.key(), l)))?;
        let Cart { request, customer, day, .. } = cart.clone();
        let order = Order { id, request, customer, day, cents, cancelled: false };
        self.orders.put_record(txn, &order)?;
        self.notify(txn, &order, "is placed")?;
        Ok(Checkout::Placed(id))
    }

    /// Cancels an order and returns its pieces to the stock. Returns whether this call did it.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn cancel(&self, txn: &mut impl Writer, id: u64) -> Result<bool> {
        let order = self.orders.get(txn, &id)?;
        let Some(mut order) = order.filter(|order| !order.cancelled) else {
            return Ok(false);
        };
        let lines = self.lines.range(txn, id)?.collect::<Result<Vec<_>>>()?;
        let products = lines.iter().map(|((_, product), _)| product);
        let found = self.products.get_many(txn, products)?;
        let mut products = Vec::new();
        for (product, (_, line)) in found.into_iter().zip(&lines) {
            let Some(mut product) = product else { continue };
            product.stock += line.pieces;
            product.sold -= line.pieces;
            products.push((product.id, product));
        }
        self.products.put_many(txn, products)?;
        order.cancelled = true;
        self.orders.put_record(txn, &order)?;
        self.notify(txn, &order, "is cancelled")?;
        Ok(true)
    }

    /// Marks the oldest unread notices as read, at most `limit`, and returns how many.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn mark_read(&self, txn: &mut impl Writer, customer: u32, limit: usize) -> Result<usize> {
        let unread = self.notices.unread.query().prefix(customer).limit(limit);
        let mut seen = unread.records(txn)?.items;
        seen.iter_mut().for_each(|(_, notice)| notice.read = true);
        self.notices.put_many(txn, &seen)?;
        Ok(seen.len())
    }

    fn notify(&self, txn: &mut impl Writer, order: &Order, state: &str) -> Result<()> {
        let text = format!("order {} {state}", order.id);
        let Order { id, customer, .. } = *order;
        let notice = Notice { customer, order: id, text: text.clone(), read: false };
        self.notices.put_record(txn, &notice)?;
        self.mails.enqueue(txn, ("shop", text)).map(drop)
    }
}

/// The number of products that [`Shop::load`] puts.
pub const PRODUCTS: u32 = 2_000;
/// The number of orders that [`Shop::load`] places.
pub const ORDERS: u32 = 300;

impl Shop {
    /// Puts products in 20 categories, and places orders of 30 customers in 10 days.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn load(&self, store: &impl Store) -> Result<()> {
        store.transact(|txn| {
            let products = (0..PRODUCTS).map(|id| (id, product(id)));
            self.products.put_many(txn, products)
        })?;
        for n in 0..ORDERS {
            let items = vec![(n * 7 % 100, 1 + n % 3), (n * 11 % PRODUCTS, 1)];
            let cart =
                Cart { request: format!("r{n}"), customer: n % 30, day: 20_000 + n / 30, items };
            store.transact(|txn| self.checkout(txn, &cart))?;
        }
        Ok(())
    }
}

/// A product of [`Shop::load`].
pub fn product(id: u32) -> Product {
    let category = format!("category {}", id % 20);
    let name = format!("product {id}");
    Product { id, category, name, cents: 100 + id * 37 % 1_000, stock: 1_000, sold: 0 }
}
