"use strict";
// Values read off a line: by pointer, or by the arrow keys once the chart has the focus.
function attach(root) {
  for (const area of root.querySelectorAll("[data-readings]")) {
    const readings = JSON.parse(area.dataset.readings);
    let at = readings.length - 1, hair = null, box = null;
    const show = () => {
      if (!hair) {
        hair = area.appendChild(Object.assign(document.createElement("span"), { className: "hair" }));
        box = area.appendChild(Object.assign(document.createElement("span"), { className: "reading" }));
        box.setAttribute("role", "status");
      }
      const [place, words] = readings[at];
      hair.style.left = `${100 * place}%`;
      box.textContent = words;
      const half = box.offsetWidth / 2, x = place * area.offsetWidth;
      box.style.left = `${Math.min(Math.max(x, half - 40), area.offsetWidth - half + 10)}px`;
    };
    const hide = () => { hair?.remove(); box?.remove(); hair = box = null; };
    area.addEventListener("pointermove", (event) => {
      const frame = area.getBoundingClientRect(), x = (event.clientX - frame.left) / frame.width;
      at = 0;
      while (at + 1 < readings.length && readings[at + 1][0] <= x) at += 1;
      show();
    });
    area.addEventListener("pointerleave", hide);
    area.addEventListener("focus", () => { if (area.matches(":focus-visible")) show(); });
    area.addEventListener("blur", hide);
    area.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -readings.length, End: readings.length }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      at = Math.min(Math.max(at + step, 0), readings.length - 1);
      show();
    });
  }
}
attach(document);

// A live page asks for its next version; what is unfolded stays so, the focus stays where it was.
const every = Number(document.body.dataset.every || 0);
async function renew() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = [...document.querySelectorAll("details")].map((one) => one.open);
    const places = () => [...document.querySelectorAll("a, summary, [tabindex]")];
    const focus = places().indexOf(document.activeElement);
    document.querySelector(".page").replaceWith(next.querySelector(".page"));
    [...document.querySelectorAll("details")].forEach((one, k) => { one.open = Boolean(open[k]); });
    if (focus >= 0) places()[focus]?.focus({ preventScroll: true });
    attach(document);
    document.title = next.title;
    if (!next.body.dataset.every) return;
    setTimeout(renew, 1000 * every);
  } catch {
    const badge = document.querySelector(".badge");
    badge.className = "badge";
    badge.textContent = "the run has ended, or its connection is lost";
  }
}
if (every) setTimeout(renew, 1000 * every);
