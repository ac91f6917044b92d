// The values of a chart's points, by mouse, touch or keyboard. Without script the browser shows the
// same text itself, from the title elements.
"use strict";
(() => {
  const tip = document.getElementById("tip");
  const show = (mark) => {
    const box = mark.getBoundingClientRect();
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const left = box.left + box.width / 2 - tip.offsetWidth / 2;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 4;
    tip.style.left = `${scrollX + Math.max(4, Math.min(left, room))}px`;
    const above = box.top - tip.offsetHeight - 6;
    tip.style.top = `${scrollY + (above < 0 ? box.bottom + 6 : above)}px`;
  };
  for (const mark of document.querySelectorAll(".hit")) {
    const title = mark.querySelector("title");
    mark.dataset.tip = title.textContent;
    mark.setAttribute("aria-label", title.textContent);
    title.remove();
    mark.addEventListener("pointerenter", () => show(mark));
    mark.addEventListener("focus", () => show(mark));
    mark.addEventListener("pointerleave", () => { tip.hidden = true; });
    mark.addEventListener("blur", () => { tip.hidden = true; });
  }
})();
