"use strict";
(() => {
  const key = (cell, kind) => {
    if (kind === "number") return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    if (cell.classList.contains("missing")) return null;
    const name = cell.querySelector("bdi, .tag");
    return (name || cell).textContent.trim();
  };
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, index) => {
      head.querySelector("button").addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const turned = now === "ascending" ? "descending" : "ascending";
        const direction = now === null ? head.dataset.first : turned;
        const sign = direction === "ascending" ? 1 : -1;
        const rows = original.map((row) => [key(row.cells[index], head.dataset.kind), row]);
        // Missing values stay last in either direction; the sort is stable, so ties keep the order of the board.
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * compare(a, b);
        });
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", direction);
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
})();
