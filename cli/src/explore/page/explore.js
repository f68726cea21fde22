// The page of `keyloom explore`: overview, entries, indexes, locks and queues. Views of a kind of
// data have modules of their own.

import { showBitmaps } from "./bitmaps.js";
import { begin, bytes, el, keyLink, link, main, more, number, pager, read, svg, table, value } from "./common.js";
import { showExplain } from "./explain.js";
import { showGraph } from "./graph.js";
import { showPlaces } from "./places.js";
import { saveBar } from "./save.js";
import { showText } from "./text.js";
import { showTree } from "./tree.js";

const sizes = new Map();
let overview = null;
let unit = "bytes";
let redraw = () => {};
/** The views of kinds of derived data, as the schema stores the kinds. */
const OF_KIND = { index: "index", "unique index": "index", points: "places", "incoming edges": "graph", tree: "tree", "text index": "text", "inverted index": "bitmaps" };
const TITLES_OF_VIEWS = { index: "With the records beside the entries", places: "On a map", graph: "As a graph", tree: "As a tree", text: "Its terms and documents", bitmaps: "Its bitmaps" };
const color = (row) => (row.kind === "table" ? "table" : row.is_index ? "index" : row.kind ? "derived" : "other");

// Overview

async function showOverview() {
  overview = await read("overview");
  const rows = overview.parts.concat(overview.others);
  const map = el("div", {});
  const list = el("div", {});
  const draw = () => {
    map.replaceChildren(treemap(rows));
    list.replaceChildren(partsTable(overview.parts), othersTable(overview));
    for (const button of switches) button.setAttribute("aria-pressed", String(button.dataset.unit === unit));
  };
  const choose = (event) => { unit = event.currentTarget.dataset.unit; draw(); };
  const choice = (name, text) => el("button", { type: "button", "data-unit": name, onclick: choose }, text);
  const switches = [choice("bytes", "by bytes"), choice("entries", "by keys")];
  const measure = el("button", { type: "button", onclick: () => { measure.remove(); load(rows, draw); } }, "Read the sizes");
  const keys = [["table", "tables"], ["index", "indexes"], ["derived", "other derived data"], ["other", "no schema"]];
  main.replaceChildren(
    el("h1", {}, "What the store holds"),
    overview.faults.map((fault) => el("p", { class: "bad" }, `A schema is not readable: ${fault}`)).reduce(append, document.createDocumentFragment()),
    el("div", { class: "bar" }, switches, keys.map(([name, text]) => el("span", { class: `key ${name}` }, text)), overview.is_remote ? measure : null),
    map, saveBar("shares", () => map.firstChild), list);
  redraw = draw;
  draw();
  // From a server, sizes take thousands of reads over the network.
  if (!overview.is_remote) await load(rows, draw);
}
const append = (all, one) => { all.append(one); return all; };

/** Reads the sizes, four at a time. */
async function load(rows, draw) {
  const waiting = rows.filter((row) => !sizes.has(row.prefix_hex));
  const worker = async () => {
    for (let row = waiting.shift(); row; row = waiting.shift()) {
      const failed = (error) => ({ failed: error.message });
      sizes.set(row.prefix_hex, await read("size", { prefix: row.prefix_hex }).catch(failed));
      draw();
    }
  };
  await Promise.all([1, 2, 3, 4].map(worker));
}

function sizeCells(row) {
  const size = sizes.get(row.prefix_hex);
  if (!size) return ["…", "…"];
  if (size.failed) return ["not read", size.failed];
  const about = size.error_percent == null ? "" : "about ";
  const error = size.error_percent == null ? "" : ` ±${number(size.error_percent)} %`;
  return [`${about}${number(size.entries)}${error}`, `${about}${bytes(size.bytes)}`];
}

function partsTable(parts) {
  const rows = parts.map((part) => [
    el("a", { href: OF_KIND[part.kind] ? link(OF_KIND[part.kind], { name: part.id }) : link("browse", { select: part.id }) }, part.id),
    part.kind, part.state, el("code", {}, part.prefix), ...sizeCells(part)]);
  return el("section", {}, el("h2", {}, "Named by schemas"),
    table(["Name", "~Kind", "~State", "~Subspace", "#Keys", "#Bytes"], rows, "The store has no schema."));
}

function othersTable({ others, more_others }) {
  const rows = others.map((one) => [
    el("a", { href: link("browse", { select: one.prefix.endsWith("…") ? `0x${one.prefix_hex}` : one.prefix }) }, el("code", {}, one.prefix)),
    one.is_schemas ? "the schemas themselves" : "", ...sizeCells(one)]);
  return el("section", {}, el("h2", {}, "All other keys, by their first element"),
    table(["Prefix", "", "#Keys", "#Bytes"], rows, "There are no other keys."),
    more_others ? el("p", { class: "quiet" }, "There are more groups than this list.") : null);
}

/** Squares of similar shape whose areas are the sizes (Bruls, Huizing, van Wijk 2000). */
function treemap(rows) {
  const isNarrow = matchMedia("(max-width: 640px)").matches;
  const [width, height] = [main.clientWidth - (isNarrow ? 24 : 40), isNarrow ? 220 : 300];
  const known = rows.map((row) => ({ row, size: (sizes.get(row.prefix_hex) || {})[unit] || 0 }));
  const items = known.filter((one) => one.size > 0).sort((a, b) => b.size - a.size);
  const total = items.reduce((sum, one) => sum + one.size, 0);
  // An area of at least one square pixel, so that a tiny table can be focused.
  const areas = items.map((one) => ({ ...one, area: Math.max(1, one.size / total * width * height) }));
  const picture = svg("svg", { class: "map", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "group", "aria-label": `Shares of the store by ${unit}` });
  let [box, at] = [{ x: 0, y: 0, w: width, h: height }, 0];
  while (at < areas.length) {
    const side = Math.max(1, Math.min(box.w, box.h));
    let strip = [areas[at++]];
    while (at < areas.length && worst([...strip, areas[at]], side) <= worst(strip, side)) strip.push(areas[at++]);
    box = lay(strip, box, picture, total);
  }
  return picture;
}

function worst(strip, side) {
  const sum = strip.reduce((all, one) => all + one.area, 0);
  return Math.max(...strip.map((one) => Math.max(side ** 2 * one.area / sum ** 2, sum ** 2 / (side ** 2 * one.area))));
}

/** Lays a strip along the shorter side of the box, and returns the rest of the box. */
function lay(strip, { x, y, w, h }, picture, total) {
  const sum = strip.reduce((all, one) => all + one.area, 0);
  const isTall = w >= h;
  const thick = sum / Math.max(1, isTall ? h : w);
  let offset = 0;
  for (const one of strip) {
    const long = one.area / thick;
    picture.append(isTall ? cell(one, x, y + offset, thick, long, total) : cell(one, x + offset, y, long, thick, total));
    offset += long;
  }
  return isTall ? { x: x + thick, y, w: Math.max(0, w - thick), h } : { x, y: y + thick, w, h: Math.max(0, h - thick) };
}

function cell({ row, size }, x, y, w, h, total) {
  const name = row.id || row.prefix;
  const shown = unit === "bytes" ? bytes(size) : `${number(size)} keys`;
  const label = `${name}: ${shown}, ${(size / total * 100).toFixed(1)} %`;
  const box = svg("svg", { x, y, width: Math.max(0, w), height: Math.max(0, h) });
  box.append(svg("rect", { class: color(row), width: "100%", height: "100%" }));
  if (w > 48 && h > 20) box.append(svg("text", { x: 6, y: 16 }, name));
  if (w > 48 && h > 38) box.append(svg("text", { x: 6, y: 32 }, shown));
  const title = svg("title", {}, label);
  const select = row.id || (row.prefix.endsWith("…") ? `0x${row.prefix_hex}` : row.prefix);
  return svg("a", { href: link("browse", { select }), "aria-label": label }, title, box);
}

// Entries

async function showBrowse(params) {
  const { select = "", after = "", reverse = "" } = params;
  const page = await read("browse", { select, after, reverse });
  const input = el("input", { name: "select", value: select, "aria-label": "Keys", placeholder: "a table, or a tuple such as (\"orders\", 7, _)", spellcheck: "false" });
  const search = (event) => { event.preventDefault(); location.hash = link("browse", { select: input.value, reverse }); };
  const part = viewed(select);
  const rows = page.entries.map((row) => [keyLink(row), row.part || "", value(row), number(row.bytes)]);
  main.replaceChildren(
    el("h1", {}, select || "All keys"),
    part ? el("p", {}, el("a", { href: link(OF_KIND[part.kind], { name: part.id }) }, TITLES_OF_VIEWS[OF_KIND[part.kind]])) : "",
    el("form", { class: "bar", onsubmit: search }, input, el("button", {}, "List"),
      el("a", { href: link("browse", { select, reverse: reverse ? "" : "yes" }) }, reverse ? "ascending" : "descending")),
    table(["Key", "~Part", "Value", "#Bytes"], rows, `None of the ${page.keys_read} keys of this page match.`),
    pager("browse", { select, reverse }, after, page.next));
}

/** The part with a view of its own: this one, or the incoming edges of this table of edges. */
const viewed = (id) => overview.parts.find((one) => OF_KIND[one.kind] &&
  (one.id === id || (one.kind === "incoming edges" && `${one.schema}/${one.table}` === id)));

async function showEntry({ key }) {
  const [entry, related] = await Promise.all([read("entry", { key }), read("related", { key })]);
  const hexNote = entry.value_hex_bytes < entry.bytes ? ` (the first ${number(entry.value_hex_bytes)} of ${number(entry.bytes)} bytes)` : "";
  const up = entry.part ? el("a", { href: link("browse", { select: entry.part }) }, entry.part) : el("span", { class: "quiet" }, "no schema");
  main.replaceChildren(
    el("h1", { class: "mono" }, entry.key),
    el("dl", {},
      el("dt", {}, "Part"), el("dd", {}, up, entry.kind ? ` (${entry.kind})` : ""),
      el("dt", {}, "Key"), el("dd", {}, el("code", {}, entry.key_hex), ` (${number(entry.key_bytes)} bytes)`),
      el("dt", {}, "Value"), el("dd", {}, `${number(entry.bytes)} bytes, shown as ${entry.form}${entry.cut ? ", cut" : ""}`)),
    el("h2", {}, "Value"), el("pre", { tabindex: 0 }, pretty(entry)),
    el("h2", {}, `Value in hexadecimal digits${hexNote}`), el("pre", { tabindex: 0 }, entry.value_hex.replace(/../g, "$& ").trim() || "(empty)"),
    ...(related.indexes || []).map(indexSection),
    related.record ? recordSection(related.record) : "");
}

/** JSON on several lines, with the same tokens: to print the parsed value would change numbers and repeated names. */
function pretty(entry) {
  if (entry.cut || entry.form === "utf8") return entry.value;
  try { JSON.parse(entry.value); } catch { return entry.value; }
  const tokens = entry.value.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  return tokens.map((token, at) => {
    if ("{[".includes(token)) {
      if ("}]".includes(tokens[at + 1])) return token;
      depth += 1;
      return token + line();
    }
    if ("}]".includes(token)) {
      if ("{[".includes(tokens[at - 1])) return token;
      depth -= 1;
      return line() + token;
    }
    return token === "," ? token + line() : token === ":" ? ": " : token;
  }).join("");
}

function indexSection({ index, kind, state, entries, complete }) {
  const none = complete ? "No entry leads to this record." : "No entry was found by the values of the record. Only the program can derive its entries.";
  return el("section", {},
    el("h2", {}, el("a", { href: link("index", { name: index }) }, index), ` (${kind}, ${state})`),
    table(["Entry that leads to this record"], entries.map((row) => [keyLink(row)]), none),
    complete || entries.length === 0 ? "" : el("p", { class: "quiet" }, "Found by the values of the record; there may be others."));
}

function recordSection(record) {
  const found = record.state === "found";
  return el("section", {}, el("h2", {}, "The record"),
    found ? table(["Key", "Value"], [[keyLink(record), value(record)]], "") : el("p", {}, status(record), " ", el("code", {}, record.key || "")));
}

const STATES = {
  orphaned: "Orphaned: there is no such record.",
  pending: "Pending: the record is gone, and the queue of the index has changes to apply.",
  "not an entry": "These bytes are not an index entry.",
};
const status = (record) => el("span", { class: record.state === "pending" ? "quiet" : "bad" }, STATES[record.state]);

async function showIndex({ name, after = "" }) {
  const page = await read("joined", { name, after });
  const rows = page.rows.map(({ entry, record }) => record.state === "found"
    ? [keyLink(entry), keyLink(record), value(record)]
    : { mark: "orphaned", cells: [keyLink(entry), el("code", {}, record.key || ""), status(record)] });
  main.replaceChildren(
    el("h1", {}, page.index),
    el("p", {}, "Entries with their records of ", el("a", { href: link("browse", { select: page.table }) }, page.table), ". ",
      el("a", { href: link("explain", { name }) }, "Explain a query")),
    table(["Entry", "Record", "Value"], rows, "The index has no entries."),
    pager("index", { name }, after, page.next));
}

// Locks and queues

async function showWork() {
  const locks = await Promise.all(overview.locks.map((name) => read("locks", { name })));
  const queues = await Promise.all(overview.queues.map((name) => read("queue", { name })));
  const lockRows = (set) => set.requests.map(([, owner, state, since, lease, token, paths]) => [owner, state, since, lease, token, el("code", {}, paths)]);
  main.replaceChildren(
    el("h1", {}, "Locks and queues"),
    ...locks.map((set) => el("section", {}, el("h2", {}, `Locks ${set.name}`),
      table(["Owner", "State", "Since", "Lease", "#Token", "Paths"], lockRows(set), "No lock is held, and no request waits."),
      more(set.more))),
    ...queues.flatMap((queue) => [el("h2", {}, `Queue ${queue.name}`), ...queue.states.map(jobs)]),
    locks.length + queues.length === 0 ? el("p", { class: "quiet" }, "The schemas have neither locks nor queues.") : "");
}

const TITLES = { waiting: "Waiting", leased: "Leased", dead: "Dead letters" };
function jobs({ state, jobs: list, more: hasMore }) {
  const rows = list.map((job) => [
    el("a", { href: link("entry", { key: job.key_hex }) }, el("code", {}, job.id)), job.tenant || "",
    el("span", { class: job.state === "overdue" || job.state === "dead" ? "bad" : null }, `${job.state}, ${job.time}`),
    job.attempts ?? "", job.error || ""]);
  return el("section", {}, el("h3", {}, `${TITLES[state]}: ${list.length}${hasMore ? " or more" : ""}`),
    table(["Job", "Tenant", "State", "#Attempts", "Last error"], rows, "None."), more(hasMore));
}

// Navigation

const VIEWS = { "": showOverview, bitmaps: showBitmaps, browse: showBrowse, entry: showEntry, explain: showExplain, index: showIndex, places: showPlaces, graph: showGraph, tree: showTree, text: showText, work: showWork };

async function show() {
  begin();
  const [view, query] = location.hash.replace(/^#\/?/, "").split("?");
  redraw = () => {};
  try {
    overview ??= await read("overview");
    document.getElementById("address").textContent = overview.address;
    navigate(view);
    await (VIEWS[view] || showOverview)(Object.fromEntries(new URLSearchParams(query)));
  } catch (error) {
    main.replaceChildren(el("h1", {}, "This view cannot be shown"), el("p", { class: "bad" }, error.message));
  }
}

function navigate(view) {
  const entry = (name, text) => el("a", { href: `#/${name}`, "aria-current": name === view ? "page" : null }, text);
  document.getElementById("nav").replaceChildren(entry("", "Overview"), entry("browse", "Keys"), entry("work", "Locks and queues"));
}

addEventListener("resize", () => redraw());
addEventListener("hashchange", () => { show(); main.focus({ preventScroll: true }); scrollTo(0, 0); });
show();
