// Views, zoom, search and keys of flame graphs. The first picture is the server's; all frames are fetched once, when they
// are needed. The address has the view, so that a link shows it again: `zoom` is a digest of a frame's path.
"use strict";

(() => {
  const svg = document.querySelector("svg.icicle");
  if (!svg) return;
  const ROW = 19, NARROWEST = 1, READABLE = 26; // pixels
  const MOST = 2500, LISTED = 100, PAUSE = 400;
  const SVG = "http://www.w3.org/2000/svg";
  const find = (name) => document.querySelector(name);
  const search = find(".flame-search"), found = find(".flame-found"), detail = find(".flame-detail"), list = find(".flame-functions");
  const axis = find(".flame-axis"), map = find(".flame-map");
  const { json, unit, objects, classes, flame, order } = svg.dataset;
  const state = { view: "", zoom: "", search: "", function: "", list: "" };
  let frames = null, compared = false, shown = [], zoomed = null, matches = null, loading = null, typed = null, all = null;
  find(".flame-tools").hidden = false;

  const plural = (number) => `${number.toLocaleString("en")} object${number === 1 ? "" : "s"}`;

  function weight(number) {
    if (unit !== "bytes") return plural(number);
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let step = 0, size = Math.abs(number);
    while (size >= 1024 && step < 4) { size /= 1024; step += 1; }
    return `${number < 0 ? "-" : ""}${step ? `${size.toFixed(1)} ${units[step]}` : `${size} B`}`;
  }

  const change = (frame) => frame.after - frame.before;
  const signed = (number) => (number > 0 ? `+${weight(number)}` : weight(number));
  const share = (part) => `${(100 * part / (frames[0].total || 1)).toFixed(1)} %`;
  const figures = (frame) => (compared
    ? `${signed(change(frame))}: ${weight(frame.before)} → ${weight(frame.after)}`
    : `${weight(frame.total)}, ${share(frame.total)}`);

  // The colour of a class is the same everywhere; the server counts in the same way.
  const tints = new Map();
  function tint(name) {
    if (!tints.has(name)) {
      let hash = 0;
      for (const character of name.split("@")[0]) hash = (hash * 31 + character.codePointAt(0)) % 9973;
      tints.set(name, `tint${hash % 12}`);
    }
    return tints.get(name);
  }

  // Grown or shrunk, by quarters of the larger weight.
  function heat(frame) {
    const part = change(frame) / Math.max(frame.before, frame.after, 1);
    return part === 0 ? "same" : `${part > 0 ? "grew" : "shrank"}${Math.ceil(4 * Math.abs(part))}`;
  }

  const mix = (one, other, factor) => Math.imul(one ^ other ^ (one >>> 15), factor);

  // Two digests of a name.
  function digest(name) {
    let one = 7, other = 11;
    for (let at = 0; at < name.length; at += 1) {
      one = mix(one, name.charCodeAt(at), 2654435761);
      other = mix(other, name.charCodeAt(at), 1597334677);
    }
    return [one, other];
  }

  const key = (frame) => `${(frame.one >>> 0).toString(36)}.${(frame.other >>> 0).toString(36)}`;

  function frameOfKey(text) {
    const [one, other] = text.split(".").map((part) => parseInt(part, 36) | 0);
    return frames.find((frame) => frame.one === one && frame.other === other);
  }

  function node(name, above, index) {
    return { name, above, index, below: [], own: 0, total: 0, before: 0, after: 0, depth: above ? above.depth + 1 : 0,
      count: null, address: null, one: 0, other: 0, caller: false, names: null };
  }

  function load() {
    loading ??= fetch(json, { credentials: "same-origin" }).then((answer) => {
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      return answer.json();
    }).then((data) => {
      const tree = data.flame ?? data;
      const digests = tree.names.map(digest);
      frames = [];
      tree.frames.forEach(([above, name, own, total, count, address, before, after], index) => {
        const parent = index === 0 ? null : frames[above];
        const [one, other] = digests[name];
        const frame = node(tree.names[name], parent, index);
        frame.own = own;
        frame.total = total;
        frame.count = count;
        frame.address = address;
        frame.before = before;
        frame.after = after;
        frame.one = parent ? mix(parent.one, one, 2654435761) : one;
        frame.other = parent ? mix(parent.other, other, 1597334677) : other;
        frames.push(frame);
        parent?.below.push(frame);
      });
      compared = tree.frames[0]?.length > 6;
    }).catch((error) => {
      loading = null;
      detail.textContent = `Cannot load the frames: ${error.message}`;
      throw error;
    });
    return loading;
  }

  const heavy = (one, other) => other.total - one.total || one.index - other.index;

  function sort(nodes) {
    const rule = state.view === "order" ? (one, other) => one.index - other.index : heavy;
    for (const frame of nodes) if (frame.below.length > 1) frame.below.sort(rule);
  }

  // The function's frames that are not within another of its frames: an inner one of a recursion is counted there.
  function outermost(name) {
    const outer = [], rest = [frames[0]];
    while (rest.length) {
      const frame = rest.pop();
      if (frame.name === name) outer.push(frame);
      else rest.push(...frame.below);
    }
    return outer;
  }

  function add(to, from, own) {
    to.own += own;
    to.total += from.total;
    to.before += from.before;
    to.after += from.after;
  }

  function child(above, name, nodes) {
    above.names ??= new Map();
    if (!above.names.has(name)) {
      const made = node(name, above, nodes.length);
      nodes.push(made);
      above.below.push(made);
      above.names.set(name, made);
    }
    return above.names.get(name);
  }

  // Callees of all calls of a function as one tree, and its callers as another one that grows upward.
  function sandwich(name) {
    const nodes = [node(name, null, 0), node(name, null, 1)];
    const [callees, callers] = nodes;
    for (const frame of outermost(name)) {
      const rest = [[frame, callees]];
      while (rest.length) {
        const [from, to] = rest.pop();
        add(to, from, from.own);
        for (const below of from.below) rest.push([below, child(to, below.name, nodes)]);
      }
      let to = callers;
      add(to, frame, 0);
      for (let step = frame.above; step?.above; step = step.above) {
        to = child(to, step.name, nodes);
        add(to, frame, 0);
        to.caller = true;
      }
    }
    sort(nodes);
    return nodes;
  }

  // Every function once: what it and its callees weigh.
  function functions() {
    if (all) return all;
    const known = new Map(), open = new Map(), rest = [[frames[0], false]];
    while (rest.length) {
      const [frame, left] = rest.pop();
      const deep = open.get(frame.name) ?? 0;
      if (left) {
        open.set(frame.name, deep - 1);
        continue;
      }
      if (!known.has(frame.name)) known.set(frame.name, node(frame.name, null, -1));
      const row = known.get(frame.name);
      row.own += frame.own;
      if (deep === 0) add(row, frame, 0);
      open.set(frame.name, deep + 1);
      rest.push([frame, true]);
      for (const below of frame.below) rest.push([below, false]);
    }
    known.delete(frames[0].name);
    all = [...known.values()];
    return all;
  }

  // The address of another state.
  function here(changes) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries({ ...state, ...changes })) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    return `${location.pathname}${query.size ? `?${query}` : ""}${location.hash}`;
  }

  // Links to the same graph of other values lead to the same state.
  function carry() {
    for (const link of document.querySelectorAll("main .tabs a[href], a.keeps[href]")) {
      const target = new URL(link.href);
      for (const [name, value] of Object.entries(state)) {
        if (value) target.searchParams.set(name, value);
        else target.searchParams.delete(name);
      }
      link.href = target;
    }
    for (const link of document.querySelectorAll("[data-view]")) {
      link.href = here({ view: link.dataset.view, zoom: "", function: "", list: "" });
      link.toggleAttribute("hidden", link.dataset.view === "order" && !order);
      if (link.dataset.view === state.view) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      if (link.dataset.view === "order" && order) link.textContent = order;
    }
  }

  function go(changes, focus) {
    const target = here(changes);
    if (target !== location.pathname + location.search + location.hash) history.pushState(null, "", target);
    read();
    show(focus);
  }

  function read() {
    const query = new URLSearchParams(location.search);
    for (const name of Object.keys(state)) state[name] = query.get(name) ?? "";
    if (!["order", "sandwich"].includes(state.view)) state.view = "";
  }

  const classOf = (frame) => (/^(?:class|module) |^\(/.test(frame.name) ? null : frame.name.split("@")[0]);

  function target(frame) {
    if (!frame.address || !objects) return null;
    const name = classOf(frame);
    return frame.count === 1 || !name ? objects + frame.address : classes + encodeURIComponent(name);
  }

  function anchor(text, href, changes) {
    const link = Object.assign(document.createElement("a"), { textContent: text, href });
    if (changes) {
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        go(changes);
      });
    }
    return link;
  }

  const inside = (text, changes) => anchor(text, here(changes), changes);

  function describe(frame) {
    const way = [];
    for (let step = frame; step; step = step.above) way.unshift(step.name);
    if (frame.caller) way.reverse();
    const bold = Object.assign(document.createElement("b"), { textContent: figures(frame) });
    const parts = [bold];
    if (!compared) {
      parts.push(unit === "bytes" && frame.count != null
        ? `; ${plural(frame.count)} of ${weight(frame.own)}`
        : `; own ${weight(frame.own)}`);
    }
    if (frame.address && objects) {
      const name = classOf(frame);
      parts.push(" · ", anchor(frame.count === 1 ? "the object" : "the largest object", objects + frame.address));
      if (name) parts.push(" · ", anchor(`class ${name}`, classes + encodeURIComponent(name)));
      if (flame) parts.push(" · ", anchor("zoom to what it retains", `${flame}?of=${frame.address}`));
    }
    if (frame.above) parts.push(" · ", inside(objects ? "sandwich" : "callers and callees", { view: "sandwich", function: frame.name, zoom: "" }));
    detail.replaceChildren(...parts, Object.assign(document.createElement("span"), { className: "way", textContent: way.join(" › ") }));
  }

  function element(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) if (value != null) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  const mark = (frame) => (matches ? (matches(frame.name) ? " found" : " found-none") : "");
  const style = (frame, above) => (compared ? heat(frame) : tint(frame.name)) + (above ? " above" : mark(frame));

  function box({ frame, left, width, row, above }, pixels, font) {
    const inner = element("svg", { x: `${left}%`, y: row * ROW, width: `${width}%`, height: ROW - 1 },
      element("rect", { width: "100%", height: ROW - 1, rx: 2 }));
    const label = width * pixels > READABLE ? Labels.cut(frame.name, width * pixels, font) : "";
    if (label) inner.append(Object.assign(element("text", { x: 4, y: 13 }), { textContent: label }));
    const title = Object.assign(element("title", {}), { textContent: `${frame.name}\n${figures(frame)}` });
    return element("a", { href: target(frame) ?? "#", class: style(frame, above), "data-frame": frame.index }, title, inner);
  }

  // Boxes of a frame and what is below it, wide enough to be seen, and not too many: the widest.
  function boxes(top, row, pixels) {
    const wide = [], rest = [{ frame: top, left: 0, width: 100, row: 0 }];
    while (rest.length) {
      const place = rest.pop();
      wide.push(place);
      let left = place.left;
      for (const frame of place.frame.below) {
        const width = place.width * frame.total / (place.frame.total || 1);
        if (width * pixels >= NARROWEST) rest.push({ frame, left, width, row: place.row + 1 });
        left += width;
      }
    }
    const kept = wide.length > MOST ? wide.sort((one, other) => other.width - one.width || one.row - other.row).slice(0, MOST) : wide;
    for (const place of kept) place.row = row(place.row);
    return kept;
  }

  function places(pixels) {
    if (state.view !== "sandwich") {
      const above = [];
      for (let step = zoomed.above; step; step = step.above) above.unshift({ frame: step, left: 0, width: 100, row: step.depth, above: true });
      return above.concat(boxes(zoomed, (row) => zoomed.depth + row, pixels));
    }
    const callers = boxes(shown[1], (row) => -row, pixels).slice(1);
    const high = Math.max(0, ...callers.map(({ row }) => -row));
    for (const place of callers) place.row += high;
    return callers.concat(boxes(shown[0], (row) => high + row, pixels));
  }

  function draw(focus) {
    const pixels = (svg.clientWidth || 1000) / 100;
    const font = Labels.font(svg);
    const made = places(pixels);
    svg.replaceChildren(...made.map((place) => box(place, pixels, font)));
    svg.setAttribute("height", (made.reduce((most, { row }) => Math.max(most, row), 0) + 1) * ROW);
    if (focus != null) drawn(focus)?.focus();
  }

  // Weights along the top, and the place of the zoomed frame in the whole.
  function scale(frame) {
    axis.toggleAttribute("hidden", compared);
    axis.querySelectorAll("span").forEach((tick, number, { length }) => {
      const part = Math.round(frame.total * number / (length - 1));
      tick.textContent = unit === "bytes" ? weight(part) : part.toLocaleString("en");
    });
    map.toggleAttribute("hidden", !frame.above);
    let left = 0;
    for (let step = frame; step.above; step = step.above) {
      for (const other of step.above.below.slice(0, step.above.below.indexOf(step))) left += other.total;
    }
    map.firstChild.setAttribute("x", `${100 * left / (frames[0].total || 1)}%`);
    map.firstChild.setAttribute("width", `${Math.max(0.2, 100 * frame.total / (frames[0].total || 1))}%`);
  }

  const drawn = (index) => svg.querySelector(`a[data-frame="${index}"]`);

  // The functions as a table, those that are searched for alone.
  function table() {
    const columns = compared
      ? [["change", "Change", (row) => signed(change(row))], ["before", "Before", (row) => weight(row.before)], ["after", "After", (row) => weight(row.after)]]
      : [["own", "Own", (row) => weight(row.own)], ["total", "Total", (row) => weight(row.total)]];
    const [by] = columns.find(([name]) => name === state.list) ?? columns[0];
    const size = (row) => (by === "change" ? Math.abs(change(row)) : row[by]);
    const rows = functions().filter((row) => !matches || matches(row.name)).sort((one, other) => size(other) - size(one) || other.total - one.total);
    const make = (name, options, ...children) => {
      const made = Object.assign(document.createElement(name), options);
      made.append(...children);
      return made;
    };
    const heads = columns.map(([name, text]) => {
      const cell = make("th", { className: "number", scope: "col" }, inside(text, { list: name }));
      if (name === by) cell.setAttribute("aria-sort", "descending");
      return cell;
    });
    const lines = rows.slice(0, LISTED).map((row) => make("tr", {},
      ...columns.map(([, , text]) => make("td", { className: "number", textContent: text(row) })),
      make("td", { className: "name place" }, inside(row.name, { view: "sandwich", function: row.name }))));
    const more = rows.length - lines.length;
    list.replaceChildren(
      make("table", {}, make("thead", {}, make("tr", {}, ...heads, make("th", { className: "name", scope: "col", textContent: "Name" }))),
        make("tbody", {}, ...lines)),
      make("p", { className: "quiet", textContent: more > 0 ? `${more.toLocaleString("en")} more: search for a name.` : "" }));
  }

  function match() {
    const text = state.search;
    const pattern = text.match(/^\/(.+)\/$/);
    let expression = null;
    if (pattern) {
      try { expression = new RegExp(pattern[1], "i"); } catch { expression = /$^/; }
    }
    const low = text.toLowerCase(), answers = new Map();
    const test = (name) => (expression ? expression.test(name) : name.toLowerCase().includes(low));
    matches = text ? (name) => {
      if (!answers.has(name)) answers.set(name, test(name));
      return answers.get(name);
    } : null;
  }

  // A frame under one that was found is not counted twice.
  function count() {
    match();
    let sum = 0, places = 0;
    const rest = matches ? [frames[0]] : [];
    while (rest.length) {
      const frame = rest.pop();
      if (matches(frame.name)) { sum += frame.total; places += 1; } else rest.push(...frame.below);
    }
    found.textContent = matches ? `${weight(sum)} (${share(sum)}) in ${places.toLocaleString("en")} places` : "";
  }

  // Shows the state.
  function show(focus) {
    carry();
    load().then(() => {
      if (search.value !== state.search) search.value = state.search;
      count();
      const sandwiched = state.view === "sandwich";
      const listed = sandwiched && !frames.some((frame) => frame.name === state.function);
      shown = sandwiched && !listed ? sandwich(state.function) : frames;
      sort(frames);
      zoomed = (!sandwiched && state.zoom && frameOfKey(state.zoom)) || frames[0];
      list.hidden = !listed;
      svg.toggleAttribute("hidden", listed);
      axis.toggleAttribute("hidden", listed);
      if (listed) {
        svg.replaceChildren();
        detail.textContent = "Choose a function to see its callers above it, and its callees below.";
        table();
        return;
      }
      scale(sandwiched ? shown[0] : zoomed);
      draw(focus ? (sandwiched ? 0 : zoomed.index) : null);
      describe(sandwiched ? shown[0] : zoomed);
    }, () => {});
  }

  const pick = (frame) => go(state.view === "sandwich" ? { function: frame.above || frame.caller ? frame.name : state.function }
    : { zoom: frame.above ? key(frame) : "" }, true);

  function move(frame, key) {
    const sides = frame.above ? frame.above.below : [frame];
    const place = sides.indexOf(frame);
    const [inner, outer] = frame.caller ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
    const up = frame === shown[0] && shown !== frames ? shown[1].below[0] : frame.above;
    return { [outer]: up === shown[1] && frame.caller ? shown[0] : up, [inner]: frame.below[0], ArrowRight: sides[place + 1], ArrowLeft: sides[place - 1] }[key];
  }

  const at = (event) => event.target.closest?.("a[data-frame]");
  const number = (link) => Number(link.dataset.frame);
  const frameOf = (link) => (frames && shown[number(link)]) || null;

  svg.addEventListener("click", (event) => {
    const link = at(event);
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    load().then(() => pick(frameOf(link) ?? frames[number(link)]), () => {});
  });
  for (const name of ["focusin", "mouseover"]) {
    svg.addEventListener(name, (event) => {
      const link = at(event);
      if (!link) return;
      const frame = frameOf(link);
      if (frame) describe(frame);
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
        if (!shown.length) shown = frames;
        const next = move(shown[number(link)], event.key);
        if (next) (drawn(next.index) ?? drawn(number(link)))?.focus();
      }, () => {});
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !frames || event.target.matches("input")) return;
    if (state.view === "sandwich") go({ function: "" });
    else if (zoomed?.above) pick(zoomed.above);
  });
  search.addEventListener("input", () => {
    state.search = search.value;
    clearTimeout(typed);
    typed = setTimeout(() => {
      history.replaceState(null, "", here({}));
      carry();
    }, PAUSE);
    load().then(() => {
      count();
      if (!list.hidden) table();
      else if (!zoomed) show();
      else for (const link of svg.querySelectorAll("a:not(.above)")) link.setAttribute("class", style(frameOf(link), false));
    }, () => {});
  });
  find(".flame-reset").addEventListener("click", () => go({ zoom: "", function: "" }));
  for (const link of document.querySelectorAll("[data-view]")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({ view: link.dataset.view, zoom: "", function: "", list: "" });
    });
  }
  addEventListener("popstate", () => { read(); show(); });
  read();
  carry();
  Labels.watch(svg, () => { if (!zoomed) Labels.fit(svg); else if (list.hidden) draw(); });
  if (Object.values(state).some((value) => value)) show();
})();
