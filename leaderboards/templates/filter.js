"use strict";
(() => {
  for (const form of document.querySelectorAll("form.filter")) {
    const section = form.closest("section");
    const status = form.querySelector("output");
    const chosen = (name) => (form.elements[name] ? form.elements[name].value : "");
    const apply = () => {
      const terms = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const output = chosen("output");
      const domain = chosen("domain");
      const methods = new Map();
      const fits = (part) => {
        const { method, output: own } = part.dataset;
        if (method === undefined) return true;
        const name = method.toLowerCase();
        const good = terms.every((term) => name.includes(term)) && (!output || own === output);
        methods.set(method, good);
        return good;
      };
      const inside = (part) => !domain || part.dataset.domain === undefined || part.dataset.domain === domain;
      for (const table of section.querySelectorAll("table.board")) {
        [...table.tHead.rows[0].cells].forEach((head, index) => {
          const away = !(fits(head) && inside(head));
          for (const row of table.rows) row.cells[index].hidden = away;
        });
        for (const row of table.tBodies[0].rows) row.hidden = !(fits(row) && inside(row));
      }
      for (const card of section.querySelectorAll(".card")) card.hidden = !fits(card);
      const shown = [...methods.values()].filter(Boolean).length;
      const narrowed = terms.length > 0 || output || domain;
      status.textContent = shown === 0 ? "No method matches." : narrowed ? `${shown} of ${methods.size} methods` : "";
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    // The fields are empty only after the event.
    form.addEventListener("reset", () => setTimeout(apply));
    form.hidden = false;
    apply();
  }
})();
