// The page: the pipeline is described once; a text is read, then asked about. Tokens have numbers,
// from 0 over all lines.

const EXAMPLE = [
  "He sat by the bank of the river.",
  "They walked along the bank of the stream.",
  "She opened an account at the bank.",
  "The bank in London raised its interest rates.",
].join("\n");
// Matplotlib's viridis, dark to light: its order can be seen without colour vision, too.
const STOPS = [
  "#440154", "#48186a", "#472d7b", "#424086", "#3b528b", "#33638d", "#2c728e", "#26828e", "#21918c",
  "#1fa088", "#28ae80", "#3fbc73", "#5ec962", "#84d44b", "#addc30", "#d8e219", "#fde725",
];
// From here on a token's colour does not change.
const MOST_BITS = 16;
const SECTIONS = ["likeness", "surprisal", "contexts", "drawings"];

let pipeline, text, lines, tokens, chosen;
// The latest request of each kind: earlier ones are answered too late.
const latest = {};

const $ = (id) => document.getElementById(id);
const can = (id) => pipeline.obstacles[id] === null;
const countThings = (n, singular) => `${n.toLocaleString("en")} ${singular}${n === 1 ? "" : "s"}`;

// make("p", {className: "quiet"}, "text", child): properties, `aria-*` and other attributes.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

// A message of the server: text in backquotes is code.
const makeMessage = (message) => message.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));

function complain(element, error) {
  const tag = element.tagName === "OL" ? "li" : "p";
  element.replaceChildren(make(tag, { className: "problem" }, ...makeMessage(error.message)));
  element.hidden = false;
}

async function ask(path, body) {
  const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : post);
  } catch {
    throw new Error("The server does not answer. Is `elmo explore` still running in the terminal?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error || `The server answered with ${response.status}.`);
  return answer;
}

// Ask, and show the answer or the error in an element, unless a later request was made.
async function answer(kind, element, path, body, show) {
  const turn = (latest[kind] = (latest[kind] || 0) + 1);
  element.classList.add("busy");
  try {
    const found = await ask(path, body);
    if (turn === latest[kind]) show(found);
  } catch (error) {
    if (turn === latest[kind]) complain(element, error);
  } finally {
    if (turn === latest[kind]) element.classList.remove("busy");
  }
}

// ---- colours

function luminance(color) {
  const parts = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16) / 255);
  const [red, green, blue] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// share is in [0, 1]. Letters are black or white, whichever has more contrast (WCAG 2).
function paint(element, share) {
  const color = STOPS[Math.round(Math.min(1, Math.max(0, share)) * (STOPS.length - 1))];
  element.style.backgroundColor = color;
  element.style.color = luminance(color) > 0.1791 ? "#000000" : "#ffffff";
}

function makeScale(left, right, stops) {
  const steps = stops.map((color) => {
    const step = make("span");
    step.style.backgroundColor = color;
    return step;
  });
  return make("span", { className: "scale" }, left, make("span", { className: "ramp", "aria-hidden": "true" }, ...steps), right);
}

// A word, a bar and a number in a row of a <dl>; share is in [0, 1].
function makeBar(name, share, shown) {
  const bar = make("div", { className: "bar" });
  bar.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  const track = make("dd", { className: "track", "aria-hidden": "true" }, bar);
  return make("div", { className: "bar-row" }, make("dt", {}, name), track, make("dd", {}, shown));
}

// ---- the pipeline

async function start() {
  try {
    pipeline = await ask("/api/pipeline");
  } catch (error) {
    return complain($("problem"), error);
  }
  const { name, components, obstacles, mixes, index, limits, lang } = pipeline;
  $("name").textContent = name;
  $("components").textContent = `Components: ${components.join(", ")}`;
  document.title = `${name} – spacy-elmo explore`;
  for (const [id, obstacle] of Object.entries(obstacles)) {
    if (obstacle === null) continue;
    $(id).querySelector(".content").replaceChildren(make("p", { className: "quiet" }, ...makeMessage(obstacle)));
    $(id).hidden = false;
  }
  if (can("mixes")) {
    $("bars").replaceChildren(...mixes.map(showMix));
    $("mixes").hidden = false;
  }
  if (can("surprisal")) {
    const stops = [...STOPS].reverse();
    $("legend").replaceChildren(makeScale("expected, 0 bits", `${MOST_BITS} bits or more, surprising`, stops));
  }
  if (can("contexts")) {
    $("contexts-hint").textContent = `Of the ${countThings(index.n_sentences, "sentence")} of the corpus, those that are most like the token's own are searched for the tokens most like it.`;
    $("search-layer").replaceChildren(...index.layers.map((layer, i) => make("option", { value: i }, layer)));
    $("search-layer").value = index.layers.length - 1;
    $("search").addEventListener("submit", search);
  }
  const count = () => {
    const n = [...$("text").value].length.toLocaleString("en");
    $("count").textContent = `${n} of ${countThings(limits.max_chars, "character")}`;
  };
  $("form").addEventListener("submit", read);
  $("text").addEventListener("input", count);
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) read(event);
  });
  if (lang === "en" && !$("text").value) $("text").value = EXAMPLE;
  count();
  if ($("text").value) read();
}

function showMix({ component, place, shares, gamma, layers }) {
  const bars = shares.map((share, i) => makeBar(layers[i], share, `${(100 * share).toFixed(1)} %`));
  const note = make("span", { className: "quiet" }, `mix: ${place}, γ = ${gamma.toFixed(3)}`);
  return make("div", { className: "card" }, make("h3", {}, component, " ", note), make("dl", {}, ...bars));
}

// ---- a text

async function read(event) {
  event?.preventDefault();
  const asked = $("text").value;
  // Sections of an earlier text.
  for (const id of SECTIONS) if (id === "drawings" || can(id)) $(id).hidden = true;
  $("problem").hidden = true;
  $("status").textContent = "Reading …";
  for (const kind of ["compare", "substitute", "search"]) latest[kind] = (latest[kind] || 0) + 1;
  await answer("read", $("problem"), "/api/read", { text: asked }, (found) => {
    text = asked;
    show(found);
  });
  $("status").textContent = $("problem").hidden
    ? `Read ${countThings(tokens.length, "token")} in ${countThings(lines.length, "line")}.`
    : "";
}

function show(found) {
  let i = 0;
  lines = found.lines.map((line, k) => {
    const numbered = line.tokens.map((token) => ({ ...token, i: i++, line: k + 1 }));
    return { ...line, tokens: numbered.filter((token) => !token.is_space) };
  });
  tokens = lines.flatMap((line) => line.tokens);
  if (can("likeness")) {
    chosen = new Set(found.chosen);
    $("chips").replaceChildren(...lines.map(showChips));
    $("likeness").hidden = false;
    compare();
  }
  if (can("surprisal")) {
    $("surprise").replaceChildren(...lines.map(showSurprise));
    $("substitutes").hidden = true;
    $("surprisal").hidden = false;
  }
  if (can("contexts")) {
    $("search-token").replaceChildren(...tokens.map((token) => make("option", { value: token.i }, nameToken(token))));
    if (found.chosen.length) $("search-token").value = found.chosen[0];
    $("found").replaceChildren();
    $("contexts").hidden = false;
  }
  $("drawn").replaceChildren(...found.drawings.map(showDrawing));
  $("drawings").hidden = found.drawings.length === 0;
}

function nameToken(token) {
  const short = token.text.length > 20 ? `${token.text.slice(0, 19)}…` : token.text;
  return lines.length > 1 ? `${short} (${token.line})` : short;
}

function showChips(line, k) {
  const chips = line.tokens.map((token) => {
    const chip = make("button", { type: "button", className: "chip", "aria-pressed": chosen.has(token.i) }, token.text);
    chip.addEventListener("click", () => {
      if (!chosen.delete(token.i)) chosen.add(token.i);
      chip.setAttribute("aria-pressed", chosen.has(token.i));
      compare();
    });
    return chip;
  });
  const number = make("span", { className: "line-number", "aria-hidden": "true" }, lines.length > 1 ? `${k + 1}` : "");
  return make("div", { className: "line", role: "group", "aria-label": `Tokens of line ${k + 1} to compare` }, number, ...chips);
}

function compare() {
  const compared = tokens.filter((token) => chosen.has(token.i));
  const body = { text, tokens: compared.map((token) => token.i) };
  answer("compare", $("heatmaps"), "/api/compare", body, ({ layers }) => {
    const low = Math.min(0.99, ...layers.flatMap((layer) => layer.cosines.flat()));
    const names = compared.map(nameToken);
    $("scale").replaceChildren(makeScale(low.toFixed(2), "1", STOPS));
    $("heatmaps").replaceChildren(...layers.map((layer, k) => showHeatmap(layer, names, low, k)));
  });
}

function showHeatmap({ name, cosines }, names, low, k) {
  const label = (name, scope) => make("th", { scope }, make("span", {}, name));
  const head = make("tr", {}, make("td", { "aria-hidden": "true" }), ...names.map((each) => label(each, "col")));
  const rows = cosines.map((row, i) => {
    const cells = row.map((cosine) => {
      // Two digits, as in tables of correlations: .61, -.08, 1.
      const cell = make("td", {}, cosine > 0.995 ? "1" : cosine.toFixed(2).replace("0.", "."));
      paint(cell, (cosine - low) / (1 - low));
      return cell;
    });
    return make("tr", {}, label(names[i], "row"), ...cells);
  });
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  const note = make("span", { className: "quiet" }, k === 0 ? "(no context)" : `(layer ${k})`);
  const region = { className: "scroll", tabIndex: 0, role: "region", "aria-label": `Cosines in ${name}` };
  return make("div", { className: "card" }, make("h3", {}, name, " ", note), make("div", region, table));
}

function showSurprise(line, k) {
  const buttons = line.tokens.map((token) => {
    const bits = token.bits.toFixed(1);
    const button = make("button", { type: "button", className: `token${token.is_known ? "" : " unknown"}`, "aria-pressed": "false" });
    button.append(make("span", {}, token.text), make("small", {}, bits));
    button.setAttribute("aria-label", `${token.text}, ${bits} bits${token.is_known ? "" : ", unknown word"}`);
    // Expected tokens are light, surprising ones dark.
    paint(button, 1 - token.bits / MOST_BITS);
    button.addEventListener("click", () => substitute(token, button));
    return button;
  });
  const value = line.perplexity;
  const note = value === null ? "" : `perplexity ${value < 1000 ? value.toFixed(1) : Math.round(value).toLocaleString("en")}`;
  return make("div", { className: "surprise", role: "group", "aria-label": `Line ${k + 1}` }, ...buttons, make("span", { className: "perplexity" }, note));
}

function substitute(token, button) {
  for (const other of document.querySelectorAll(".token[aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
  button.setAttribute("aria-pressed", "true");
  $("substitutes").hidden = false;
  answer("substitute", $("substitutes"), "/api/substitute", { text, token: token.i }, ({ substitutes }) => {
    const most = Math.max(...substitutes.map(({ probability }) => probability));
    const rows = substitutes.map(({ word, probability }) => {
      const shown = probability < 0.001 ? "< 0.1 %" : `${(100 * probability).toFixed(1)} %`;
      return makeBar(word, probability / most, shown);
    });
    const title = make("h3", {}, "Instead of “", make("em", {}, token.text), "”, in line ", `${token.line}`);
    $("substitutes").replaceChildren(title, make("dl", {}, ...rows));
  });
}

function search(event) {
  event.preventDefault();
  const body = { text, token: Number($("search-token").value), layer: Number($("search-layer").value) };
  answer("search", $("found"), "/api/search", body, ({ contexts }) => {
    const nothing = make("li", {}, "No other sentence is like this one.");
    $("found").replaceChildren(...(contexts.length ? contexts.map(showContext) : [nothing]));
  });
}

function showContext({ words, position, similarity, source, number }) {
  const [before, after] = [words.slice(0, position), words.slice(position + 1)].map((part) => part.join(" "));
  const sentence = make("span", {}, before, " ", make("mark", {}, words[position]), " ", after);
  const origin = `cosine ${similarity.toFixed(2)}; ${source}, sentence ${number.toLocaleString("en")}`;
  return make("li", {}, sentence, make("div", { className: "quiet" }, origin));
}

function showDrawing({ title, lines }) {
  const drawings = lines.flatMap(({ items, html }, k) => {
    if (!html) return items.length ? [make("p", {}, items.join("; "))] : [];
    // By displaCy; the server has escaped all text and labels in it.
    const region = { tabIndex: 0, role: "region", "aria-label": `${title}, line ${k + 1}`, innerHTML: html };
    return [make("div", { className: "drawn", ...region })];
  });
  const nothing = make("p", { className: "quiet" }, "Nothing found.");
  return make("div", {}, make("h3", {}, title), ...(drawings.length ? drawings : [nothing]));
}

start();
