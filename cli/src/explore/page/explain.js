// What a query reads, step by step: its ranges on the key line of each part, and the keys of them.

import { el, link, main, number, read, svg, table } from "./common.js";
import { saveBar } from "./save.js";

/** The height of a lane, and the pixels between keys that no step reads. */
const LANE = 96;
const GAP = 14;
const MARKS = { returned: "returned or fetched", read: "read, and not returned", missing: "asked for, and missing" };

export async function showExplain(params) {
  const { name } = params;
  const data = await read("explain", params);
  const picture = drawing(data);
  main.replaceChildren(
    el("h1", {}, `What a query of ${data.name} reads`),
    form(data, params),
    el("p", { class: "counts" }, summary(data)),
    data.library ? el("p", { class: "quiet" }, `The library counts: ${data.library}.`) : "",
    el("p", { class: "bar" }, Object.entries(MARKS).map(([mark, text]) => el("span", { class: `key ${mark}` }, text)),
      el("a", { href: link("browse", { select: name }) }, "All keys")),
    picture, data.lanes.length > 0 ? saveBar(`${data.name} explained`, () => picture) : "",
    el("h2", {}, "Steps"), steps(data),
    el("h2", {}, "Keys in key order"), keys(data));
}

const s = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

function summary({ total, stopped }) {
  const reads = [total.ranges ? `${s(total.ranges, "range")} with ${s(total.scanned, "key")}` : "", total.gets ? `${s(total.gets, "get")} with ${s(total.fetched, "key")}` : ""];
  const why = { keys: " It was stopped: the explorer reads no more keys for one query.", results: ` There may be more: a query lists ${s(total.results, "result")} here.` };
  return `The query reads ${s(total.keys_read, "key")} (${reads.filter(Boolean).join(", ") || "nothing"}) for ${s(total.results, "result")}.${why[stopped] || ""}`;
}

/** The parts of an index, the edges of a box, or a term. */
function form({ kind, parts }, { name, group = "", ...params }) {
  const [field, text, hint] = { points: ["box", params.box, "south,west,north,east in degrees"], "text index": ["term", params.term, "a term, as it is stored"] }[kind]
    || ["parts", parts, "a tuple such as (\"London\", _) or (2026..,)"];
  const input = el("input", { name: field, value: text || "", "aria-label": field, placeholder: hint, spellcheck: "false" });
  const search = (event) => { event.preventDefault(); location.hash = link("explain", { name, group, [field]: input.value }); };
  return el("form", { class: "bar", onsubmit: search }, input, el("button", {}, "Explain"));
}

/** Each lane has the keys of one part in their order. Keys that were not read are a gap of any length. */
function drawing({ lanes }) {
  if (lanes.length === 0) return el("p", { class: "quiet" }, "The query reads nothing.");
  const width = Math.max(300, main.clientWidth - (matchMedia("(max-width: 640px)").matches ? 24 : 40));
  const picture = svg("svg", { class: "explain", viewBox: `0 0 ${width} ${LANE * lanes.length}`, role: "group", "aria-label": "The keys that the query reads, in key order" });
  lanes.forEach((lane, at) => picture.append(laneGroup(lane, at * LANE, width)));
  return picture;
}

function laneGroup(lane, top, width) {
  const gaps = lane.spans.map((_, at) => at > 0 || lane.has_before);
  const count = lane.spans.reduce((sum, span) => sum + Math.max(1, span.keys.length), 0);
  const some = gaps.filter(Boolean).length + (lane.has_after ? 1 : 0);
  const gap = Math.min(GAP, (width - 20) / 2 / Math.max(1, some));
  const size = Math.min(18, (width - 20 - some * gap) / count);
  const room = Math.floor((width - 16) / 7.4);
  const group = svg("g", {}, svg("text", { x: 8, y: top + 18 }, cut(lane.name, room)));
  let x = 8;
  lane.spans.forEach((span, at) => {
    if (gaps[at]) x += dots(group, x, top, gap);
    x += spanGroup(group, span, x, top, size);
  });
  if (lane.has_after) dots(group, x, top, gap);
  group.append(svg("text", { class: "bound", x: 8, y: top + 82 }, cut(`${lane.first ?? "no keys"} … ${lane.last ?? ""}`, room)));
  return group;
}

function dots(group, x, top, gap) {
  group.append(svg("line", { class: "skipped", x1: x, y1: top + 38, x2: x + gap, y2: top + 38 }));
  return gap;
}

function spanGroup(group, { step, is_range: isRange, keys: list }, x, top, size) {
  const width = size * Math.max(1, list.length);
  if (isRange) group.append(svg("rect", { class: "range", x, y: top + 26, width, height: 24 }));
  list.forEach((one, at) => group.append(keyCell(one, x + at * size, top, size, step)));
  if (isRange || width > 7) group.append(svg("text", { class: "step", x: x + width / 2, y: top + 64 }, String(step)));
  return width;
}

// A link of the table below leads to the same entry, so the keys are not in the order of the keyboard.
const keyCell = ({ key, key_hex: hex, mark }, x, top, size, step) => svg("a", { href: link("entry", { key: hex }), tabindex: -1 },
  svg("title", {}, `Step ${step}: ${key}, ${MARKS[mark]}`),
  svg("rect", { class: mark, x: x + size * 0.08, y: top + 29, width: size * 0.84, height: 18 }));

function steps({ steps: list }) {
  const rows = list.map((step, at) => {
    const what = step.what === "range" ? (step.descending ? "a range, descending" : "a range") : `${s(step.asked, "get")} together`;
    const ends = step.what === "range" ? `${step.from}; ${step.to}` : `${step.from}${step.asked > 1 ? `, …, ${step.to}` : ""}`;
    return [at + 1, what, step.lane, el("code", {}, ends), number(step.keys_read), step.what === "range" ? number(step.returned) : ""];
  });
  return table(["#Step", "~What", "~Part", "Bounds", "#Keys read", "#Returned"], rows, "None.");
}

function keys({ lanes }) {
  const rows = lanes.flatMap((lane) => lane.spans.flatMap((span) => span.keys.map((one) => [
    span.step, one.mark === "missing" ? el("code", {}, one.key) : el("a", { href: link("entry", { key: one.key_hex }) }, el("code", {}, one.key)), lane.name, MARKS[one.mark]])));
  return table(["#Step", "Key", "~Part", "Mark"], rows, "The query reads no key.");
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text);
