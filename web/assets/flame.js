// Zoom, search and keys for flame graphs. The first picture is the server's; all frames are fetched when they are needed.
"use strict";

(() => {
  const svg = document.querySelector("svg.icicle");
  if (!svg) return;
  const ROW = 19, NARROWEST = 0.1, READABLE = 26;
  const SVG = "http://www.w3.org/2000/svg";
  const find = (name) => document.querySelector(name);
  const search = find(".flame-search"), found = find(".flame-found"), detail = find(".flame-detail");
  const { json, unit, objects, classes, flame } = svg.dataset;
  let frames = null, zoomed = 0, matches = null, loading = null;
  find(".flame-tools").hidden = false;

  const plural = (number) => `${number.toLocaleString("en")} object${number === 1 ? "" : "s"}`;

  function weight(number) {
    if (unit !== "bytes") return plural(number);
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let step = 0, size = number;
    while (size >= 1024 && step < 4) { size /= 1024; step += 1; }
    return step ? `${size.toFixed(1)} ${units[step]}` : `${number} B`;
  }

  const share = (part) => `${(100 * part / (frames[0].total || 1)).toFixed(1)} %`;

  // The colour of a class is the same everywhere; the server counts in the same way.
  function tint(name) {
    let hash = 0;
    for (const character of name.split("@")[0]) hash = (hash * 31 + character.codePointAt(0)) % 9973;
    return hash % 12;
  }

  function load() {
    loading ??= fetch(json, { credentials: "same-origin" }).then((answer) => {
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      return answer.json();
    }).then((data) => {
      const list = data.flame ?? data;
      frames = list.frames.map(([above, name, own, total, count, address], index) =>
        ({ index, above, name: list.names[name], own, total, count, address, below: [], depth: 0 }));
      for (const frame of frames.slice(1)) {
        frames[frame.above].below.push(frame);
        frame.depth = frames[frame.above].depth + 1;
      }
      for (const frame of frames) frame.below.sort((one, other) => other.total - one.total || one.index - other.index);
    }).catch((error) => {
      loading = null;
      detail.textContent = `Cannot load the frames: ${error.message}`;
      throw error;
    });
    return loading;
  }

  const classOf = (frame) => (/^(?:class|module) |^\(/.test(frame.name) ? null : frame.name.split("@")[0]);

  function target(frame) {
    if (!frame.address || !objects) return null;
    const name = classOf(frame);
    return frame.count === 1 || !name ? objects + frame.address : classes + encodeURIComponent(name);
  }

  function anchor(text, href) {
    return Object.assign(document.createElement("a"), { textContent: text, href });
  }

  function describe(frame) {
    const way = [];
    for (let step = frame; ; step = frames[step.above]) {
      way.unshift(step.name);
      if (step.index === 0) break;
    }
    const bold = Object.assign(document.createElement("b"), { textContent: `${weight(frame.total)}, ${share(frame.total)}` });
    const own = unit === "bytes" && frame.count != null
      ? `; ${plural(frame.count)} of ${weight(frame.own)}`
      : `; own ${weight(frame.own)}`;
    const line = Object.assign(document.createElement("span"), { className: "way", textContent: way.join(" › ") });
    const parts = [bold, own];
    if (frame.address && objects) {
      const name = classOf(frame);
      parts.push(" · ", anchor(frame.count === 1 ? "the object" : "the largest object", objects + frame.address));
      if (name) parts.push(" · ", anchor(`class ${name}`, classes + encodeURIComponent(name)));
      parts.push(" · ", anchor("zoom to what it retains", `${flame}?of=${frame.address}`));
    }
    detail.replaceChildren(...parts, line);
  }

  function element(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) if (value != null) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function box(frame, left, width, above) {
    const state = above ? " above" : matches ? (matches(frame.name) ? " found" : " found-none") : "";
    const inner = element("svg", { x: `${left}%`, y: frame.depth * ROW, width: `${width}%`, height: ROW - 1 },
      element("rect", { width: "100%", height: ROW - 1, rx: 2 }));
    if (width * svg.clientWidth / 100 > READABLE) {
      inner.append(Object.assign(element("text", { x: 4, y: 13 }), { textContent: frame.name }));
    }
    const title = Object.assign(element("title", {}), { textContent: `${frame.name}\n${weight(frame.total)}, ${share(frame.total)}` });
    return element("a", { href: target(frame) ?? "#", class: `tint${tint(frame.name)}${state}`, "data-frame": frame.index }, title, inner);
  }

  function draw(focus) {
    const all = [];
    for (let step = frames[zoomed]; step.index !== 0;) {
      step = frames[step.above];
      all.unshift(box(step, 0, 100, true));
    }
    let deepest = frames[zoomed].depth;
    const rest = [[frames[zoomed], 0, 100]];
    while (rest.length) {
      const [frame, left, width] = rest.pop();
      all.push(box(frame, left, width, false));
      deepest = Math.max(deepest, frame.depth);
      let at = left;
      for (const next of frame.below) {
        const part = width * next.total / (frame.total || 1);
        if (part >= NARROWEST) rest.push([next, at, part]);
        at += part;
      }
    }
    svg.replaceChildren(...all);
    svg.setAttribute("height", (deepest + 1) * ROW);
    if (focus != null) drawn(focus)?.focus();
  }

  const drawn = (index) => svg.querySelector(`a[data-frame="${index}"]`);

  function zoom(index) {
    load().then(() => {
      zoomed = index;
      draw(index);
      describe(frames[index]);
    }, () => {});
  }

  // A frame under one that was found is not counted twice.
  function look() {
    const text = search.value;
    if (!text && !frames) return;
    load().then(() => {
      const pattern = text.match(/^\/(.+)\/$/);
      let expression = null;
      if (pattern) {
        try { expression = new RegExp(pattern[1], "i"); } catch { expression = /$^/; }
      }
      const low = text.toLowerCase();
      matches = text ? (name) => (expression ? expression.test(name) : name.toLowerCase().includes(low)) : null;
      let sum = 0, places = 0;
      const rest = matches ? [frames[0]] : [];
      while (rest.length) {
        const frame = rest.pop();
        if (matches(frame.name)) { sum += frame.total; places += 1; } else rest.push(...frame.below);
      }
      found.textContent = text ? `${weight(sum)} (${share(sum)}) in ${places.toLocaleString("en")} places` : "";
      draw();
    }, () => {});
  }

  function move(index, key) {
    const frame = frames[index];
    const sides = frame.index === 0 ? [frame] : frames[frame.above].below;
    const place = sides.indexOf(frame);
    return { ArrowUp: frames[frame.above], ArrowDown: frame.below[0], ArrowRight: sides[place + 1], ArrowLeft: sides[place - 1] }[key];
  }

  const at = (event) => event.target.closest?.("a[data-frame]");
  const number = (link) => Number(link.dataset.frame);

  svg.addEventListener("click", (event) => {
    const link = at(event);
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    zoom(number(link));
  });
  for (const name of ["focusin", "mouseover"]) {
    svg.addEventListener(name, (event) => {
      const link = at(event);
      if (!link) return;
      if (frames) describe(frames[number(link)]);
      else detail.textContent = link.querySelector("title").textContent;
    });
  }
  svg.addEventListener("keydown", (event) => {
    const link = at(event);
    if (!link) return;
    if (event.key === "o") {
      const href = link.getAttribute("href");
      if (href && href !== "#") location.href = href;
    } else if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      load().then(() => {
        const next = move(number(link), event.key);
        if (next) (drawn(next.index) ?? drawn(number(link)))?.focus();
      }, () => {});
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && frames && !event.target.matches("input")) zoom(frames[zoomed].above);
  });
  search.addEventListener("input", look);
  find(".flame-reset").addEventListener("click", () => zoom(0));
})();
