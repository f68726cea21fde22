// The terms of a text index, and the documents of a term.

import { el, keyLink, link, main, more, number, read, table, value } from "./common.js";

export async function showText({ name, group = "", term = "" }) {
  const data = await read("text", { name, group, term });
  const input = el("input", { name: "term", value: term, "aria-label": "Term", placeholder: "a term or its beginning, as it is stored", spellcheck: "false" });
  const search = (event) => { event.preventDefault(); location.hash = link("text", { name, group, term: input.value }); };
  main.replaceChildren(
    el("h1", {}, data.name),
    el("p", {}, "Texts of ", el("a", { href: link("browse", { select: data.table }) }, data.table), ". ",
      el("a", { href: link("browse", { select: data.name }) }, "The keys"), " ",
      el("a", { href: link("bitmaps", { name }) }, "Bitmaps of its records"), " ",
      term ? el("a", { href: link("explain", { name, group: data.field_hex, term }) }, "Explain the search") : ""),
    fields(data),
    el("form", { class: "bar", onsubmit: search }, input, el("button", {}, "Show the terms")),
    el("h2", {}, term ? `Terms that begin with ${JSON.stringify(term)}` : "Terms"),
    terms(data), more(data.more_terms),
    data.documents ? documents(data) : "",
    el("p", { class: "quiet" }, `Only the program can make terms of a text. The definition of the index: ${data.options}`));
}

function fields({ name, fields: list, field_hex: chosen, more_fields: hasMore }) {
  const rows = list.map((one) => [
    el("a", { href: link("text", { name, group: one.hex }), "aria-current": one.hex === chosen ? "true" : null }, el("code", {}, one.name)),
    number(one.documents), number(one.tokens), one.documents > 0 ? (one.tokens / one.documents).toFixed(1) : ""]);
  return el("section", {}, el("h2", {}, "Fields by number, after the parts of their group"),
    table(["Field", "#Documents", "#Tokens", "#Mean length"], rows, "The index has no documents."), more(hasMore));
}

function terms({ name, field_hex: group, terms: list }) {
  const rows = list.map((one) => [
    el("a", { href: link("text", { name, group, term: one.term }) }, el("code", {}, one.shown)), number(one.documents)]);
  return table(["Term", "#Documents"], rows, "No term begins so.");
}

function documents({ term, documents: list }) {
  const rows = list.map((one) => [one.record ? keyLink(one.record) : number(one.id), number(one.frequency),
    one.record ? value(one.record) : el("span", { class: "bad" }, "there is no such record")]);
  return el("section", { class: "documents" }, el("h2", {}, `The first documents with ${JSON.stringify(term)}`),
    table(["Record", "#Frequency", "Value"], rows, "None."));
}
