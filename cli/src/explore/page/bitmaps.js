// The bitmaps of an inverted index: fields, values, and containers on a strip of ids.

import { bytes, el, link, main, more, number, read, svg, table } from "./common.js";
import { saveBar } from "./save.js";

/** The ids of a chunk, and the height of a row of the drawing. */
const CHUNK = 32512;
const ROW = 64;
const FORMS = { array: "array: each id", runs: "runs of ids", blocks: "blocks of 256 ids", bitset: "bitset: a bit for each id", damaged: "damaged" };

export async function showBitmaps({ name, field = "", value = "", after = "", last = "" }) {
  const data = await read("bitmaps", { name, field, value, after, last });
  const chosen = data.values.find((one) => one.hex === value);
  const title = !field ? "All ids in use" : data.is_integers ? `Slices of ${shown(field)}` : `Containers of ${chosen ? chosen.value : "a value"}`;
  main.replaceChildren(
    el("h1", {}, data.name),
    el("p", {}, "Sets of records of ", el("a", { href: link("browse", { select: data.table }) }, data.table), ". ",
      el("a", { href: link("browse", { select: data.name }) }, "The keys")),
    fields(data),
    field && !data.is_integers ? values(data, { name, field, value, after }) : "",
    data.is_chosen ? containers(data, title, { name, field, value, after, last }) : "");
}

const shown = (text) => JSON.stringify(text);

function fields({ name, field: chosen, fields: list, more_fields: hasMore }) {
  const rows = list.map((one) => [
    el("a", { href: link("bitmaps", { name, field: one.name }), "aria-current": one.name === chosen ? "true" : null }, el("code", {}, one.shown)),
    one.is_integers ? "integers, bit by bit" : "values", one.is_integers ? "" : number(one.containers)]);
  const all = [el("a", { href: link("bitmaps", { name }), "aria-current": chosen ? null : "true" }, "all ids"), "", ""];
  return el("section", {}, el("h2", {}, "Fields"),
    table(["Field", "~Kind", "#Containers"], [all, ...rows], ""), more(hasMore));
}

function values(data, { name, field, value, after }) {
  const rows = data.values.map((one) => [
    el("a", { href: link("bitmaps", { name, field, value: one.hex, after }), "aria-current": one.hex === value ? "true" : null }, el("code", {}, one.value)),
    `${number(one.ids)}${one.more ? " or more" : ""}`, `${number(one.containers)}${one.more ? " or more" : ""}`]);
  return el("section", { class: "values" }, el("h2", {}, `Values of ${shown(field)}`),
    table(["Value", "#Records", "#Containers"], rows, "No record has a value."),
    el("p", { class: "bar" },
      after ? el("a", { href: link("bitmaps", { name, field }) }, "First values") : null,
      data.next_value ? el("a", { href: link("bitmaps", { name, field, after: data.next_value }) }, "Next values") : null));
}

function containers(data, title, params) {
  const list = data.containers;
  const forms = Object.entries(FORMS).filter(([form]) => list.some((one) => one.form === form));
  const picture = list.length > 0 ? strip(data) : null;
  const rows = list.map((one) => [
    el("a", { href: link("entry", { key: one.key_hex }) }, el("code", {}, one.key)), one.form, ids(one),
    one.ids === null ? "" : number(one.ids), bytes(one.bytes)]);
  return el("section", { class: "containers" }, el("h2", {}, title),
    ...(list.length > 0 ? [picture, saveBar(`${data.name} ${data.field}`, () => picture)] : []),
    el("p", { class: "bar" }, forms.map(([form, text]) => el("span", { class: `key ${form}` }, text))),
    table(["Container", "Form", "~Ids", "#Entries", "#Bytes"], rows, "There are no containers."),
    el("p", { class: "bar" },
      params.last ? el("a", { href: link("bitmaps", { ...params, last: "" }) }, "First containers") : null,
      data.next ? el("a", { href: link("bitmaps", { ...params, last: data.next }) }, "Next containers") : null));
}

const ids = ({ first }) => (first === null ? "" : `${number(first)} to ${number(first + CHUNK - 1)}`);

/** The ids from the first to the last container that is shown, in rows of chunks. The height of a bar is the share of its ids that are set. */
function strip({ containers: list, chunks }) {
  const width = Math.max(300, main.clientWidth - (matchMedia("(max-width: 640px)").matches ? 24 : 40));
  const slices = [...new Set(list.map((one) => one.slice ?? 0))].sort((a, b) => a - b);
  const placed = list.filter((one) => one.chunk !== null);
  const [low, high] = [Math.min(...placed.map((one) => one.chunk)), Math.max(...placed.map((one) => one.chunk))];
  const picture = svg("svg", { class: "strip", viewBox: `0 0 ${width} ${ROW * slices.length + 20}`, role: "group", "aria-label": "The containers over the ids" });
  const scale = { left: list.some((one) => one.slice !== null) ? 64 : 8, low, count: high - low + 1, width };
  slices.forEach((slice, at) => {
    const row = placed.filter((one) => (one.slice ?? 0) === slice);
    if (scale.left > 8) picture.append(svg("text", { x: 8, y: at * ROW + 34 }, sliceName(slice)));
    picture.append(svg("line", { class: "ground", x1: scale.left, y1: at * ROW + 56, x2: width - 8, y2: at * ROW + 56 }));
    for (const one of row) picture.append(container(one, at * ROW, scale));
  });
  const end = ROW * slices.length + 12;
  picture.append(svg("text", { class: "bound", x: scale.left, y: end }, `id ${number(low * CHUNK)}`),
    svg("text", { class: "bound end", x: width - 8, y: end }, `${number((high + 1) * CHUNK - 1)} of ${number(Math.max(chunks, high + 1) * CHUNK)}`));
  return picture;
}

const sliceName = (slice) => (slice === 0 ? "present" : slice === 1 ? "negative" : `bit ${slice - 2}`);

// A link of the table below leads to the same entry, so the drawing is not in the order of the keyboard.
function container(one, top, { left, low, count, width }) {
  const size = (width - 8 - left) / count;
  const x = left + (one.chunk - low) * size;
  const step = size / Math.max(1, one.buckets.length);
  const most = CHUNK / Math.max(1, one.buckets.length);
  const bars = one.buckets.map((ids, at) => {
    const height = ids === 0 ? 0 : Math.max(2, ids / most * 44);
    return svg("rect", { class: one.form, x: x + at * step, y: top + 56 - height, width: Math.max(0.5, step * 0.9), height });
  });
  return svg("a", { href: link("entry", { key: one.key_hex }), tabindex: -1 },
    svg("title", {}, `${one.key}: ${FORMS[one.form]}, ${number(one.ids ?? 0)} ids, ${bytes(one.bytes)}`),
    svg("rect", { class: "frame", x, y: top + 8, width: Math.max(1, size - 1), height: 48 }), ...bars);
}
