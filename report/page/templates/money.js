"use strict";
// The figures of report/money.py, from the numbers that it wrote: a test holds the two together.
function money(n) {
  const INPUTS = ["life_years", "utilisation", "electricity_price", "pue", "residual_share", "host_price",
    "host_watts"];
  const YEAR = 8760, WEEK = 168, Z975 = 1.959963984540054, STREAMS = 4, NONE = [0, 0, 0];
  const many = n.cards.length, each = Array.from({ length: n.draws }, (_, d) => d);
  const sum = values => values.reduce((total, one) => total + one, 0);

  const uniform = stream => {
    const salt = Math.imul(stream + 1, 0x85EBCA77);
    return each.map(d => {
      let bits = Math.imul(d + 1, 0x9E3779B1) ^ salt;
      bits = Math.imul(bits ^ bits >>> 16, 0x21F0AAAD);
      bits = Math.imul(bits ^ bits >>> 15, 0x735A2D97);
      return (((bits ^ bits >>> 15) >>> 0) + 0.5) / 4294967296;
    });
  };
  const triangular = ([low, best, high], stream) => {
    if (high === low) return each.map(() => best);
    const span = high - low;
    return uniform(stream).map(u => u * span < best - low
      ? low + Math.sqrt(u * span * (best - low)) : high - Math.sqrt((1 - u) * span * (high - best)));
  };
  const spread = (low, high, stream) => {
    if (low === 0 && high === 0) return each.map(() => 1);
    const v = uniform(stream + 1);
    return uniform(stream).map((u, d) => {
      const z = Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * v[d]);
      return Math.exp((z < 0 ? -low : high) * z / Z975);
    });
  };
  const quantile = (sorted, share) => {
    const place = (sorted.length - 1) * share, at = Math.floor(place);
    return sorted[at] + (sorted[Math.min(at + 1, sorted.length - 1)] - sorted[at]) * (place - at);
  };
  const summary = (drawn, best) => {
    const sorted = Float64Array.from(drawn).sort();
    return [Math.min(quantile(sorted, 0.025), best), best, Math.max(quantile(sorted, 0.975), best)];
  };

  const best = Object.fromEntries(INPUTS.map(name => [name, n.inputs[name][1]]));
  const columns = INPUTS.map((name, s) => triangular(n.inputs[name], s));
  const all = each.map(d => Object.fromEntries(INPUTS.map((name, s) => [name, columns[s][d]])));
  const owning = p => (1 - p.residual_share) / (p.life_years * YEAR * p.utilisation);
  const running = (p, watts) => (watts + p.host_watts) * p.pue * p.electricity_price / 1000;
  const hourlyAt = (p, rented, price, watts) =>
    rented ? price : (price + p.host_price) * owning(p) + running(p, watts);
  const priceFor = (p, rented, hourly, watts) =>
    rented ? hourly : (hourly - running(p, watts)) / owning(p) - p.host_price;
  const ofCard = (i, values, place) => triangular(values, INPUTS.length + STREAMS * i + place);

  const byRow = i => {
    if (!n.cards[i].fits) return null;
    const over = n.speed[i][n.hours_on];
    if (n.rows.some((row, k) => row.hours > 0 && !over[k])) return null;
    const found = n.rows.map((row, k) => over[k] ? row.hours * over[k][1] : 0);
    return sum(found) > 0 ? found : null;
  };
  const rowHours = n.cards.map((_, i) => byRow(i));
  const hoursOf = rowHours.map(found => found && sum(found));
  const watts = rowHours.map((hours, i) => {
    const known = n.cards[i].watts;
    if (!hours || hours.some((share, k) => share > 0 && !known[k])) return null;
    return [0, 1, 2].map(at => sum(hours.map((share, k) =>
      share > 0 ? share / sum(hours) * known[k][at] : 0)));
  });
  const pair = (i, j) => {
    const one = rowHours[i], other = rowHours[j];
    if (!one || !other) return null;
    if (i === j) return each.map(() => 1);
    let low = 0, high = 0;
    n.rows.forEach((_, k) => {
      const factor = n.speed[i][j][k], weight = (one[k] / hoursOf[i] + other[k] / hoursOf[j]) / 2;
      if (factor && weight > 0) {
        low += weight * Math.log(factor[0] / factor[1]);
        high += weight * Math.log(factor[2] / factor[1]);
      }
    });
    const stream = INPUTS.length + STREAMS * many + 2 * (Math.min(i, j) * many + Math.max(i, j));
    const around = i < j ? spread(low, high, stream) : spread(-high, -low, stream).map(one => 1 / one);
    return around.map(factor => hoursOf[i] / hoursOf[j] * factor);
  };
  const hourly = (i, power) => {
    const card = n.cards[i];
    if (!card.price || (!power && !card.rented)) return null;
    const price = ofCard(i, card.price, 0), drawn = ofCard(i, power || NONE, 1);
    return {
      best: hourlyAt(best, card.rented, card.price[1], (power || NONE)[1]),
      drawn: each.map(d => hourlyAt(all[d], card.rented, price[d], drawn[d])),
    };
  };
  const hour = n.cards.map((_, i) => hourly(i, watts[i]));
  const cost = n.cards.map((_, i) => hour[i] && hoursOf[i] !== null ? hour[i].best * hoursOf[i] : null);
  const order = n.cards.map((_, i) => i).filter(i => cost[i] !== null)
    .sort((a, b) => cost[a] - cost[b] || a - b);
  const first = order.length ? order[0] : null;

  const count = i => {
    const card = n.cards[i], limits = n.limits;
    if (!card.fits) return 0;
    const most = [limits.cards, limits.slots].filter(limit => limit !== null);
    if (limits.budget !== null && card.price) {
      const price = card.rented ? card.price[1] * best.life_years * YEAR * best.utilisation
        : card.price[1] + best.host_price;
      most.push(Math.floor(limits.budget / price));
    }
    if (limits.watts !== null && card.board_watts !== null && !card.rented)
      most.push(Math.floor(limits.watts / (card.board_watts + best.host_watts)));
    return most.length ? Math.min(...most) : null;
  };
  const row = (i, k) => {
    const card = n.cards[i], seconds = card.seconds[k], power = card.watts[k];
    if (!seconds || !card.fits) return { cost: null, joules: null, week: null };
    const own = spread(Math.log(seconds[0] / seconds[1]), Math.log(seconds[2] / seconds[1]),
      INPUTS.length + STREAMS * i + 2).map(factor => seconds[1] * factor);
    const paid = hourly(i, power), drawn = power && ofCard(i, power, 1);
    return {
      cost: paid && summary(own.map((s, d) => paid.drawn[d] * s / 3600), paid.best * seconds[1] / 3600),
      joules: power && summary(own.map((s, d) => drawn[d] * s), power[1] * seconds[1]),
      week: summary(own.map((s, d) => WEEK * 3600 * all[d].utilisation / s),
        WEEK * 3600 * best.utilisation / seconds[1]),
    };
  };
  const breakEven = (i, j) => {
    const card = n.cards[i], time = pair(i, j);
    if (!hour[j] || !time || (!watts[i] && !card.rented)) return null;
    const power = watts[i] || NONE, drawn = ofCard(i, power, 1);
    return summary(time.map((t, d) => priceFor(all[d], card.rented, hour[j].drawn[d] / t, drawn[d])),
      priceFor(best, card.rented, hour[j].best * hoursOf[j] / hoursOf[i], power[1]));
  };
  const against = i => {
    const other = first === i ? order[1] : first;
    return other === undefined || other === null ? null : breakEven(i, other);
  };
  const ratio = i => {
    if (cost[i] === null) return null;
    if (i === first) return [1, 1, 1];
    return summary(pair(i, first).map((t, d) => hour[i].drawn[d] / hour[first].drawn[d] * t),
      cost[i] / cost[first]);
  };
  const energy = i => {
    if (first === null || i === first || !watts[i] || !watts[first]) return null;
    const mine = ofCard(i, watts[i], 1), least = ofCard(first, watts[first], 1);
    return summary(pair(i, first).map((t, d) => mine[d] / least[d] * t),
      watts[i][1] / watts[first][1] * hoursOf[i] / hoursOf[first]);
  };
  const card = (_, i) => {
    const rows = n.rows.map((_, k) => row(i, k)), fits = count(i), hours = hoursOf[i];
    if (hours === null) return {
      count: fits, hours: null, hourly: null, cost: null, kwh: null, week: null, ratio: null, energy: null,
      break_even: null, rows,
    };
    const took = pair(i, n.hours_on), paid = hour[i], power = watts[i];
    const drawn = took ? took.map(t => t * hoursOf[n.hours_on]) : each.map(() => hours);
    const cards = WEEK * (fits === null ? 1 : fits), used = power && ofCard(i, power, 1);
    return {
      count: fits,
      hours: summary(drawn, hours),
      hourly: paid && summary(paid.drawn, paid.best),
      cost: paid && summary(drawn.map((h, d) => paid.drawn[d] * h), paid.best * hours),
      kwh: power && summary(drawn.map((h, d) => (used[d] + all[d].host_watts) * all[d].pue * h / 1000),
        (power[1] + best.host_watts) * best.pue * hours / 1000),
      week: summary(drawn.map((h, d) => cards * all[d].utilisation / h), cards * best.utilisation / hours),
      ratio: ratio(i),
      energy: energy(i),
      break_even: against(i),
      rows,
    };
  };
  return { cards: n.cards.map(card), order };
}

(() => {
  const source = typeof document === "undefined" ? null : document.getElementById("money-numbers");
  const form = source && document.getElementById("money-fields");
  if (!form) return;
  const filed = JSON.parse(source.textContent);
  const all = path => [...document.querySelectorAll(path)];
  const fields = all("input[data-set]");

  const grouped = (value, places) =>
    value.toFixed(places).replace(/^(-?\d+)/, whole => whole.replace(/\B(?=(\d{3})+$)/g, ","));
  const number = value => {
    if (value === 0) return "0";
    const power = Math.floor(Math.log10(Math.abs(value)));
    if (Math.abs(value) < 1000) return grouped(value, Math.min(Math.max(0, 2 - power), 6));
    const unit = 10 ** Math.max(0, power - 3);
    return grouped(Math.round(value / unit) * unit, 0);
  };
  const times = value => Math.abs(value) < 100 ? value.toFixed(2) : grouped(value, 0);
  const write = (value, form) =>
    form === "count" ? grouped(value, 0) : form === "times" ? times(value)
      : form === "price" && value <= 0 ? "no price" : number(value);
  const between = ([low, , high], form) => {
    if (low === high) return "";
    const ends = form === "price" ? [Math.max(low, 0), Math.max(high, 0)] : [low, high];
    return ends.map(end => write(end, form === "price" ? "number" : form)).join(" to ");
  };

  const answerOf = (n, found) => {
    const [first, second] = found.order, named = i => `the ${n.cards[i].name}`;
    if (first === undefined) return "No card's cost is known for this mix.";
    if (second === undefined) return `Only ${named(first)} can be priced for this mix.`;
    const [low, best, high] = found.cards[second].ratio;
    const said = `${times(best)} times as much as ${named(first)}`;
    const range = `${times(low)} to ${times(high)}`;
    return low <= 1 ? `No difference shown: for this mix ${named(second)} costs ${said} (${range}).`
      : `The ${n.cards[first].name} costs least for this mix: ${named(second)} costs ${said} (${range}).`;
  };
  const turnOf = (n, found) => found.order.length < 2 ? "" : found.order.slice(0, 2).map(i => {
    const card = n.cards[i], turn = found.cards[i].break_even;
    if (!turn) return "";
    if (turn[1] <= 0) return `The ${card.name} wins at no price.`;
    const range = between(turn, "price"), unit = n.currency + (card.rented ? " an hour" : "");
    return `The ${card.name} wins below ${write(turn[1], "price")} ${unit}${range ? ` (${range})` : ""}.`;
  }).filter(Boolean).join(" ");

  const set = (n, path, value) => {
    const steps = path.split("."), last = steps.pop();
    const place = steps.reduce((at, step) => at[step], n), old = place[last];
    if (!Array.isArray(old)) place[last] = value;
    else if (value !== old[1]) place[last] = old[1] > 0 ? old.map(one => one * value / old[1]) : [value, value, value];
  };
  const perThousand = values => values && values[0] > 0 ? values.map(one => 1000 / one).reverse() : null;
  const derive = (n, found) => {
    for (const card of found.cards) {
      card.mixes = perThousand(card.cost);
      card.per_mwh = perThousand(card.kwh);
      card.rows.forEach((row, k) => { row.epoch = row.cost && row.cost.map(one => one / n.epochs[k]); });
    }
  };
  const show = () => {
    for (const one of fields) {
      const free = one.dataset.set.startsWith("cards.") && Number(one.value) === 0;
      one.setCustomValidity(free || one.value === "" ? "a number above 0" : "");
    }
    if (fields.some(one => !one.checkValidity())) return;
    const n = JSON.parse(source.textContent);
    for (const one of fields) set(n, one.dataset.set, Number(one.value));
    const found = money(n);
    derive(n, found);
    for (const cell of all("[data-money]")) {
      const value = cell.dataset.money.split(".").reduce((at, step) => at[step], found);
      const [main, beneath] = cell.querySelectorAll("bdi"), form = cell.dataset.form;
      const plain = value === null || typeof value === "number";
      main.textContent = value === null ? "–" : write(plain ? value : value[1], form);
      beneath.textContent = plain ? "" : between(value, form);
    }
    for (const one of all("[data-say]"))
      one.textContent = one.dataset.say === "answer" ? answerOf(n, found) : turnOf(n, found);
    document.getElementById("money-changed").hidden = JSON.stringify(n) === JSON.stringify(filed);
  };
  form.hidden = false;
  form.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(show));
  window.showMoney = show;
})();
