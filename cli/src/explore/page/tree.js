// The nodes of a tree: the way to a node, and its children, which are read when they are expanded.

import { el, link, main, read, svg } from "./common.js";
import { saveBar } from "./save.js";

export async function showTree({ name, node = "" }) {
  const data = await read("tree", { name, node });
  const field = el("input", { name: "node", type: "number", min: 0, value: node || null, "aria-label": "Id of a node", placeholder: "the id of a node" });
  const search = (event) => { event.preventDefault(); location.hash = link("tree", { name, node: field.value }); };
  const list = children(data, node);
  main.replaceChildren(
    el("h1", {}, data.name),
    el("p", { class: "bar" }, `Model: ${data.model}`, el("a", { href: link("browse", { select: data.name }) }, "The keys")),
    el("form", { class: "bar edges", onsubmit: search }, field, el("button", {}, "Show the node")),
    crumbs(data),
    list,
    saveBar(data.name, () => outline(list)));
}

/** The height of a line, and the width of a level, of the drawing that is saved. */
const [LINE, LEVEL] = [20, 18];

/** The nodes that are shown, each in a line under its parent. */
function outline(list) {
  const lines = nodes(list, 0);
  const width = Math.max(300, ...lines.map(({ text, depth }) => 24 + depth * LEVEL + text.length * 8));
  const picture = svg("svg", { class: "outline", viewBox: `0 0 ${width} ${lines.length * LINE + 12}` });
  const above = [];
  lines.forEach(({ text, depth }, at) => {
    const [x, y] = [10 + depth * LEVEL, at * LINE + 18];
    if (depth > 0) picture.append(svg("path", { d: `M${x - LEVEL + 4} ${above[depth - 1] + 6}V${y - 4}H${x - 2}` }));
    above[depth] = y;
    picture.append(svg("text", { x, y }, text));
  });
  return picture;
}

const nodes = (list, depth) => [...list.querySelectorAll(":scope > li > details")].flatMap((one) => {
  const below = one.open ? one.querySelector(":scope > ul") : null;
  return [{ text: one.querySelector("summary").textContent, depth }, ...(below ? nodes(below, depth + 1) : [])];
});

function crumbs({ name, ancestors, more_above: hasMore }) {
  const step = (one, at) => el("li", {}, el("a", { href: link("tree", { name, node: one.id }), "aria-current": at === ancestors.length - 1 ? "page" : null }, one.name));
  return el("nav", { "aria-label": "Ancestors" }, el("ol", { class: "crumbs" },
    el("li", {}, el("a", { href: link("tree", { name }) }, "Roots")),
    hasMore ? el("li", {}, "…") : null, ancestors.map(step)));
}

/** A page of children. A button reads the next page into the same list. */
function children(data, node) {
  const list = el("ul", { class: "tree" }, data.children.map((child) => item(data.name, child)));
  if (data.children.length === 0) list.append(el("li", { class: "quiet" }, node ? "No children." : "The tree has no nodes."));
  if (data.more) list.append(el("li", {}, el("button", { type: "button", onclick: (event) => extend(event, list, data, node) }, "More children")));
  return list;
}

async function extend(event, list, { name, children: shown }, node) {
  const row = event.currentTarget.parentNode;
  event.currentTarget.disabled = true;
  const next = await read("tree", { name, node, last: shown.at(-1).id }).catch(failed);
  const more = next instanceof Node ? [next] : [...children(next, node).children];
  row.replaceWith(...more);
  more[0].querySelector("summary")?.focus();
}

const failed = (error) => el("p", { class: "bad" }, error.message);

function item(name, child) {
  const open = async () => {
    if (!details.open || details.dataset.read) return;
    details.dataset.read = "yes";
    const below = await read("tree", { name, node: child.id }).catch(failed);
    details.append(below instanceof Node ? below : children(below, child.id));
  };
  const details = el("details", { ontoggle: open },
    el("summary", {}, el("code", {}, child.name || "(no name)"), " ", el("span", { class: "quiet" }, child.id)),
    el("p", { class: "bar" }, el("a", { href: link("tree", { name, node: child.id }) }, "Begin here"),
      child.key_hex ? el("a", { href: link("entry", { key: child.key_hex }) }, "Record") : null));
  return el("li", {}, details);
}
