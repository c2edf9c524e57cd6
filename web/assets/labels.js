// Labels of pictures: one that has no room ends in an ellipsis, or is left out.
"use strict";

const Labels = (() => {
  const LEAST = 3; // letters
  const MARGIN = 8; // pixels
  const pen = document.createElement("canvas").getContext("2d");
  const names = new WeakMap(), fonts = new Map();

  function font(style) {
    const { fontWeight, fontSize, fontFamily } = getComputedStyle(style);
    return `${fontWeight} ${fontSize} ${fontFamily}`;
  }

  // The longest beginning of a name that fits into this width.
  function cut(name, width, style) {
    const room = width - MARGIN;
    pen.font = style;
    const wide = (text) => pen.measureText(text).width;
    if (name.length < 400 && wide(name) <= room) return name;
    let low = 0, high = Math.min(name.length, 400);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (wide(`${name.slice(0, middle)}…`) <= room) low = middle;
      else high = middle - 1;
    }
    if (/[\ud800-\udbff]$/.test(name.slice(0, low))) low -= 1;
    return low < LEAST ? "" : `${name.slice(0, low)}…`;
  }

  // The labels of the server's picture, which fit into the widest one.
  function fit(svg) {
    const texts = [...svg.querySelectorAll("svg > text")];
    if (!texts.length || !svg.clientWidth) return;
    const style = font(texts[0]);
    for (const text of texts) {
      if (!names.has(text)) names.set(text, text.dataset.name ?? text.textContent);
      text.textContent = cut(names.get(text), parseFloat(text.parentElement.getAttribute("width")) * svg.clientWidth / 100, style);
    }
  }

  // Fits the labels of a picture now, and when its width changes.
  function watch(svg, action = () => fit(svg)) {
    let width = null;
    const observer = new ResizeObserver(() => {
      if (svg.clientWidth === width) return;
      width = svg.clientWidth;
      action();
    });
    action();
    observer.observe(svg);
  }

  // Lists that are filtered while one types bring new pictures.
  const seen = new WeakSet();
  function look() {
    for (const svg of document.querySelectorAll("svg.treemap, svg.chart")) {
      if (!seen.has(svg)) watch(svg);
      seen.add(svg);
    }
  }

  look();
  new MutationObserver(look).observe(document.getElementById("main"), { childList: true });
  return { cut, fit, font, watch };
})();
