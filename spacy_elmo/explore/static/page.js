// What happens on the page: the pipeline is described once; a text is read, then asked about.

import { $, ask, countThings, make } from "./dom.js";
import * as views from "./views.js";

const EXAMPLE = [
  "He sat by the bank of the river.",
  "They walked along the bank of the stream.",
  "She opened an account at the bank.",
  "The bank in London raised its interest rates.",
].join("\n");
const state = { pipeline: null, text: "", tokens: [], lines: [], chosen: new Set(), turn: 0, comparison: 0, substitution: 0, search: 0 };
const main = document.querySelector("main");

start();

async function start() {
  try {
    state.pipeline = await ask("/api/pipeline");
  } catch (error) {
    return complain($("problem"), error);
  }
  describe(state.pipeline);
  $("form").addEventListener("submit", read);
  $("text").addEventListener("input", count);
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) read(event);
  });
  $("search").addEventListener("submit", search);
  if (state.pipeline.lang === "en" && !$("text").value) $("text").value = EXAMPLE;
  count();
  if ($("text").value) read();
}

// What holds for every text: names, mixes, and what the pipeline lacks.
function describe({ name, components, obstacles, mixes, index }) {
  $("name").textContent = name;
  $("components").textContent = `Components: ${components.join(", ")}`;
  document.title = `${name} – spacy-elmo explore`;
  for (const [id, obstacle] of Object.entries(obstacles)) {
    if (obstacle === null) continue;
    $(id).querySelector(".content").hidden = true;
    $(id).append(make("p", { className: "quiet" }, ...views.showMessage(obstacle)));
    $(id).hidden = false;
  }
  if (obstacles.mixes === null) {
    $("bars").replaceChildren(...views.showMixes(mixes));
    $("mixes").hidden = false;
  }
  if (obstacles.surprisal === null) $("legend").replaceChildren(views.showLegend());
  if (index !== null) {
    $("contexts-hint").textContent = `Of the ${countThings(index.n_sentences, "sentence")} of the corpus, those that are most like the token's own are searched for the tokens most like it.`;
    const options = index.layers.map((layer, i) => make("option", { value: i }, layer));
    $("search-layer").replaceChildren(...options);
    $("search-layer").value = index.layers.length - 1;
  }
}

const can = (id) => state.pipeline.obstacles[id] === null;

function count() {
  const most = state.pipeline.limits.max_chars;
  $("count").textContent = `${[...$("text").value].length.toLocaleString("en")} of ${countThings(most, "character")}`;
}

function complain(element, error) {
  element.replaceChildren(...views.showMessage(error.message));
  element.hidden = false;
}

async function read(event) {
  event?.preventDefault();
  const turn = ++state.turn;
  const text = $("text").value;
  $("status").textContent = "Reading …";
  main.classList.add("busy");
  try {
    const answer = await ask("/api/read", { text });
    if (turn !== state.turn) return;
    $("problem").hidden = true;
    main.classList.remove("stale");
    show(text, answer);
    $("status").textContent = `Read ${countThings(state.tokens.length, "token")} in ${countThings(state.lines.length, "line")}.`;
  } catch (error) {
    if (turn !== state.turn) return;
    complain($("problem"), error);
    // Said by each section that shows it, too.
    const isShown = state.lines.length > 0;
    main.classList.toggle("stale", isShown);
    $("status").textContent = isShown ? "What is below is of the text read before." : "";
  } finally {
    if (turn === state.turn) main.classList.remove("busy");
  }
}

function show(text, { lines, chosen, drawings }) {
  state.text = text;
  state.lines = views.numberTokens(lines);
  state.tokens = state.lines.flat();
  // What is asked about the text before comes too late.
  state.substitution++;
  state.search++;
  if (can("likeness")) {
    state.chosen = new Set(chosen);
    $("chips").replaceChildren(...views.showChips(state.lines, state.chosen, toggle));
    $("likeness").hidden = false;
    compare();
  }
  if (can("surprisal")) {
    const perplexities = lines.map((line) => line.perplexity);
    $("surprise").replaceChildren(...views.showSurprise(state.lines, perplexities, substitute));
    $("substitutes").hidden = true;
    $("surprisal").hidden = false;
  }
  if (can("contexts")) {
    const options = state.tokens.map((token) => make("option", { value: token.i }, nameToken(token)));
    $("search-token").replaceChildren(...options);
    if (chosen.length) $("search-token").value = chosen[0];
    $("found").replaceChildren();
    $("found").classList.remove("busy");
    $("contexts").hidden = false;
  }
  $("drawn").replaceChildren(...views.showDrawings(drawings));
  $("drawings").hidden = drawings.length === 0;
}

function nameToken({ text, line }) {
  const short = text.length > 20 ? `${text.slice(0, 19)}…` : text;
  return state.lines.length > 1 ? `${short} (${line})` : short;
}

function toggle(i, chip) {
  const isChosen = !state.chosen.delete(i);
  if (isChosen) state.chosen.add(i);
  chip.setAttribute("aria-pressed", isChosen);
  compare();
}

async function compare() {
  const comparison = ++state.comparison;
  $("heatmaps").setAttribute("aria-busy", "true");
  const tokens = [...state.chosen].sort((a, b) => a - b);
  const names = state.tokens.filter((token) => state.chosen.has(token.i)).map(nameToken);
  try {
    const { layers } = await ask("/api/compare", { text: state.text, tokens });
    if (comparison !== state.comparison) return;
    const { scale, figures } = views.showHeatmaps(layers, names);
    $("scale").replaceChildren(scale);
    $("heatmaps").replaceChildren(...figures);
  } catch (error) {
    if (comparison === state.comparison) refuse($("heatmaps"), error);
  } finally {
    if (comparison === state.comparison) $("heatmaps").removeAttribute("aria-busy");
  }
}

const refuse = (element, error) =>
  element.replaceChildren(make(element.tagName === "OL" ? "li" : "p", { className: "problem" }, ...views.showMessage(error.message)));

async function substitute(token, button) {
  const substitution = ++state.substitution;
  for (const other of document.querySelectorAll(".token[aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
  button.setAttribute("aria-pressed", "true");
  $("substitutes").hidden = false;
  try {
    const { substitutes } = await ask("/api/substitute", { text: state.text, token: token.i });
    if (substitution === state.substitution) $("substitutes").replaceChildren(...views.showSubstitutes(token, substitutes));
  } catch (error) {
    if (substitution === state.substitution) refuse($("substitutes"), error);
  }
}

async function search(event) {
  event.preventDefault();
  const turn = ++state.search;
  const body = { text: state.text, token: Number($("search-token").value), layer: Number($("search-layer").value) };
  $("found").classList.add("busy");
  try {
    const { contexts } = await ask("/api/search", body);
    if (turn !== state.search) return;
    const nothing = make("li", {}, "No other sentence is like this one.");
    $("found").replaceChildren(...(contexts.length ? views.showContexts(contexts) : [nothing]));
  } catch (error) {
    if (turn === state.search) refuse($("found"), error);
  } finally {
    if (turn === state.search) $("found").classList.remove("busy");
  }
}
