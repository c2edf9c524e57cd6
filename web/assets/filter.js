// Shows what a filter chooses while it is typed: the server makes the page again with what is in the field, and what stands
// around the form is replaced. Enter and the button lead to the same page, as they do without this.
"use strict";

(() => {
  const PAUSE = 250, AGAIN = 1000; // milliseconds: after the last key, and while a heap is opened again

  function watch(form) {
    const field = form.querySelector("input[type=text]");
    const message = Object.assign(document.createElement("output"), { className: "unseen" });
    let timer = null, asking = null;
    form.append(message);
    field.addEventListener("input", () => later(PAUSE));
    form.addEventListener("submit", () => { clearTimeout(timer); asking?.abort(); });

    function later(pause) {
      clearTimeout(timer);
      timer = setTimeout(ask, pause);
    }

    function address() {
      const url = new URL(form.action);
      url.search = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim() !== ""));
      return url;
    }

    // One question at a time: the server works on, whatever is called off here.
    async function ask() {
      if (asking) return later(PAUSE);
      const url = address();
      asking = new AbortController();
      try {
        const answer = await fetch(url, { credentials: "same-origin", signal: asking.signal });
        if (answer.status === 202) return later(AGAIN);
        if (!answer.ok && answer.status !== 400) throw new Error(`${answer.status} ${answer.statusText}`);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        field.setAttribute("aria-invalid", !answer.ok);
        // Half a query is none yet: what was there stays.
        field.title = answer.ok ? "" : page.querySelector(".error")?.textContent ?? "";
        if (answer.ok) show(page, url);
      } catch (error) {
        if (error.name !== "AbortError") say(`Cannot load the list: ${error.message}`, "note");
      } finally {
        asking = null;
      }
    }

    function show(page, url) {
      let here = form, there = page.querySelector("form[data-as-typed]");
      if (!there) return location.assign(url); // another page: nothing is tracked any more, or not admitted
      // Other parts of the live page are updated by its own script.
      for (; !here.matches("#main, [data-filtered]"); here = here.parentElement, there = there.parentElement) {
        while (here.previousSibling) here.previousSibling.remove();
        while (here.nextSibling) here.nextSibling.remove();
        while (there.previousSibling) here.parentElement.prepend(there.previousSibling);
        while (there.nextSibling) here.parentElement.append(there.nextSibling);
      }
      document.title = page.title;
      history.replaceState(null, "", url);
      say(here.querySelector(form.dataset.asTyped)?.textContent ?? "", "unseen");
    }

    function say(text, style) {
      message.className = style;
      message.textContent = text.replace(/\s+/g, " ").trim();
    }
  }

  for (const form of document.querySelectorAll("form[data-as-typed]")) watch(form);
})();
