(() => {
  const all = (path, within = document) => [...within.querySelectorAll(path)];
  const filters = document.getElementById("filters");
  const hidden = () => {
    const unticked = { card: new Set(), workload: new Set(), precision: new Set() };
    for (const box of all("input:not(:checked)", filters)) unticked[box.dataset.field].add(box.value);
    return unticked;
  };
  const closeUp = (chart) => {
    let gap = 0;
    for (const row of all("g[data-step]", chart)) {
      if (row.matches(".off, .hid")) gap += Number(row.dataset.step);
      else row.setAttribute("transform", `translate(0 ${-gap})`);
    }
    const foot = chart.querySelector("g.foot");
    if (foot) foot.setAttribute("transform", `translate(0 ${-gap})`);
    chart.dataset.box ||= chart.getAttribute("viewBox");
    const [left, top, width, height] = chart.dataset.box.split(" ").map(Number);
    chart.setAttribute("viewBox", `${left} ${top} ${width} ${height - gap}`);
    chart.setAttribute("height", height - gap);
  };
  const show = () => {
    const off = hidden();
    for (const element of all("[data-precision]"))
      element.classList.toggle("off", off.card.has(element.dataset.card) || off.precision.has(element.dataset.precision));
    for (const section of all("section[data-workload]"))
      section.classList.toggle("off", off.workload.has(section.dataset.workload));
    all("svg.chart").filter((chart) => chart.querySelector("g[data-step]")).forEach(closeUp);
  };
  const lines = (panels) => {
    const byLine = new Map();
    for (const series of all("g.series", panels)) {
      const name = [series.dataset.precision, series.dataset.card].filter(Boolean).join(", ");
      byLine.set(name, [...(byLine.get(name) || []), series]);
    }
    if (byLine.size < 2) return;
    const row = document.createElement("p");
    row.className = "lines";
    row.append("Show");
    for (const [name, drawn] of byLine) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const hid = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!hid));
        drawn.forEach((series) => series.classList.toggle("hid", hid));
        all("svg.chart", panels).filter((chart) => chart.querySelector("g[data-step]")).forEach(closeUp);
      });
      row.append(button);
    }
    panels.before(row);
  };
  all(".panels").filter((panels) => !panels.closest(".first")).forEach(lines);
  if (filters) {
    filters.hidden = false;
    filters.addEventListener("change", show);
  }
  const roles = { THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  for (const part of all("table, thead, tbody, tr, th, td"))
    part.setAttribute("role", roles[part.tagName] || { row: "rowheader", col: "columnheader" }[part.scope] || "table");
  const units = { s: 1, ms: 1e-3, GiB: 1024, MiB: 1 };
  const worth = (cell) => {
    const words = (cell.querySelector("bdi") || cell).textContent.replace(/,/g, "").trim();
    const figure = /^(-?\d+(?:\.\d+)?)(?: (s|ms|GiB|MiB)\b)?/.exec(words);
    return figure ? Number(figure[1]) * (units[figure[2]] || 1) : words.toLowerCase();
  };
  const order = (a, b) =>
    typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
  for (const table of all("table")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 3) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((head) => head.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [worth(row.cells[column]), row]);
        rows.sort((a, b) => (up ? 1 : -1) * order(a[0], b[0]));
        body.append(...rows.map((pair) => pair[1]));
      });
    });
  }
})();
