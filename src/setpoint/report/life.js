// The life of a run: the rate and the evidence of each bound, and drift, look by look.

const life = JSON.parse(document.getElementById('data').textContent);
const looks = life.looks.map((look) => look.number);
const span = [0.5, Math.max(life.entries, 1) + 0.5];

function restarts(chart) {
  for (const at of life.restarts) node('line', { class: 'own-rule', x1: chart.x(at), x2: chart.x(at), y1: chart.top, y2: chart.floor }, chart.plot);
}

function level(chart, value) {
  node('line', { class: 'limit', x1: chart.left, x2: chart.right, y1: chart.y(value), y2: chart.y(value) }, chart.svg);
}

// Lines end at a recertification, where the counts begin anew.
function pieces(chart, xs, ys, attributes) {
  let from = 0;
  for (const at of [...life.restarts, Infinity]) {
    let to = from;
    while (to < xs.length && xs[to] < at) to++;
    if (to > from) line(chart, xs.slice(from, to), ys.slice(from, to), attributes);
    from = to;
  }
}

function dots(chart, xs, ys, kind) {
  xs.forEach((x, i) => node('circle', { class: `dot ${kind}`, cx: chart.x(x), cy: chart.y(ys[i]), r: 2.5 }, chart.plot));
}

function drawBound(host, bound, place) {
  const own = life.looks.map((look) => look.bounds[place]);
  const figure = element('div', { class: 'pair' }, host);
  const [left, right] = ['rate', 'evidence'].map((name) => {
    const part = element('figure', {}, figure);
    element('figcaption', {}, part, `${bound.name}: ${name}`);
    return element('div', { class: 'chart' }, part);
  });
  const rates = own.map((one) => one.rate);
  const top = Math.min(1, Math.max(bound.bound * 1.5, ...rates.map((r) => r * 1.3), ...own.slice(Math.floor(own.length / 3)).map((one) => one.high), 1e-6));
  const low = bound.upper ? 0 : Math.max(0, Math.min(bound.bound - (1 - bound.bound), ...own.slice(Math.floor(own.length / 3)).map((one) => one.low)));
  const chart = makeChart(left, { x: span, y: [low, bound.upper ? top : 1], xName: 'entry of the record', yName: 'rate', yShare: true, label: `${bound.name}: the rate at each look` });
  own.forEach((one, i) => node('line', { class: 'whisker', x1: chart.x(looks[i]), x2: chart.x(looks[i]), y1: chart.y(one.low), y2: chart.y(one.high) }, chart.plot));
  pieces(chart, looks, rates, { class: 'curve ours' });
  dots(chart, looks, rates, 'ours');
  level(chart, bound.bound);
  restarts(chart);
  const against = own.map((one) => one.against), favour = own.map((one) => one.favour);
  const most = 1.05 * Math.max(bound.limit + 1, ...against, ...favour), least = Math.min(-1, ...against, ...favour);
  const second = makeChart(right, { x: span, y: [least, most], xName: 'entry of the record', yName: 'log10 of the e-value', label: `${bound.name}: the evidence at each look` });
  pieces(second, looks, favour, { class: 'curve' });
  pieces(second, looks, against, { class: 'curve ours' });
  dots(second, looks, against, 'ours');
  level(second, bound.limit);
  restarts(second);
  legend(host, [['evidence against', 'curve ours'], ['evidence for', 'curve']]);
}

function legend(host, kinds) {
  const made = element('p', { class: 'legend' }, host);
  for (const [name, kind] of kinds) {
    const part = element('span', {}, made);
    node('path', { class: kind, d: 'M0 6H26' }, node('svg', { width: 26, height: 12, 'aria-hidden': 'true' }, part));
    part.append(name);
  }
}

function draw() {
  const host = document.getElementById('bounds');
  host.replaceChildren();
  life.bounds.forEach((bound, place) => drawBound(host, bound, place));
  const seen = life.drift, at = seen.map((one) => one.number);
  const tops = seen.flatMap((one) => [one.scores, one.feature]);
  const chart = makeChart(document.getElementById('drift'), { x: span, y: [Math.min(-1, ...tops), 1.05 * Math.max(2, ...tops)], xName: 'entry of the record', yName: 'log10 of the e-value', ratio: 0.35, label: 'The evidence of drift at each look' });
  pieces(chart, at, seen.map((one) => one.feature), { class: 'curve' });
  pieces(chart, at, seen.map((one) => one.scores), { class: 'curve ours' });
  dots(chart, at, seen.map((one) => one.scores), 'ours');
  level(chart, life.driftLimit);
  restarts(chart);
  const below = document.getElementById('drift-legend');
  below.replaceChildren();
  legend(below, [['scores', 'curve ours'], ['the feature that moved most', 'curve']]);
}

draw();
let waiting = 0;
addEventListener('resize', () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(draw); });
