// The live page updates by itself: every two seconds it asks for what is new since the last answer, one request at a time,
// more slowly while it is hidden, and no longer once the server answers an error.
"use strict";

(() => {
  const EVERY = 2000, HIDDEN = 10000, AGAIN = 250; // milliseconds
  const PATIENCE = 15000;
  const OTHERS = 40; // answers of other workers, one after the other, until this one seems to be gone
  const SAMPLES = 300;
  const page = document.getElementById("live");
  const words = document.getElementById("stopped"), button = document.getElementById("pause");
  const { bytes, count, time } = liveCharts;
  const charts = new liveCharts(document.getElementById("charts"));
  const samples = [], ledgers = [], first = new Map();
  let since = 0, others = 0, timer = null, paused = false, asking = false, asked = 0, left = false;

  // What an action has done is said once: a reload shows the page as it is then.
  const here = new URL(location.href);
  if (here.searchParams.has("done")) {
    for (const name of ["done", "pid"]) here.searchParams.delete(name);
    history.replaceState(null, "", here);
  }

  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text instanceof Node) made.append(text); else made.textContent = text;
    return made;
  };
  const link = (text, target, attributes) => element("a", text, { href: target, ...attributes });
  const cell = (content) => element("td", content);
  const plural = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
  const show = (selector, shown) => { document.querySelector(selector)?.toggleAttribute("hidden", !shown); };
  const say = (selector, text) => { const found = document.querySelector(selector); if (found) found.textContent = text; };
  const body = (id) => document.querySelector(`#${id} tbody`);

  // A row of a table, whose cells look as the headings say.
  function row(id, cells, attributes) {
    const made = element("tr", "", attributes), heads = document.querySelectorAll(`#${id} th`);
    made.append(...cells);
    cells.forEach((cell, index) => { cell.className = heads[index].className; });
    return made;
  }

  function duration(seconds) {
    if (seconds == null) return "";
    if (seconds === 0) return "0";
    if (seconds < 0.0009995) return `${Math.max(Math.round(seconds * 1e6), 1)} us`;
    if (seconds < 0.09995) return `${(seconds * 1000).toFixed(1)} ms`;
    if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
    if (seconds < 59.995) return `${seconds.toFixed(2)} s`;
    return `${count(Math.floor(Math.round(seconds) / 60))} min ${Math.round(seconds) % 60} s`;
  }

  const age = (seconds) => seconds == null ? "unknown" : duration(seconds); // only the agent measures ages

  function place(row, tracked) {
    const shown = { class: "place", title: row.line ? `${row.file}:${row.line}` : row.file };
    if (!tracked) return element("span", row.place, shown);
    return link(row.place, `${page.dataset.source}?${new URLSearchParams({ file: row.file, line: row.line })}`, shown);
  }

  // Rows move to their new places before one's eyes.
  function rank(rows) {
    const table = body("site-rows");
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const before = new Map([...table.rows].map((row) => [row.dataset.key, row.getBoundingClientRect().top]));
    const focused = document.activeElement?.closest?.("#site-rows tr")?.dataset.key;
    table.replaceChildren(...rows);
    if (focused) rows.find((row) => row.dataset.key === focused)?.querySelector("a")?.focus({ preventScroll: true });
    for (const row of calm ? [] : rows) {
      const moved = before.get(row.dataset.key) - row.getBoundingClientRect().top;
      if (moved) row.animate([{ transform: `translateY(${moved}px)` }, { transform: "none" }], { duration: 400, easing: "ease-out" });
    }
  }

  function growth(row, key) {
    if (first.size > 5000) first.clear();
    if (!first.has(key)) first.set(key, row.size);
    const change = row.size - first.get(key);
    return change === 0 ? "" : `${change > 0 ? "+" : "-"}${bytes(Math.abs(change))}`;
  }

  function sites(found) {
    const tracked = found.source === "tracking";
    for (const part of document.querySelectorAll("#sites [data-when]")) part.hidden = part.dataset.when !== (found.source ?? "");
    if (document.getElementById("sites").dataset.source !== (found.source ?? "")) first.clear();
    document.getElementById("sites").dataset.source = found.source ?? "";
    show("#site-sum", found.source);
    say("#site-sum", `${plural(found.objects, "object")}, ${bytes(found.bytes)}, allocated at ${plural(found.sites, "site")}` +
      `${found.collections == null ? "" : ` (GC run ${count(found.collections)})`}.`);
    rank(found.rows.map((site) => {
      const key = `${site.file}:${site.line}:${site.class}`;
      const cells = [bytes(site.size), growth(site, key), count(site.count), age(site.live_for), age(site.oldest), site.class,
        place(site, tracked)];
      return row("site-rows", cells.map(cell), { "data-key": key });
    }));
  }

  function requests(rows) {
    const table = body("ended-rows");
    for (const { time, objects, status, start, action, position } of rows) {
      const cells = [duration(time), objects == null ? "" : count(objects), status ?? "", start ?? "",
        link(action, `${page.dataset.request}/${position}`)];
      table.prepend(row("ended-rows", cells.map(cell)));
    }
    while (table.rows.length > 50) table.lastChild.remove();
    show("#ended", table.rows.length > 0);
  }

  function tracing({ left, traced }) {
    say("#left", plural(left, "request"));
    say("#costs a", `Costs of ${plural(traced, "request")}`);
    show("#costs", traced > 0);
    if (traced === 0) body("ended-rows")?.replaceChildren();
    show("#ended", traced > 0);
  }

  function dumps({ complete, unfinished }) {
    const writing = unfinished.map((dump) => {
      const line = element("span", element("progress", "", { "aria-label": "A dump is being written" }));
      line.append(" ", link(`Process ${dump.pid} writes a dump`, `${page.dataset.dump}/${dump.id}`), `: ${bytes(dump.size)}`);
      return line;
    });
    document.getElementById("unfinished").replaceChildren(...writing);
    show("#unfinished", writing.length > 0);
    show("#no-dumps", complete.length === 0);
    body("dumps").replaceChildren(...complete.map((dump) => row("dumps", [
      link(dump.time, `${page.dataset.heap}/${dump.id}/`, { title: dump.path }), dump.pid, bytes(dump.size),
      element("form", element("button", "Delete"), { method: "post", action: `${page.dataset.dump}/${dump.id}/delete` })
    ].map(cell))));
  }

  function work(rows) {
    show("#work", rows.length > 0);
    body("work-rows").replaceChildren(...rows.map(({ runs, time, objects, kind, name }) => row("work-rows", [
      count(runs), duration(time), objects == null ? "" : count(objects), kind === "job" ? `${name} (job)` : name
    ].map(cell))));
  }

  // Sentences and facts of the page.
  function facts(gc, rss) {
    const now = { ...gc, rss };
    const words = { rss: bytes, malloc: bytes, seconds: duration };
    for (const part of document.querySelectorAll("[data-now]")) {
      const value = now[part.dataset.now];
      if (value != null) part.textContent = (words[part.dataset.now] ?? count)(value);
    }
  }

  function measurements(answer) {
    samples.push(...answer.samples);
    ledgers.push(...answer.memory);
    samples.splice(0, samples.length - SAMPLES);
    // Those that were drawn before the first sample are no longer seen, except for the last of them.
    while (ledgers.length > 1 && ledgers[1].at < samples[0]?.at) ledgers.shift();
    if (!samples.length) return;
    facts(answer.gc, samples[samples.length - 1].rss);
    const rows = charts.draw(samples, ledgers);
    document.querySelector("#numbers tbody").replaceChildren(...rows.map(([name, values, format]) => {
      const known = values.filter((value) => value != null);
      const figures = known.length ? [known[known.length - 1], Math.min(...known), Math.max(...known)].map(format) : ["", "", ""];
      const made = element("tr", element("th", name, { scope: "row" }));
      made.append(...figures.map((figure) => element("td", figure, { class: "number" })));
      return made;
    }));
  }

  function take(answer) {
    if (answer.other) {
      others += 1;
      if (others >= OTHERS) stop(`Process ${page.dataset.pid} does not answer; others of the server do.`);
      return;
    }
    others = 0;
    since = answer.number;
    measurements(answer);
    if (answer.sites) sites(answer.sites);
    if (answer.tracing) tracing(answer.tracing);
    if (answer.requests.length && body("ended-rows")) requests(answer.requests);
    if (answer.dumps) dumps(answer.dumps);
    if (answer.work) work(answer.work);
    words.textContent = "";
    say("#updates", `Updated at ${time(Date.now() / 1000)} UTC.`);
  }

  function stop(why) {
    paused = true;
    button.textContent = "Resume";
    words.textContent = `${why} Updates have stopped.`;
  }

  async function ask() {
    asking = true;
    asked = Date.now();
    try {
      const address = `${page.dataset.from}?since=${since}&pid=${page.dataset.pid}`;
      const answer = await fetch(address, { cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(PATIENCE) });
      if (answer.type === "opaqueredirect") stop("The server redirects to another page.");
      else if (!answer.ok) stop(`The server answered ${answer.status}.`);
      else take(await answer.json());
    } catch {
      if (!left) stop("The server does not answer."); // else the browser has called it off
    }
    asking = false;
    plan();
  }

  // Another worker may have answered: then this one is looked for at once.
  function plan() {
    clearTimeout(timer);
    if (paused || asking || left) return;
    const wait = document.hidden ? HIDDEN : others ? AGAIN : EVERY;
    timer = setTimeout(ask, Math.max(0, asked + wait - Date.now()));
  }

  // At once: what is below must not move when the first answer is there.
  for (const id of ["pause", "charts", "numbers"]) document.getElementById(id).hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume" : "Pause";
    if (paused) words.textContent = "Paused.";
    others = 0;
    plan();
  });
  document.addEventListener("visibilitychange", plan);
  addEventListener("pagehide", () => { left = true; plan(); });
  addEventListener("pageshow", () => { left = false; plan(); });
  ask();
})();
