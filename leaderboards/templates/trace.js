"use strict";
(() => {
  // One stop a text for the Tab key, arrows within it; without this script every step is a stop.
  for (const answer of document.querySelectorAll(".answer")) {
    const steps = [...answer.querySelectorAll(".s")];
    const go = (step) => {
      for (const other of steps) other.tabIndex = other === step ? 0 : -1;
    };
    go(steps[0]);
    answer.addEventListener("focusin", (event) => go(event.target.closest(".s")));
    answer.addEventListener("keydown", (event) => {
      const at = steps.indexOf(document.activeElement);
      const turned = getComputedStyle(answer).direction === "rtl" ? -1 : 1;
      const to = {
        ArrowRight: at + turned,
        ArrowLeft: at - turned,
        ArrowDown: at + 1,
        ArrowUp: at - 1,
        Home: 0,
        End: steps.length - 1,
      }[event.key];
      if (event.key === "Escape") document.activeElement.blur();
      if (at < 0 || steps[to] === undefined) return;
      event.preventDefault();
      steps[to].focus();
    });
  }
})();
