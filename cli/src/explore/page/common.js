// What all views share. Data reaches the page as text nodes alone, so keys and values are shown and
// never executed.

const SVG = "http://www.w3.org/2000/svg";
export const main = document.getElementById("content");

/** An element with properties and children. Strings become text nodes. */
export function el(name, props = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((child) => child !== null).map(asNode));
  return node;
}
const asNode = (child) => (child instanceof Node ? child : document.createTextNode(String(child)));

export function svg(name, props, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

let turn = 0;
/** Begins a view. Whatever an earlier one still waits for never arrives, so it draws nothing. */
export const begin = () => { turn += 1; };

/** Reads a view. Relative to the page, whose path contains the token. */
export async function read(view, params = {}) {
  const own = turn;
  const body = await fetched(view, params).catch((error) => ({ failed: error }));
  if (own !== turn) return new Promise(() => {});
  if (body.failed) throw body.failed;
  return body;
}

async function fetched(view, params) {
  const answer = await fetch(`api/${view}?${new URLSearchParams(params)}`);
  const isJson = (answer.headers.get("content-type") || "").startsWith("application/json");
  const body = isJson ? await answer.json() : { error: await answer.text() };
  if (!answer.ok) throw new Error(body.error);
  return body;
}

export const link = (view, params = {}) => `#/${view}?${new URLSearchParams(params)}`;
export const number = (value) => value.toLocaleString("en");

export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (count >= 1024 && at < units.length - 1) [count, at] = [count / 1024, at + 1];
  return `${at === 0 || count >= 100 ? Math.round(count) : count.toFixed(1)} ${units[at]}`;
}

/** A table. `#` marks a column of numbers, and `~` one that a narrow page leaves out. */
export function table(head, rows, empty) {
  if (rows.length === 0) return el("p", { class: "quiet" }, empty);
  const numeric = new Set(head.map((title, at) => (title.startsWith("#") ? at : -1)));
  const wide = new Set(head.map((title, at) => (title.startsWith("~") ? at : -1)));
  const cls = (at) => (numeric.has(at) ? "number" : wide.has(at) ? "wide" : null);
  const title = (text, at) => el("th", { scope: "col", class: cls(at) }, text.replace(/^[#~]/, ""));
  const cell = (content, at) => el("td", { class: cls(at) }, content);
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, head.map(title))),
    el("tbody", {}, rows.map((row) => el("tr", { class: row.mark }, (row.cells || row).map(cell))))));
}

export const keyLink = (row) => el("a", { href: link("entry", { key: row.key_hex }) }, el("code", {}, row.key));
export const value = (row) => el("code", {}, row.value);

export const pager = (view, params, after, next) => el("p", { class: "bar" },
  after ? el("a", { href: link(view, params) }, "First page") : null,
  next ? el("a", { href: link(view, { ...params, after: next }) }, "Next page") : el("span", { class: "quiet" }, "There are no more keys."));

export const more = (hasMore) => hasMore ? el("p", { class: "quiet" }, "There are more.") : "";
