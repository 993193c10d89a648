// The page: what is selected, and everything that changes when a handle of the slider moves.

const data = JSON.parse(document.getElementById('data').textContent);
// `places` has the place of each handle among the thresholds, from the lowest handle to the highest.
const state = { contender: 0, part: 0, places: [], zoom: 'near' };
const find = (id) => document.getElementById(id);
const sliders = data.handles.map((handle) => find(handle.key));
let movers = [];

const rowsNow = () => data.contenders[state.contender].parts[data.parts[state.part].key];
// Rows above the highest handle are flagged, rows between two handles reviewed: tp, fp, fn, tn, and those reviewed.
function countsAt(rows, places) {
  const low = places[0], high = places[places.length - 1];
  return [rows.tp[high], rows.fp[high], rows.positives - rows.tp[low], rows.negatives - rows.fp[low],
    rows.tp[low] - rows.tp[high], rows.fp[low] - rows.fp[high]];
}
// The places of the handles at each of the run's own decisions: an area has many thresholds, a band has two at once.
const ownPlaces = (rows) => (sliders.length > 1 ? [[...rows.own].sort((a, b) => a - b)] : rows.own.map((place) => [place]));
const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0);

// The value of a quantity from counts, and where it is k of n rows, k, n and the interval.
function measure(quantity, counts, values) {
  if (!quantity.part) return { value: values };
  const k = dot(quantity.part, counts), n = dot(quantity.whole, counts), value = ratio(k, n);
  if (!quantity.counted) return { value };
  const [low, high] = clopperPearson(k, n);
  return { value, k, n, low, high };
}

function put(host, text, value) {
  host.textContent = text;
  if (value !== undefined) host.dataset.value = value;
}

function showCounts(counts) {
  const words = ['found (tp)', 'false alarms (fp)', 'missed (fn)', 'left alone (tn)', 'reviewed', 'reviewed'];
  ['tp', 'fp', 'fn', 'tn', 'rp', 'rn'].forEach((name, i) => {
    if (!find(name)) return;
    put(find(name), whole(counts[i]), counts[i]);
    element('small', {}, find(name), words[i]);
  });
  const all = counts.reduce((sum, n) => sum + n, 0);
  const each = (n) => { const v = 1000 * n / all; return v > 0 && v < 10 ? v.toFixed(1) : whole(v); };
  const [tp, fp, fn, tn, rp, rn] = counts;
  const reviewed = sliders.length > 1 ? ` ${each(rp + rn)} are reviewed, of which ${each(rp)} are positive;` : '';
  put(find('plain'), `In 1,000 rows like these ${each(tp + fp)} are flagged, of which ${each(tp)} are positive and ${each(fp)} are false alarms;${reviewed} ${each(fn)} positives are missed.`);
  for (const [name, n] of [['tp-fp', tp + fp], ['rp-rn', rp + rn], ['fn-tn', fn + tn]]) {
    if (!find(name)) continue;
    put(find(name), whole(n), n);
    element('small', {}, find(name), percent(ratio(n, all)));
  }
}

function showRates(rows, counts) {
  const body = find('rates').tBodies[0];
  body.replaceChildren();
  return data.quantities.map((quantity) => {
    const m = measure(quantity, counts, (rows.values[quantity.name] || [])[state.places[0]]);
    const row = element('tr', quantity.asked ? { class: 'asked', 'data-name': quantity.name } : { 'data-name': quantity.name }, body);
    const head = element('th', { scope: 'row' }, row, quantity.name);
    if (quantity.means) element('small', {}, head, quantity.means);
    const value = element('td', { class: 'n value', 'data-value': m.value }, row, shown(quantity.share, m.value));
    if (m.k !== undefined) element('small', {}, value, `${whole(m.k)} of ${whole(m.n)}`);
    element('td', m.k === undefined ? { class: 'n' } : { class: 'n interval', 'data-low': m.low, 'data-high': m.high }, row,
      m.k === undefined ? '' : `${percent(m.low)} to ${percent(m.high)}`);
    return m;
  });
}

// Bounds that one threshold decides are told for each place; those of two handles follow from the value.
function holdsHere(rows, i, value) {
  if (rows.holds.length) return rows.holds[i][state.places[0]] === '1';
  const { most, least } = data.bounds[i];
  return (most === null || value <= most) && (least === null || value >= least);
}

function showBounds(rows, counts, measured) {
  find('bounds').replaceChildren();
  const [tp, fp, fn, tn] = counts, nearly = tp <= 0.05 * (tp + fn) || tn <= 0.05 * (fp + tn);
  data.bounds.forEach((bound, i) => {
    const quantity = data.quantities[bound.quantity], { value } = measured[bound.quantity], holds = holdsHere(rows, i, value);
    element('span', { class: holds ? (nearly ? 'doubtful' : 'holds') : 'broken', 'data-holds': holds }, find('bounds'),
      `${bound.text} ${holds ? 'holds' : 'is broken'}, at ${shown(quantity.share, value)}`);
  });
}

function showGroups(rows) {
  if (!rows.groups) return;
  const table = find('groups');
  table.replaceChildren();
  const head = element('tr', {}, element('thead', {}, table));
  ['group', 'rows', 'positives', ...(data.margins ? ['own threshold'] : []), ...data.group_rates.map((q) => q.name)].forEach((name, i) => {
    const cell = element('th', i ? { scope: 'col', class: 'n' } : { scope: 'col' }, head, name);
    const rate = data.group_rates.find((q) => q.name === name);
    if (rate && rate.means) element('small', {}, cell, rate.means);
  });
  const body = element('tbody', {}, table), seen = data.group_rates.map(() => []);
  const all = rows.groups.map((group) => data.group_rates.map((q) => measure(q, countsAt(group, state.places))));
  const top = data.group_rates.map((_, j) => Math.max(...all.map((each) => (each[j].n > 0 ? each[j].high : 0))) || 1);
  rows.groups.forEach((group, g) => {
    const row = element('tr', { 'data-group': group.name }, body);
    element('th', { scope: 'row' }, row, group.name);
    element('td', { class: 'n' }, row, whole(group.positives + group.negatives));
    element('td', { class: 'n' }, row, whole(group.positives));
    if (data.margins) element('td', { class: 'n' }, row, number(...ofGroup(group.name, rows)));
    data.group_rates.forEach((q, j) => {
      const m = all[g][j], cell = element('td', { class: 'n', 'data-rate': q.name, 'data-value': m.value, 'data-low': m.low, 'data-high': m.high }, row, m.n > 0 ? percent(m.value) : 'no rows');
      if (!(m.n > 0)) return;
      seen[j].push(m.value);
      const svg = node('svg', { viewBox: '0 0 100 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, cell), at = (v) => 2 + 96 * v / top[j];
      node('line', { class: 'gridline', x1: 0, x2: 100, y1: 6, y2: 6 }, svg);
      node('line', { class: 'whisker ours', x1: at(m.low), x2: at(m.high), y1: 6, y2: 6 }, svg);
      node('rect', { class: 'dot ours', x: at(m.value) - 1.5, width: 3, y: 2, height: 8 }, svg);
    });
  });
  const last = element('tr', { 'data-gaps': '' }, body);
  element('th', { scope: 'row', colspan: data.margins ? 4 : 3 }, last, 'largest difference');
  seen.forEach((values, j) => {
    const gap = values.length ? Math.max(...values) - Math.min(...values) : 0;
    element('td', { class: 'n', 'data-rate': data.group_rates[j].name, 'data-value': gap }, last, percent(gap));
  });
}

// The threshold of a group when all are moved, and the digits that it needs: as many as the larger of both needs.
function ofGroup(name, rows) {
  const { thresholds, digits } = data.contenders[state.contender], place = state.places[0], moved = rows.digits[place];
  return [thresholds[name] + rows.threshold[place], digits && moved && Math.max(digits, moved)];
}

// A threshold with as many digits as decide the rows in the same way.
const spelled = (rows, place) => number(rows.threshold[place], rows.digits[place]);

// The track of a slider with several handles: not flagged, reviewed, flagged.
function showTrack() {
  const track = find('track');
  if (!track) return;
  track.replaceChildren();
  const ends = [0, ...state.places.map((place) => 100 * ratio(place, Number(sliders[0].max))), 100];
  ['neg left', 'band full', 'pos'].forEach((kind, i) => {
    node('rect', { class: kind, x: `${ends[i]}%`, width: `${ends[i + 1] - ends[i]}%`, height: '100%' }, track);
  });
}

function update() {
  const rows = rowsNow(), counts = countsAt(rows, state.places);
  showTrack();
  showCounts(counts);
  const measured = showRates(rows, counts);
  showBounds(rows, counts, measured);
  showGroups(rows);
  const asked = data.quantities.map((q, i) => (q.asked ? `, ${q.name} ${shown(q.share, measured[i].value)}` : '')).join('');
  sliders.forEach((slider, h) => {
    const threshold = rows.threshold[state.places[h]];
    put(find(`${slider.id}-value`), spelled(rows, state.places[h]), threshold);
    slider.value = state.places[h];
    slider.setAttribute('aria-valuetext', `${spelled(rows, state.places[h])}${asked}`);
  });
  for (const button of find('own').querySelectorAll('button')) {
    const there = button.value === String(state.places), own = ownPlaces(rows)[0].map((place) => spelled(rows, place));
    if (data.own_names.length) button.setAttribute('aria-pressed', there);
    else button.disabled = there;
    if (!data.own_names.length) button.textContent = there ? data.words.here : `Back to the run's ${data.words.own}, ${own.join(' and ')}`;
  }
  for (const move of movers) move(state.places);
}

function moveTo(places) {
  state.places = places;
  update();
}

// One handle to a place, or as near to it as its neighbours let it go.
function moveHandle(h, place) {
  const places = [...state.places], low = h > 0 ? places[h - 1] : 0, high = h + 1 < places.length ? places[h + 1] : place;
  places[h] = Math.max(Math.min(place, high), low);
  moveTo(places);
}

// The nearest handle goes to a place that was clicked; of two handles that stand together, the one on that side.
function pick(place, at = (i) => i) {
  const away = state.places.map((here) => Math.abs(at(here) - at(place))), nearest = Math.min(...away);
  const h = place > state.places[0] ? away.lastIndexOf(nearest) : away.indexOf(nearest);
  moveHandle(h, place);
  return h;
}

function draw() {
  movers = [
    drawCurve(find('roc'), 'roc', data, state, pick),
    drawCurve(find('pr'), 'pr', data, state, pick),
    drawHistogram(find('histogram'), data, state, pick),
  ];
  const part = data.parts[state.part];
  find('reliability').querySelectorAll('.chart').forEach((host, i) => {
    drawReliability(host, data.contenders[i].parts[part.key].reliability, data.contenders[i].name, i === 0);
  });
  document.querySelectorAll('#history .chart').forEach((host) => drawHistory(host, data.contenders[Number(host.dataset.contender)], data.quantities[0]));
  update();
}

// After a change of solver or rows: other cuts, and the run's own threshold among them.
function select() {
  const rows = rowsNow(), part = data.parts[state.part], beyond = rows.histogram.beyond;
  for (const slider of sliders) slider.max = rows.threshold.length - 1;
  const own = find('own'), stands = ownPlaces(rows);
  state.places = stands[Math.floor((stands.length - 1) / 2)];
  own.replaceChildren();
  if (data.own_names.length) element('span', {}, own, data.own_title);
  stands.forEach((places, i) => {
    const button = element('button', { type: 'button', value: places }, own, data.own_names[i]);
    button.addEventListener('click', () => moveTo(places));
  });
  put(find('thinned'), rows.kept < rows.cuts
    ? `Of ${whole(rows.cuts)} different cuts the slider and the curves hold ${whole(rows.kept)}, all of them near the run's ${data.words.own}; the counts at each are exact.`
    : `The slider holds all ${whole(rows.cuts)} different cuts of these rows.`);
  put(find('part-note'), part.key === 'calibration'
    ? data.words.set : data.words.judged);
  put(find('histogram-title'), `${data.margins ? 'Margins' : 'Scores'} by class: ${data.words.zones}${beyond ? `; ${whole(beyond)} beyond the edges, in the outermost bins` : ''}`);
  draw();
}

function choices(id, names) {
  names.forEach((name, i) => {
    const label = element('label', {}, find(id)), radio = element('input', { type: 'radio', name: id, value: i }, label);
    radio.checked = i === 0;
    label.append(name);
    radio.addEventListener('change', () => { state[id] = i; select(); });
  });
  find(id).hidden = names.length < 2;
}

function legend() {
  const host = find('legend');
  const entry = (text, drawing) => {
    const span = element('span', {}, host);
    drawing(node('svg', { width: 26, height: 12, 'aria-hidden': 'true' }, span));
    span.append(text);
  };
  data.contenders.forEach((c, i) => entry(c.name, (svg) => {
    node('path', { class: i === 0 ? 'curve ours' : 'curve', 'stroke-dasharray': DASHES[i % DASHES.length], d: 'M0 6H26' }, svg);
  }));
  data.handles.forEach((handle, h) => entry(data.handles.length > 1 ? handle.cut : 'slider', (svg) => {
    node('path', { class: 'here', d: markOf(data, h), transform: 'translate(13 6) scale(.9)' }, svg);
  }));
  entry(data.words.own, (svg) => node('circle', { class: 'own ours', r: 4, cx: 13, cy: 6 }, svg));
  const shaded = new Set(data.limits.map((limit) => data.handles.at(limit.lower ? 0 : -1).cut)), by = data.handles.length > 1;
  for (const cut of shaded) {
    entry(!data.bounds.length ? 'outside the area' : by ? `bound broken by the ${cut}` : 'bound broken',
      (svg) => node('rect', { class: 'shade', width: 26, height: 12 }, svg));
  }
}

function start() {
  choices('contender', data.contenders.map((c) => c.name));
  choices('part', data.parts.map((p) => p.name));
  legend();
  data.contenders.forEach((contender) => {
    const reliability = element('figure', {}, find('reliability'));
    element('figcaption', {}, reliability, contender.name);
    element('div', { class: 'chart' }, reliability);
  });
  sliders.forEach((slider, h) => slider.addEventListener('input', () => moveHandle(h, Number(slider.value))));
  if (find('track')) {
    find('handles').addEventListener('click', (event) => {
      if (sliders.includes(event.target)) return;
      const box = find('track').getBoundingClientRect(), share = (event.clientX - box.left) / box.width;
      sliders[pick(Math.round(Math.min(Math.max(share, 0), 1) * Number(sliders[0].max)))].focus();
    });
  }
  for (const radio of find('zoom').querySelectorAll('input')) radio.addEventListener('change', () => { state.zoom = radio.value; draw(); });
  let width = 0;
  new ResizeObserver(() => {
    if (find('roc').clientWidth !== width) { width = find('roc').clientWidth; draw(); }
  }).observe(find('roc'));
  select();
}

start();
