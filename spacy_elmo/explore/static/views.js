// Answers of the server to elements. Tokens have numbers, from 0 over all lines.

import { build, make, makeBar } from "./dom.js";
import { MOST_BITS, makeScale, paint, pick, pickBits } from "./scales.js";

// A message of the server: what stands in backquotes is code.
export const showMessage = (message) =>
  message.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));

// Lines -> [{i, line, ...token}] without whitespace, one list for each line.
export function numberTokens(lines) {
  let i = 0;
  return lines.map(({ tokens }, line) =>
    tokens.map((token) => ({ ...token, i: i++, line: line + 1 })).filter((token) => !token.is_space),
  );
}

const showLine = (number, isAlone) =>
  isAlone ? [] : [make("span", { className: "line-number", "aria-hidden": "true" }, `${number}`)];

// Buttons that choose tokens. toggle(i) is called at a click.
export function showChips(lines, chosen, toggle) {
  return lines.map((tokens, k) => {
    const chips = tokens.map((token) => {
      const chip = make("button", { type: "button", className: "chip" }, token.text);
      chip.setAttribute("aria-pressed", chosen.has(token.i));
      chip.addEventListener("click", () => toggle(token.i, chip));
      return chip;
    });
    const label = `Tokens of line ${k + 1} to compare`;
    return make("div", { className: "line", role: "group", "aria-label": label }, ...showLine(k + 1, lines.length === 1), ...chips);
  });
}

// A heat map for each layer, all in one scale. names: of the chosen tokens.
export function showHeatmaps(layers, names) {
  const least = Math.min(...layers.flatMap((layer) => layer.cosines.flat()));
  const low = Math.min(least, 0.99);
  const figures = layers.map((layer, k) => showHeatmap(layer, names, low, k === 0 ? "(no context)" : `(layer ${k})`));
  return { scale: makeScale(low.toFixed(2), "1"), figures };
}

// Two digits, as in tables of correlations: .61, -.08, 1.
const showCosine = (cosine) => (cosine > 0.995 ? "1" : cosine.toFixed(2).replace("0.", "."));

function showHeatmap({ name, cosines }, names, low, kind) {
  const label = (text, scope) => make("th", { scope }, make("span", {}, text));
  const head = make("tr", {}, make("td", { "aria-hidden": "true" }), ...names.map((text) => label(text, "col")));
  const rows = cosines.map((row, i) => {
    const cells = row.map((cosine) => {
      const cell = make("td", {}, showCosine(cosine));
      paint(cell, pick((cosine - low) / (1 - low)));
      return cell;
    });
    return make("tr", {}, label(names[i], "row"), ...cells);
  });
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  const region = { className: "scroll", tabIndex: 0, role: "region", "aria-label": `Cosines in ${name}` };
  const title = make("h3", {}, name, " ", make("span", { className: "quiet" }, kind));
  return make("div", { className: "card" }, title, make("div", region, table));
}

export const showLegend = () => makeScale("expected, 0 bits", `${MOST_BITS} bits or more, surprising`, true);

// Tokens in colours. choose(token, button) is called at a click.
export function showSurprise(lines, perplexities, choose) {
  return lines.map((tokens, k) => {
    const buttons = tokens.map((token) => {
      const bits = token.bits.toFixed(1);
      const button = make("button", { type: "button", className: `token${token.is_known ? "" : " unknown"}` });
      button.append(make("span", {}, token.text), make("small", {}, bits));
      button.setAttribute("aria-label", `${token.text}, ${bits} bits${token.is_known ? "" : ", unknown word"}`);
      button.setAttribute("aria-pressed", "false");
      paint(button, pickBits(token.bits));
      button.addEventListener("click", () => choose(token, button));
      return button;
    });
    const value = perplexities[k];
    const note = value === null ? "" : `perplexity ${value < 1000 ? value.toFixed(1) : Math.round(value).toLocaleString("en")}`;
    return make("div", { className: "surprise", role: "group", "aria-label": `Line ${k + 1}` }, ...buttons, make("span", { className: "perplexity" }, note));
  });
}

export function showSubstitutes(token, substitutes) {
  const most = Math.max(...substitutes.map(({ probability }) => probability));
  const rows = substitutes.map(({ word, probability }) => {
    const shown = probability < 0.001 ? "< 0.1 %" : `${(100 * probability).toFixed(1)} %`;
    return makeBar(word, probability / most, shown);
  });
  const title = make("h3", {}, "Instead of “", make("em", {}, token.text), "”, in line ", `${token.line}`);
  return [title, make("dl", {}, ...rows)];
}

export function showContexts(contexts) {
  return contexts.map(({ words, position, similarity, source, number }) => {
    const before = words.slice(0, position).join(" ");
    const after = words.slice(position + 1).join(" ");
    const text = make("span", {}, before, " ", make("mark", {}, words[position]), " ", after);
    const origin = make("div", { className: "quiet" }, `cosine ${similarity.toFixed(2)}; ${source}, sentence ${number.toLocaleString("en")}`);
    return make("li", {}, text, origin);
  });
}

export function showDrawings(sections) {
  return sections.map(({ title, lines }) => {
    const drawings = lines.flatMap(({ items, drawing }, k) => {
      if (!drawing) return items.length ? [make("p", {}, items.join("; "))] : [];
      const region = { tabIndex: 0, role: "region", "aria-label": `${title}, line ${k + 1}` };
      return [make("div", { className: "drawn", ...region }, build(drawing))];
    });
    const nothing = make("p", { className: "quiet" }, "Nothing found.");
    return make("div", {}, make("h3", {}, title), ...(drawings.length ? drawings : [nothing]));
  });
}

export function showMixes(mixes) {
  return mixes.map(({ component, place, shares, gamma, layers }) => {
    const bars = shares.map((share, i) => makeBar(layers[i], share, `${(100 * share).toFixed(1)} %`));
    const note = make("span", { className: "quiet" }, `mix: ${place}, γ = ${gamma.toFixed(3)}`);
    return make("div", { className: "card" }, make("h3", {}, component, " ", note), make("dl", {}, ...bars));
  });
}
