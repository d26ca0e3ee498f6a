// Elements from plain data, without markup in strings; and questions to the server.

export const $ = (id) => document.getElementById(id);

// A number of things, such as "1 line" and "2,000 lines".
export const countThings = (n, singular) => `${n.toLocaleString("en")} ${singular}${n === 1 ? "" : "s"}`;

// make("p", {className: "quiet"}, "text", child): properties, `aria-*` and `data-*` attributes.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

// The tree of `safe_markup.py`. Styles are set one by one: those of markup are not allowed.
export function build(node) {
  if (typeof node === "string") return document.createTextNode(node);
  const element = make(node.tag, {}, ...node.children.map(build));
  for (const [name, value] of Object.entries(node.style)) element.style.setProperty(name, value);
  return element;
}

// A word, a bar and a number in a row of a <dl>; share is in [0, 1].
export function makeBar(name, share, shown) {
  const bar = make("div", { className: "bar" });
  bar.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  const track = make("dd", { className: "track", "aria-hidden": "true" }, bar);
  return make("div", { className: "bar-row" }, make("dt", {}, name), track, make("dd", {}, shown));
}

// RETURNS the answer. Throws an Error with the server's message.
export async function ask(path, body) {
  const post = { method: "POST", headers: { "content-type": "application/json" } };
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : { ...post, body: JSON.stringify(body) });
  } catch {
    throw new Error("The server does not answer. Is `elmo explore` still running in the terminal?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error || `The server answered with ${response.status}.`);
  return answer;
}
