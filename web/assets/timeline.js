// A part of the time is chosen by dragging over the picture of it: that fills the fields below, and sends them.
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LEAST = 4; // pixels: what is shorter is a click
  const picture = document.querySelector("svg.timeline"), form = document.querySelector("form.range");
  if (!picture || !form) return;
  const whole = Number(picture.dataset.seconds);
  const inner = picture.querySelector("svg");
  const { width, height } = inner.viewBox.baseVal;
  const drawn = document.createElementNS(SVG, "rect");
  drawn.setAttribute("class", "drawn");
  drawn.setAttribute("height", height);
  form.querySelector(".drag")?.removeAttribute("hidden");
  let start = null, dragged = false;

  // How far at the picture a pointer is: 0 to 1.
  function place(event) {
    const { left, width } = picture.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - left) / width));
  }

  // An end of the picture is an end of the time, however numbers are rounded.
  function fill(from, to) {
    form.elements.from.value = from > 0 ? Number((from * whole).toPrecision(6)) : "";
    form.elements.to.value = to < 1 ? Number((to * whole).toPrecision(6)) : "";
    drawn.setAttribute("x", from * width);
    drawn.setAttribute("width", (to - from) * width);
  }

  function move(event) {
    if (!event.buttons) return picture.removeEventListener("pointermove", move); // it was let go elsewhere
    const at = place(event);
    if (!dragged && Math.abs(at - start) * picture.clientWidth < LEAST) return;
    if (!dragged) {
      inner.append(drawn);
      picture.setPointerCapture(event.pointerId);
    }
    dragged = true;
    fill(Math.min(start, at), Math.max(start, at));
  }

  function end(event) {
    picture.removeEventListener("pointermove", move);
    if (!dragged) return;
    if (event.type === "pointerup") form.requestSubmit();
    else drawn.remove();
  }

  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    start = place(event);
    dragged = false;
    picture.addEventListener("pointermove", move);
  });
  for (const name of ["pointerup", "pointercancel"]) picture.addEventListener(name, end);
  // Bars are links: they are neither dragged away nor followed then.
  picture.addEventListener("dragstart", (event) => event.preventDefault());
  picture.addEventListener("click", (event) => { if (dragged) event.preventDefault(); });
})();
