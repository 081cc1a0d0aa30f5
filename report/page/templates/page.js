(() => {
  const all = (path, within = document) => [...within.querySelectorAll(path)];
  const filters = document.getElementById("filters");
  const hidden = () => {
    const found = { card: new Set(), workload: new Set(), precision: new Set() };
    for (const box of all("input:not(:checked)", filters)) found[box.dataset.field].add(box.value);
    return found;
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
    for (const one of all("[data-precision]"))
      one.classList.toggle("off", off.card.has(one.dataset.card) || off.precision.has(one.dataset.precision));
    for (const one of all("section[data-workload]"))
      one.classList.toggle("off", off.workload.has(one.dataset.workload));
    all("svg.chart").filter((one) => one.querySelector("g[data-step]")).forEach(closeUp);
  };
  const lines = (panels) => {
    const found = new Map();
    for (const one of all("g.series", panels)) {
      const name = [one.dataset.precision, one.dataset.card].filter(Boolean).join(", ");
      found.set(name, [...(found.get(name) || []), one]);
    }
    if (found.size < 2) return;
    const row = document.createElement("p");
    row.className = "lines";
    row.append("Show");
    for (const [name, drawn] of found) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const hid = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!hid));
        drawn.forEach((one) => one.classList.toggle("hid", hid));
        all("svg.chart", panels).filter((one) => one.querySelector("g[data-step]")).forEach(closeUp);
      });
      row.append(button);
    }
    panels.before(row);
  };
  all(".panels").forEach(lines);
  if (filters) {
    filters.hidden = false;
    filters.addEventListener("change", show);
  }
  const units = { s: 1, ms: 1e-3, GiB: 1024, MiB: 1 };
  const worth = (cell) => {
    const said = (cell.querySelector("bdi") || cell).textContent.replace(/,/g, "").trim();
    const found = /^(-?\d+(?:\.\d+)?)(?: (s|ms|GiB|MiB)\b)?/.exec(said);
    return found ? Number(found[1]) * (units[found[2]] || 1) : said.toLowerCase();
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
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [worth(row.cells[column]), row]);
        rows.sort((a, b) => (up ? 1 : -1) * order(a[0], b[0]));
        body.append(...rows.map((pair) => pair[1]));
      });
    });
  }
})();
