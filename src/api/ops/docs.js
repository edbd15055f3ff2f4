// SPDX-License-Identifier: Apache-2.0
//
// The page of /docs: what /openapi.json says, for people. Everything is put in as text, never as markup. An
// operation is drawn when it is opened. The key stays in its field: it is neither stored nor put into an address.

const METHODS = ["get", "put", "post", "patch", "delete"];
const MAX_SHOWN = 200_000; // characters of an answer
const ALIAS = /AtEndpoint$/; // the same operation at a sandbox's own address

const byId = (id) => document.getElementById(id);
let api;

function make(tag, fields = {}, ...children) {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// --- the document ---

function follow(node) {
  while (node && node.$ref) {
    const { $ref, ...beside } = node;
    const target = $ref.slice(2).split("/").reduce((at, step) => at[step], api);
    node = { ...target, ...beside, schemaName: $ref.startsWith("#/components/schemas/") ? $ref.split("/").pop() : undefined };
  }
  return node;
}

function operations() {
  const found = [];
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((name) => item[name])) {
      const described = item[method];
      const own = described.parameters ?? [];
      const parameters = [...(item.parameters ?? []), ...own].map(follow);
      found.push({ path, method, described, parameters, id: described.operationId, tag: described.tags?.[0] ?? "other" });
    }
  }
  const aliases = new Map(found.filter((one) => ALIAS.test(one.id)).map((one) => [one.id.replace(ALIAS, ""), one.path]));
  return found.filter((one) => !ALIAS.test(one.id)).map((one) => ({ ...one, alias: aliases.get(one.id) }));
}

// An object of allOf's parts together; anything else as it is.
function merged(schema) {
  schema = follow(schema);
  if (!schema?.allOf) return schema ?? {};
  const parts = [...schema.allOf.map(merged), { ...schema, allOf: undefined }];
  return parts.reduce((all, part) => ({
    ...all, ...part,
    properties: { ...all.properties, ...part.properties },
    required: [...(all.required ?? []), ...(part.required ?? [])],
  }), {});
}

function example(schema, depth = 0) {
  schema = merged(schema);
  if (schema.examples?.length) return schema.examples[0];
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const choice = schema.oneOf ?? schema.anyOf;
  if (choice) return example(choice[0], depth + 1);
  const type = [schema.type].flat()[0];
  if (type === "array") return depth > 6 ? [] : [example(schema.items ?? {}, depth + 1)];
  if (type === "object" || schema.properties) {
    if (depth > 6) return {};
    const names = Object.keys(schema.properties ?? {});
    const shown = schema.required?.length ? names.filter((name) => schema.required.includes(name)) : names;
    return Object.fromEntries(shown.map((name) => [name, example(schema.properties[name], depth + 1)]));
  }
  return { string: "string", integer: 1, number: 1, boolean: true }[type] ?? null;
}

// --- pieces of an operation ---

// Paragraphs, and `code` in them: what the document uses of Markdown.
function prose(text) {
  const block = make("div");
  for (const paragraph of (text ?? "").trim().split(/\n\s*\n/)) {
    const pieces = paragraph.split("`").map((piece, at) => (at % 2 ? make("code", { textContent: piece }) : piece));
    if (paragraph) block.append(make("p", {}, ...pieces));
  }
  return block;
}

function typeOf(schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choice = schema.oneOf ?? schema.anyOf;
  if (choice) return choice.map((one) => typeOf(follow(one))).join(" | ");
  const types = [schema.type ?? (schema.properties ? "object" : "any")].flat().join(" | ");
  const bounds = ["format", "minimum", "maximum", "minLength", "maxLength", "pattern"]
    .filter((name) => schema[name] !== undefined).map((name) => `${name} ${schema[name]}`);
  return [types, ...bounds].join(", ");
}

function schemaTree(schema, above = []) {
  schema = merged(schema);
  const nested = schema.items ? merged(schema.items) : schema;
  if (nested.schemaName && above.includes(nested.schemaName)) return make("p", { textContent: `as ${nested.schemaName}, above` });
  const inside = [...above, nested.schemaName].filter(Boolean);
  const list = make("ul", { className: "schema" });
  const row = (name, part, needed) => {
    const shown = merged(part);
    const about = make("li", {}, make("code", { textContent: name }), needed ? make("span", { className: "need", textContent: " required" }) : null,
      make("span", { className: "type", textContent: ` ${typeOf(shown)}` }), shown.description ? ` – ${shown.description}` : null);
    if (shown.properties || shown.items || typeof shown.additionalProperties === "object") about.append(schemaTree(part, inside));
    list.append(about);
  };
  for (const [name, part] of Object.entries(nested.properties ?? {})) row(name, part, nested.required?.includes(name));
  if (typeof nested.additionalProperties === "object") row("(any name)", nested.additionalProperties, false);
  for (const part of nested.oneOf ?? nested.anyOf ?? []) row("one of", part, false);
  return list.children.length ? list : make("p", { className: "type", textContent: typeOf(nested) });
}

function contents(content) {
  const blocks = [];
  for (const [type, { schema, example: given }] of Object.entries(content ?? {})) {
    blocks.push(make("p", {}, make("code", { textContent: type })));
    if (schema) blocks.push(schemaTree(schema));
    if (type === "application/json") {
      const shown = JSON.stringify(given ?? example(schema), null, 2);
      blocks.push(make("details", {}, make("summary", { textContent: "Example" }), make("div", {}, make("pre", { textContent: shown }))));
    }
  }
  return blocks;
}

function parameterList(parameters) {
  const list = make("ul", { className: "schema" });
  for (const one of parameters) {
    list.append(make("li", {}, make("code", { textContent: one.name }), ` in ${one.in}`,
      one.required ? make("span", { className: "need", textContent: " required" }) : null,
      make("span", { className: "type", textContent: ` ${typeOf(follow(one.schema ?? {}))}` }),
      one.description ? ` – ${one.description}` : null));
  }
  return list;
}

function scopeOf(operation) {
  const [first] = operation.described.security ?? api.security ?? [];
  if (!first || !Object.keys(first).length) return null;
  return Object.values(first)[0][0] ?? "";
}

// --- a request: as a line for a shell, and really ---

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function requestOf(operation, form) {
  let path = operation.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const one of operation.parameters) {
    const value = form.elements[`${one.in}:${one.name}`]?.value ?? "";
    // The last parameter of a path may be a whole path.
    if (one.in === "path") path = path.replace(`{${one.name}}`, one.name === "path" ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value));
    else if (value && one.in === "query") query.append(one.name, value);
    else if (value && one.in === "header") headers[one.name] = value;
  }
  const body = form.elements.body?.value || undefined;
  if (body !== undefined) headers["Content-Type"] = form.elements.body.dataset.type;
  return { url: location.origin + path + (query.size ? `?${query}` : ""), method: operation.method.toUpperCase(), headers, body };
}

function curlLine(operation, form) {
  const request = requestOf(operation, form);
  const parts = ["curl", "-X", request.method, quoted(request.url)];
  if (scopeOf(operation) !== null) parts.push("-H", '"Authorization: Bearer $CELLA_API_KEY"');
  for (const [name, value] of Object.entries(request.headers)) parts.push("-H", quoted(`${name}: ${value}`));
  if (request.body !== undefined) parts.push("--data", quoted(request.body));
  return parts.join(" ");
}

async function send(operation, form, answer) {
  const request = requestOf(operation, form);
  const key = byId("key").value.trim();
  if (key && scopeOf(operation) !== null) request.headers.Authorization = `Bearer ${key}`;
  answer.hidden = false;
  answer.textContent = "…";
  const began = performance.now();
  try {
    const got = await fetch(request.url, { ...request, credentials: "omit", redirect: "manual", signal: AbortSignal.timeout(60_000) });
    const text = await got.text();
    const shown = got.headers.get("Content-Type")?.startsWith("application/json") ? JSON.stringify(JSON.parse(text), null, 2) : text;
    answer.textContent = `${got.status} ${got.statusText} (${Math.round(performance.now() - began)} ms)\n\n${shown.slice(0, MAX_SHOWN)}`;
  } catch (failure) {
    answer.textContent = `No answer: ${failure.message}`;
  }
}

function tryForm(operation) {
  const form = make("form", { className: "fields", autocomplete: "off" });
  for (const one of operation.parameters.filter((parameter) => parameter.in !== "cookie")) {
    const field = make("input", { name: `${one.in}:${one.name}`, required: one.in === "path" && one.name !== "path", spellcheck: false });
    const given = one.example ?? one.schema?.examples?.[0];
    if (one.required && given !== undefined) field.value = given;
    form.append(make("label", {}, one.name, field));
  }
  const content = follow(operation.described.requestBody)?.content ?? {};
  const type = content["application/json"] ? "application/json" : Object.keys(content)[0];
  if (type) {
    const field = make("textarea", { name: "body", spellcheck: false });
    field.dataset.type = type;
    if (type === "application/json") field.value = JSON.stringify(content[type].example ?? example(content[type].schema), null, 2);
    field.setAttribute("aria-label", `Body, ${type}`);
    form.append(field);
  }
  const line = make("pre", { className: "curl", tabIndex: 0 });
  const answer = make("pre", { hidden: true, tabIndex: 0 });
  answer.setAttribute("aria-live", "polite");
  const copy = make("button", { type: "button", textContent: "Copy the line" });
  copy.addEventListener("click", () => navigator.clipboard?.writeText(line.textContent));
  const draw = () => { line.textContent = curlLine(operation, form); };
  form.append(make("p", {}, make("button", { textContent: "Send" }), " ", copy));
  form.addEventListener("input", draw);
  form.addEventListener("submit", (event) => { event.preventDefault(); send(operation, form, answer); });
  draw();
  return [line, form, answer];
}

function body(operation) {
  const { described, parameters, alias } = operation;
  const scope = scopeOf(operation);
  const block = make("div", {}, prose(described.description));
  block.append(make("p", { className: "faint", textContent: scope === null ? "Needs no key." : scope ? `Needs a key with the scope ${scope}.` : "Needs a key." }));
  if (alias) block.append(make("p", { className: "faint" }, "Also at ", make("code", { textContent: alias })));
  if (parameters.length) block.append(make("h3", { textContent: "Parameters" }), parameterList(parameters));
  const asked = follow(described.requestBody);
  if (asked) block.append(make("h3", { textContent: "Body" }), ...contents(asked.content));
  block.append(make("h3", { textContent: "Answers" }));
  for (const [status, given] of Object.entries(described.responses)) {
    const response = follow(given);
    block.append(make("p", {}, make("strong", { textContent: status === "default" ? "error" : status }), ` ${response.description ?? ""}`));
    block.append(...(status === "default" ? [] : contents(response.content)));
  }
  block.append(make("h3", { textContent: "Try it" }), ...tryForm(operation));
  return block;
}

// --- the page ---

function whenOpened(details, draw) {
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(draw()); });
  return details;
}

function entry(operation) {
  const details = make("details", { id: operation.id }, make("summary", {},
    make("span", { className: `method ${operation.method}`, textContent: operation.method.toUpperCase() }),
    make("span", { className: "path", textContent: operation.path }),
    make("span", { className: "about", textContent: operation.described.summary ?? "" })));
  details.dataset.words = `${operation.method} ${operation.path} ${operation.id} ${operation.described.summary}`.toLowerCase();
  return whenOpened(details, () => body(operation));
}

function section(id, title, about, entries) {
  byId("groups").append(make("a", { href: `#${id}`, textContent: title }));
  return make("section", {}, make("h2", { id, textContent: title }), about ? make("p", { className: "faint", textContent: about }) : null, ...entries);
}

function filter() {
  const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const part of document.querySelectorAll("section")) {
    let shown = 0;
    for (const details of part.querySelectorAll(":scope > details")) {
      details.hidden = !words.every((word) => details.dataset.words.includes(word));
      shown += !details.hidden;
    }
    part.hidden = shown === 0;
  }
}

function openTarget() {
  const target = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
  if (target) target.scrollIntoView();
}

function draw() {
  const main = byId("operations");
  byId("title").textContent = `${api.info.title} API ${api.info.version}`;
  document.title = byId("title").textContent;
  const all = operations();
  const tags = [...(api.tags ?? []), { name: "other" }];
  main.replaceChildren(prose(api.info.description));
  for (const { name, description } of tags) {
    const own = all.filter((one) => one.tag === name);
    if (own.length) main.append(section(`group-${name}`, name, description, own.map(entry)));
  }
  const schemas = Object.entries(api.components?.schemas ?? {}).map(([name, schema]) => {
    const details = make("details", { id: `schema-${name}` }, make("summary", {}, make("span", { className: "path", textContent: name })));
    details.dataset.words = `schema ${name}`.toLowerCase();
    return whenOpened(details, () => make("div", {}, prose(schema.description), schemaTree(schema)));
  });
  main.append(section("schemas", "schemas", "The shapes that operations name", schemas));
  openTarget();
}

byId("find").addEventListener("input", filter);
byId("tools").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", openTarget);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(event.target.tagName)) {
    event.preventDefault();
    byId("find").focus();
  }
});

try {
  const got = await fetch("/openapi.json", { credentials: "omit" });
  api = await got.json();
  draw();
} catch (failure) {
  byId("state").textContent = `The description could not be read: ${failure.message}`;
}
