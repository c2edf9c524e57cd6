// Buttons that copy: a text that they have, or one from the server.
"use strict";

(() => {
  const buttons = "button[data-copy], button[data-copy-from]";

  function reveal() {
    for (const button of document.querySelectorAll(buttons)) button.hidden = false;
  }

  async function textOf(button) {
    if (button.dataset.copy !== undefined) return button.dataset.copy;
    const answer = await fetch(button.dataset.copyFrom, { credentials: "same-origin" });
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.statusText}`);
    return answer.text();
  }

  // Without HTTPS, other hosts' pages have no clipboard: there the old command works.
  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = Object.assign(document.createElement("textarea"), { value: text, className: "unseen" });
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (!done) throw new Error("the browser has no clipboard");
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.(buttons);
    if (!button) return;
    const label = button.dataset.label ??= button.textContent;
    try {
      await copy(await textOf(button));
      button.textContent = "Copied";
    } catch (error) {
      button.textContent = `Cannot copy: ${error.message}`;
    }
    setTimeout(() => { button.textContent = label; }, 2000);
  });

  // Lists that are filtered while one types bring new buttons.
  new MutationObserver(reveal).observe(document.getElementById("main"), { childList: true });
  reveal();
})();
