// Points of a spatial index on a world map, in plate carree: one degree is one unit.

import { el, link, main, number, read, svg, table, value } from "./common.js";
import { LAND } from "./land.js";
import { saveBar } from "./save.js";

const WORLD = [-90, -180, 90, 180];
const FIELDS = ["south", "west", "north", "east"];
/** The pixels after which a press is a drag. */
const DRAGGED = 6;

export async function showPlaces({ name, group = "", box = "" }) {
  const data = await read("places", { name, group, box });
  const go = (box) => { location.hash = link("places", { name, group, box }); };
  const area = data.box;
  const places = area ? area.entries.map(({ place }) => place) : data.points;
  const picture = map(places, area, go);
  main.replaceChildren(
    el("h1", {}, data.name),
    el("p", {}, summary(data), " ", el("a", { href: link("browse", { select: data.name }) }, "The keys"), " ",
      area ? el("a", { href: link("explain", { name, group: data.group_hex, box }) }, "Explain the query") : ""),
    groups(data),
    picture, saveBar(data.name, () => picture),
    el("p", { class: "quiet" }, "Draw a box with the mouse, tap two corners, or type the edges in degrees. ",
      "The background shows where people live: GeoNames, CC BY 4.0."),
    form(area, go),
    area ? legend(area) : "",
    area ? boxTable(area) : pointTable(places));
}

function summary({ points, complete, box }) {
  if (box) return `${number(box.entries.length)} entries in the box${box.more ? ", and there may be more" : ""}; ${number(box.keys_read)} entries were read in ${number(box.ranges)} ranges.`;
  if (points.length === 0) return "The index has no entries.";
  return complete ? `All ${number(points.length)} positions.` : `A sample of ${number(points.length)} points, spread over the map.`;
}

function groups({ name, group, next_group: next }) {
  if (!group && !next) return "";
  return el("p", { class: "bar" }, "Points of ", el("code", {}, group || "()"),
    next ? el("a", { href: link("places", { name, group: next.hex }) }, "Next: ", el("code", {}, next.name)) : "",
    el("a", { href: link("places", { name }) }, "First"));
}

/** The part of the world that is shown: the box with a margin, at least 0.04 by 0.02 degrees. */
function view(area) {
  if (!area) return WORLD;
  const [south, west, north, east] = area.bounds;
  if (west > east) return WORLD;
  const height = Math.min(180, Math.max((north - south) * 1.3, (east - west) * 0.65, 0.02));
  const clamp = (middle, half, limit) => Math.max(half - limit, Math.min(limit - half, middle));
  const y = clamp((south + north) / 2, height / 2, 90);
  const x = clamp((west + east) / 2, height, 180);
  return [y - height / 2, x - height, y + height / 2, x + height];
}

function map(places, area, go) {
  const [south, west, north, east] = view(area);
  const picture = svg("svg", {
    class: "world", viewBox: `${west} ${-north} ${east - west} ${north - south}`, role: "group",
    "aria-label": area ? "Map of the box" : "Map of the world",
  });
  const pixel = (east - west) / main.clientWidth;
  picture.append(
    svg("path", { class: "land", d: LAND, transform: "translate(-180 -90) scale(1.5)" }),
    svg("path", { class: "grid", d: grid() }));
  for (const cell of area ? area.cells : []) picture.append(rectangle(cell.bounds, `cell ${cell.relation}`));
  if (area) boxes(area.bounds).forEach((bounds) => picture.append(rectangle(bounds, "box")));
  // A link of the table below leads to the same entry, so the dots are not in the order of the keyboard.
  const dot = (place) => svg("a", { href: link("entry", { key: place.key_hex }), tabindex: -1 },
    svg("title", {}, `${place.record}: ${position(place)}`),
    svg("circle", { cx: place.longitude, cy: -place.latitude, r: 5 * pixel }));
  picture.append(...places.map(dot));
  drawable(picture, go);
  return picture;
}

function grid() {
  const lines = [];
  for (let x = -150; x < 180; x += 30) lines.push(`M${x} -90V90`);
  for (let y = -60; y < 90; y += 30) lines.push(`M-180 ${y}H180`);
  return lines.join("");
}

/** A box across the meridian of 180 degrees is two rectangles. */
const boxes = ([south, west, north, east]) => west <= east
  ? [[south, west, north, east]] : [[south, west, north, 180], [south, -180, north, east]];

const rectangle = ([south, west, north, east], cls) =>
  svg("rect", { class: cls, x: west, y: -north, width: east - west, height: north - south });

/** A box by dragging a mouse, or by two clicks or taps. */
function drawable(picture, go) {
  const drawn = svg("rect", { class: "drawn", width: 0, height: 0 });
  picture.append(drawn);
  let corner = null;
  let pressed = null;
  const at = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
  const stretch = (event) => {
    const to = at(event);
    const box = { x: Math.min(corner.x, to.x), y: Math.min(corner.y, to.y), width: Math.abs(corner.x - to.x), height: Math.abs(corner.y - to.y) };
    for (const [key, value] of Object.entries(box)) drawn.setAttribute(key, value);
    return [-box.y - box.height, box.x, -box.y, box.x + box.width];
  };
  picture.addEventListener("pointerdown", (event) => {
    if (event.target.closest("a")) return;
    pressed = { x: event.clientX, y: event.clientY, isSecond: corner !== null };
    corner ??= at(event);
  });
  picture.addEventListener("pointermove", (event) => { if (corner && event.pointerType === "mouse") stretch(event); });
  picture.addEventListener("pointercancel", () => { pressed = null; corner = null; });
  picture.addEventListener("pointerup", (event) => {
    if (!pressed) return;
    const isDragged = Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) > DRAGGED;
    if (pressed.isSecond || isDragged) go(text(stretch(event)));
    pressed = null;
  });
}

/** The edges with as many digits as a pixel needs, within the world. */
const text = (box) => box.map((edge, at) => Math.max(WORLD[at % 2], Math.min(-WORLD[at % 2], edge)).toFixed(4)).join(",");

function form(area, go) {
  const bounds = area ? area.bounds : null;
  const inputs = FIELDS.map((field, at) => el("input", {
    name: field, type: "number", step: "any", required: "", value: bounds ? bounds[at] : null,
    min: WORLD[at % 2], max: -WORLD[at % 2],
  }));
  const search = (event) => { event.preventDefault(); go(inputs.map((input) => input.value).join(",")); };
  return el("form", { class: "bar edges", onsubmit: search },
    FIELDS.map((field, at) => el("label", {}, field, inputs[at])),
    el("button", {}, "List the box"),
    area ? el("button", { type: "button", onclick: () => go("") }, "Whole world") : null);
}

function legend(area) {
  const shown = new Set(area.cells.map((cell) => cell.relation));
  const names = [["inside", "cells in the box"], ["across", "cells across its border"], ["gap", "gaps that a range reads"]];
  return el("p", { class: "bar" }, `A query of the box reads ${number(area.ranges)} ranges of the curve: `,
    names.filter(([name]) => shown.has(name)).map(([name, title]) => el("span", { class: `key ${name}` }, title)));
}

const position = ({ latitude, longitude }) => `${latitude}, ${longitude}`;
const entryLink = (place) => el("a", { href: link("entry", { key: place.key_hex }) }, el("code", {}, place.record));

const pointTable = (places) => table(["Record key, with a link to the entry", "Latitude, longitude"],
  places.map((place) => [entryLink(place), position(place)]), "There are no points.");

function boxTable({ entries }) {
  const rows = entries.map(({ place, record }) => [entryLink(place), position(place),
    record.state === "found" ? value(record) : el("span", { class: "bad" }, record.state)]);
  return table(["Record key", "~Latitude, longitude", "Record"], rows, "The entries that were read are not in the box.");
}
