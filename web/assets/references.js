// Opens what an object refers to, or what refers to it, under its row. The rows are those of that object's own page,
// as the server made them; without this each row leads there by its link.
"use strict";

(() => {
  const OBJECT = /\/objects\/0x[0-9a-f]+$/;
  const lines = new WeakMap(); // what is known of a row
  const pause = () => new Promise((wake) => setTimeout(wake, 1000));

  // While the heap is opened again the server says 202.
  async function page(href) {
    for (;;) {
      const answer = await fetch(href, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      if (answer.status !== 202) return new DOMParser().parseFromString(await answer.text(), "text/html");
      await pause();
    }
  }

  const button = (line) => line.row.querySelector("button");
  const last = (line) => (line.below?.length ? last(line.below.at(-1)) : line);

  function show(line, visible) {
    for (const other of line.below ?? []) {
      other.row.hidden = !visible;
      show(other, visible && other.open);
    }
  }

  class Section {
    constructor(element) {
      this.element = element;
      this.inwards = element.id === "referrers";
      this.message = Object.assign(document.createElement("output"), { className: "unseen" });
      element.append(this.message);
      element.querySelector("table").setAttribute("role", "treegrid");
      for (const row of element.querySelectorAll("tbody tr")) this.take(row, null);
      element.addEventListener("keydown", (event) => this.key(event));
    }

    // Makes a row one that opens, unless its object stands above it: that would never end.
    take(row, above) {
      const link = row.querySelector("a.object");
      const href = link?.getAttribute("href");
      const line = this.line(row, above, OBJECT.test(href) ? href : null);
      const cell = row.cells[0];
      if (!line.href) return line;
      if (this.repeats(line)) {
        cell.prepend(Object.assign(document.createElement("span"), { className: "again", textContent: "\u21ba", title: "Same object as above" }));
        link.title = "Same object as above";
        return line;
      }
      const opener = Object.assign(document.createElement("button"), { type: "button", className: "unfold" });
      const name = link.textContent;
      opener.setAttribute("aria-label", this.inwards ? `Incoming references of ${name}` : `Outgoing references of ${name}`);
      opener.setAttribute("aria-expanded", "false");
      opener.addEventListener("click", () => this.fold(line, !line.open));
      cell.prepend(opener);
      return line;
    }

    repeats(line) {
      if (line.href === location.pathname) return true;
      for (let above = line.above; above; above = above.above) if (above.href === line.href) return true;
      return false;
    }

    async fold(line, open) {
      line.open = open;
      button(line).setAttribute("aria-expanded", open);
      if (open && !line.below) {
        line.below = [];
        await this.bring(line, line.href, button(line)).catch((error) => {
          line.below = null;
          line.open = false;
          button(line).setAttribute("aria-expanded", "false");
          this.say(`Cannot load the rows: ${error.message}`);
        });
      }
      show(line, line.open);
    }

    // A page of rows, and a row that brings the next one.
    async bring(line, href, waiting) {
      waiting.setAttribute("aria-busy", "true");
      try {
        const there = (await page(href)).getElementById(this.element.id);
        if (!there) throw new Error("another page came");
        const rows = [...there.querySelectorAll("tbody tr")];
        const next = there.querySelector("a[rel=next]")?.getAttribute("href");
        for (const row of rows) this.put(line, this.take(row, line));
        if (!line.below.length) this.put(line, this.line(this.remark(this.inwards ? "No incoming references." : "No outgoing references."), line));
        if (next) this.put(line, this.line(this.more(line, next, there.dataset.count), line));
        const count = Number(there.dataset.count).toLocaleString("en");
        this.say(`${count} object${count === "1" ? "" : "s"}, ${line.below.filter((below) => below.href).length} shown`, true);
      } finally {
        waiting.removeAttribute("aria-busy");
      }
    }

    put(above, below) {
      last(above).row.after(below.row);
      above.below.push(below);
    }

    line(row, above, href = null) {
      const line = { row, above, level: (above?.level ?? 0) + 1, href, below: null, open: false };
      lines.set(row, line);
      row.setAttribute("aria-level", line.level);
      row.style.setProperty("--level", Math.min(line.level - 1, 12));
      return line;
    }

    remark(...content) {
      const row = document.createElement("tr");
      const cell = Object.assign(document.createElement("td"), { className: "quiet remark" });
      cell.colSpan = this.element.querySelector("thead tr").cells.length;
      cell.append(...content);
      row.append(cell);
      return row;
    }

    more(line, href, count) {
      const shown = line.below.length;
      const opener = Object.assign(document.createElement("button"), { type: "button", textContent: "Show more" });
      const row = this.remark(opener, ` ${shown} of ${Number(count).toLocaleString("en")} shown`);
      opener.addEventListener("click", async () => {
        const end = line.below.pop();
        try {
          await this.bring(line, href, opener);
          row.remove();
          this.focus(line.below[shown]);
        } catch (error) {
          line.below.push(end);
          this.say(`Cannot load the rows: ${error.message}`);
        }
      });
      return row;
    }

    say(text, unseen = false) {
      this.message.className = unseen ? "unseen" : "note";
      this.message.textContent = text;
    }

    focus(line) {
      (button(line) ?? line.row.querySelector("a"))?.focus();
    }

    // As in other trees: right opens, or goes in; left closes, or goes out; up and down go along.
    key(event) {
      const line = lines.get(event.target.closest("tr"));
      if (!line || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      const rows = [...this.element.querySelectorAll("tbody tr:not([hidden])")];
      const beside = (step) => lines.get(rows[rows.indexOf(line.row) + step]);
      const acts = {
        ArrowRight: () => (line.open ? this.focus(line.below[0] ?? line) : line.href && button(line) && this.fold(line, true)),
        ArrowLeft: () => (line.open ? this.fold(line, false) : line.above && this.focus(line.above)),
        ArrowUp: () => beside(-1) && this.focus(beside(-1)),
        ArrowDown: () => beside(1) && this.focus(beside(1)),
      };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    }
  }

  for (const element of document.querySelectorAll("section.unfolds")) if (element.querySelector("table")) new Section(element);
})();
