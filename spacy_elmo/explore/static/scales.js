// Matplotlib's viridis, dark to light: its order is seen without colour vision, too.

import { make } from "./dom.js";

const STOPS = [
  "#440154", "#48186a", "#472d7b", "#424086", "#3b528b", "#33638d", "#2c728e", "#26828e", "#21918c",
  "#1fa088", "#28ae80", "#3fbc73", "#5ec962", "#84d44b", "#addc30", "#d8e219", "#fde725",
];
// From here on a token's colour does not change.
export const MOST_BITS = 16;

export const pick = (share) => STOPS[Math.round(Math.min(1, Math.max(0, share)) * (STOPS.length - 1))];
// Expected tokens are light, surprising ones dark.
export const pickBits = (bits) => pick(1 - bits / MOST_BITS);

function luminance(color) {
  const parts = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16) / 255);
  const [red, green, blue] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// Black or white, whichever is read better: where both have the same contrast (WCAG 2).
export function paint(element, color) {
  element.style.backgroundColor = color;
  element.style.color = luminance(color) > 0.1791 ? "#000000" : "#ffffff";
}

// The scale with a word at each end; `colors` from left to right.
export function makeScale(left, right, isReversed = false) {
  const ramp = make("span", { className: "ramp", "aria-hidden": "true" });
  for (const color of isReversed ? [...STOPS].reverse() : STOPS) {
    const step = make("span");
    step.style.backgroundColor = color;
    ramp.append(step);
  }
  return make("span", { className: "scale" }, left, ramp, right);
}
