// What a page looks like, asked in the browser: one expression, an object of functions.
({
  // How far the page is wider than the window, with the elements that are. What scrolls in a box of its own is not.
  overflow() {
    const width = document.documentElement.clientWidth;
    const over = document.documentElement.scrollWidth - width;
    if (over <= 0) return [];
    const scrolls = (element) => element && element !== document.body && element !== document.documentElement &&
      (getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement));
    return [...document.body.querySelectorAll("*")]
      .filter((element) => element.getBoundingClientRect().right > width + 0.5 && !scrolls(element.parentElement))
      .slice(0, 5).map((element) => `${element.tagName} ${element.className?.baseVal ?? element.className}: ` +
        `${Math.round(element.getBoundingClientRect().right)} > ${width}`).concat(`${over} px too wide`);
  },

  // Labels are fitted in the frame after a change of the width.
  settled() {
    return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))));
  },

  // Labels of pictures that are cut, or smaller than 9 pixels.
  labels() {
    const width = (box, svg) => parseFloat(box.getAttribute("width")) / 100 * svg.clientWidth;
    return [...document.querySelectorAll("svg.icicle svg > text, svg.treemap svg > text, svg.chart text")].filter((text) => {
      const svg = text.ownerSVGElement.closest("svg.icicle, svg.treemap, svg.chart");
      const box = text.parentElement;
      const size = text.getScreenCTM().a * parseFloat(getComputedStyle(text).fontSize);
      return text.textContent && (size < 9 || (box !== svg && text.getBBox().x + text.getComputedTextLength() > width(box, svg)));
    }).map((text) => text.textContent).slice(0, 5);
  },

  // Texts that are broken at each letter or so.
  letters() {
    const found = [], walker = document.createTreeWalker(document.querySelector("main") ?? document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    while (walker.nextNode()) {
      const text = walker.currentNode.textContent.trim();
      const element = walker.currentNode.parentElement;
      if (text.length < 4 || element.closest("svg, script, pre, .unseen") || !element.checkVisibility()) continue;
      range.selectNodeContents(walker.currentNode);
      const lines = new Set([...range.getClientRects()].filter(({ width }) => width).map(({ top }) => Math.round(top))).size;
      if (lines > 2 && text.length / lines < 5) found.push(`${lines} lines: ${text.slice(0, 40)}`);
    }
    return found.slice(0, 5);
  },

  // Tables that scroll without the name of a row being in view.
  nameless() {
    const tables = [...document.querySelectorAll(".scroll:has(> table)")].filter((box) => box.scrollWidth > box.clientWidth + 1);
    const hidden = (box) => {
      const cell = box.querySelector("tbody td.name, tbody th[scope=row]");
      const [inner, outer] = [cell?.getBoundingClientRect(), box.getBoundingClientRect()];
      return !cell || inner.left < outer.left - 1 || inner.right > outer.right + 1;
    };
    return tables.filter((box) => [0, box.scrollWidth].some((left) => {
      box.scrollLeft = left;
      const lost = hidden(box);
      box.scrollLeft = 0;
      return lost;
    })).map((box) => box.innerText.slice(0, 80));
  },

  // Headings of tables that take several lines.
  heads() {
    return [...document.querySelectorAll("thead th")].filter((cell) => cell.checkVisibility() && cell.clientHeight > 36)
      .map((cell) => cell.textContent).slice(0, 5);
  },

  // Texts whose contrast is below `least`, as the guidelines for accessible content (WCAG) count it.
  faint(least) {
    const known = new Map();
    const parse = (text) => {
      if (!known.has(text)) known.set(text, paint(text));
      return known.get(text);
    };
    const paint = (text) => {
      const canvas = this.canvas ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
      return [red, green, blue, alpha / 255];
    };
    const over = (upper, lower) => upper.slice(0, 3).map((part, at) => part * upper[3] + lower[at] * (1 - upper[3])).concat(1);
    const light = (colour) => {
      const [red, green, blue] = colour.map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const contrast = (one, other) => {
      const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05);
    };
    const opacity = (element) => (element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1);
    const back = (element) => {
      if (!element) return [255, 255, 255, 1];
      const own = parse(getComputedStyle(element).backgroundColor);
      return own[3] === 1 ? own : over(own, back(element.parentElement));
    };
    // A text in a picture stands on the box that is under it.
    const box = (text, x, y) => document.elementsFromPoint(x, y).find((element) => element.matches("rect") && element.closest("svg.icicle, svg.treemap, svg.graph"));
    const seen = new Map();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || element.closest(".skip, title, option, script")) continue;
      const style = getComputedStyle(element);
      const picture = element instanceof SVGElement;
      const rectangle = element.getBoundingClientRect();
      if (picture && (rectangle.bottom < 0 || rectangle.top > innerHeight)) continue;
      let below = back(picture ? element.closest("svg").parentElement : element);
      if (picture) {
        const rect = box(element, rectangle.x + rectangle.width / 2, rectangle.y + rectangle.height / 2);
        if (rect) {
          const fill = parse(getComputedStyle(rect).fill);
          below = over([...fill.slice(0, 3), fill[3] * opacity(rect)], below);
        }
      }
      const colour = parse(picture ? style.fill : style.color);
      const ratio = contrast(over([...colour.slice(0, 3), colour[3] * opacity(element)], below), below);
      const what = `${element.closest("svg")?.getAttribute("class") ?? ""} ${element.tagName}.${element.getAttribute("class") ?? ""}`;
      if (ratio < least && !seen.has(what)) {
        seen.set(what, `${what.trim()} ${JSON.stringify(element.textContent.trim().slice(0, 30))}: ${ratio.toFixed(2)}`);
      }
    }
    return [...seen.values()];
  },

  // Elements of these selectors that are to be seen.
  visible(...selectors) {
    return selectors.filter((selector) => [...document.querySelectorAll(selector)].some((element) => element.checkVisibility()));
  },

  // What a reader who can't see the page would miss.
  unnamed() {
    const name = (element) => element.getAttribute("aria-label") || element.labels?.[0]?.textContent.trim() || element.textContent.trim();
    return [
      ...[...document.querySelectorAll("input:not([type=hidden]), select, button")].filter((element) => !name(element)),
      ...[...document.querySelectorAll("a[href]")].filter((element) => element.checkVisibility() && !name(element)),
      ...[...document.querySelectorAll("img:not([alt]), svg[role=img]:not([aria-label])")],
    ].map((element) => element.outerHTML.slice(0, 120)).slice(0, 5)
      .concat(document.querySelectorAll("h1").length === 1 ? [] : "not one h1", document.title ? [] : "no title");
  },
})
