(() => {
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 4 || body.querySelector("[scope=rowgroup]")) continue;
    const worth = (cell) => {
      const words = cell.textContent.replace(/[,\u00a0]/g, " ").trim();
      const figure = /^-?\d[\d ]*(?:\.\d+)?/.exec(words);
      return figure ? Number(figure[0].replace(/ /g, "")) : words.toLowerCase();
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
