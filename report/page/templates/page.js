(() => {
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 4 || body.querySelector("[scope=rowgroup]")) continue;
    const units = { ms: 1e-3, min: 60, h: 3600, days: 86400, MiB: 2 ** 20, GiB: 2 ** 30 };
    const worth = (cell) => {
      const words = cell.textContent.replace(/,/g, "").replace(/\u00a0/g, " ").trim().replace(/^under 1 /, "0.5 ");
      const figure = /^(-?\d+(?:\.\d+)?) ?(ms|min|h|days|MiB|GiB)?/.exec(words);
      return figure ? Number(figure[1]) * (units[figure[2]] || 1) : words.toLowerCase();
    };
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [worth(row.cells[column]), row]);
        rows.sort(([a], [b]) => (up ? 1 : -1) * (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
})();
