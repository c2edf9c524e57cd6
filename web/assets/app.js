// Keys for those who like them; every page works without.
"use strict";

(() => {
  const help = document.getElementById("help");
  const keys = { "/": "search", "j, k": "next and previous row", "Enter": "open the row", "?": "this help" };
  if (document.querySelector(".unfolds table")) keys["\u2192, \u2190"] = "expand and collapse the row";
  let chosen = null;

  // Rows come and go, so the place of the chosen one is looked up.
  function choose(step) {
    const all = [...document.querySelectorAll("tbody tr:not([hidden])")];
    if (!all.length) return;
    chosen?.classList.remove("chosen");
    chosen = all[Math.max(0, Math.min(all.length - 1, all.indexOf(chosen) + step))];
    chosen.classList.add("chosen");
    chosen.scrollIntoView({ block: "nearest" });
    // What the row is about: an object, or else its last link; the others are its numbers.
    const links = [...chosen.querySelectorAll("a")];
    (links.find((link) => link.matches(".object")) ?? links.pop())?.focus({ preventScroll: true });
  }

  function toggleHelp() {
    if (!help.firstChild) {
      const list = document.createElement("dl");
      list.className = "facts";
      for (const [key, what] of Object.entries(keys)) {
        list.append(Object.assign(document.createElement("dt"), { textContent: key }),
          Object.assign(document.createElement("dd"), { textContent: what }));
      }
      help.append(list);
    }
    help.hidden = !help.hidden;
  }

  const actions = {
    "/": () => document.querySelector("input[type=search]")?.focus(),
    "j": () => choose(1),
    "k": () => choose(-1),
    "?": toggleHelp,
    "Escape": () => { help.hidden = true; },
  };

  // On a narrow screen the menu is longer than the screen.
  const menu = document.querySelector("nav.menu"), current = menu?.querySelector("[aria-current]");
  if (current) menu.scrollLeft = current.offsetLeft + current.offsetWidth / 2 - menu.clientWidth / 2;

  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
})();
