// The drawings: ROC and precision-recall, the histogram, reliability, history.

const DASHES = ['', '7 4', '2 3', '9 3 2 3', '4 2', '1 4'];
const AXES = { fpr: ['roc', 'x'], recall: ['roc', 'y', 'pr', 'x'], precision: ['pr', 'y'] };

function curvePoints(rows) {
  const points = rows.threshold.map((_, i) => ({
    place: i,
    fpr: ratio(rows.fp[i], rows.negatives),
    recall: ratio(rows.tp[i], rows.positives),
    precision: rows.tp[i] + rows.fp[i] > 0 ? rows.tp[i] / (rows.tp[i] + rows.fp[i]) : null,
  }));
  return points;
}

function drawLimits(chart, kind, limits) {
  const [x0, x1] = chart.options.x, [y0, y1] = chart.options.y;
  for (const limit of limits) {
    const places = AXES[limit.axis];
    for (let i = 0; i < places.length; i += 2) {
      if (places[i] !== kind) continue;
      const flat = places[i + 1] === 'y', at = limit.at, low = flat ? y0 : x0, high = flat ? y1 : x1;
      if (limit.broken) {
        const from = limit.broken > 0 ? Math.max(at, low) : low, to = limit.broken > 0 ? high : Math.min(at, high);
        const box = flat
          ? { x: chart.left, width: chart.right - chart.left, y: chart.y(to), height: Math.max(chart.y(from) - chart.y(to), 0) }
          : { x: chart.x(from), width: Math.max(chart.x(to) - chart.x(from), 0), y: chart.top, height: chart.floor - chart.top };
        if (from < to) node('rect', { class: 'shade', ...box }, chart.plot);
      }
      const ends = flat
        ? { x1: chart.left, x2: chart.right, y1: chart.y(at), y2: chart.y(at) }
        : { x1: chart.x(at), x2: chart.x(at), y1: chart.top, y2: chart.floor };
      node('line', { class: 'limit', ...ends }, chart.plot);
    }
  }
}

// A mark of the slider: a disc for the highest handle, a diamond for one below it.
const MARKS = { disc: 'M-5.5 0A5.5 5.5 0 1 1 5.5 0A5.5 5.5 0 1 1 -5.5 0Z', diamond: 'M0 -7L7 0L0 7L-7 0Z' };
const markOf = (data, h) => (h === data.handles.length - 1 ? MARKS.disc : MARKS.diamond);

// One of the two curve charts; gives back a function that moves the marks to places of the selected contender.
function drawCurve(host, kind, data, state, onPick) {
  const part = data.parts[state.part].key, near = data.view[part], zoomed = state.zoom === 'near';
  const [xKey, yKey] = kind === 'roc' ? ['fpr', 'recall'] : ['recall', 'precision'];
  const name = kind === 'roc' ? 'ROC curves' : 'Precision-recall curves';
  const chart = makeChart(host, {
    x: zoomed ? near[xKey] : [0, 1], y: zoomed ? near[yKey] : [0, 1], xShare: true, yShare: true,
    xName: xKey, yName: yKey, ratio: 0.78,
    label: `${name} of ${data.contenders.map((c) => c.name).join(', ')} on the ${data.parts[state.part].name} rows`,
  });
  drawLimits(chart, kind, data.limits);
  if (kind === 'roc' && !zoomed) line(chart, [0, 1], [0, 1], { class: 'curve faint' });
  const all = data.contenders.map((c) => curvePoints(c.parts[part]));
  for (let i = all.length - 1; i >= 0; i--) {
    const points = all[i].filter((p) => p[yKey] !== null);
    line(chart, points.map((p) => p[xKey]), points.map((p) => p[yKey]),
      { class: i === 0 ? 'curve ours' : 'curve', 'stroke-dasharray': DASHES[i % DASHES.length] });
  }
  for (let i = all.length - 1; i >= 0; i--) {
    for (const place of data.contenders[i].parts[part].own) {
      const p = all[i][place];
      if (p[yKey] !== null && inside(chart, p[xKey], p[yKey])) {
        node('circle', { class: i === 0 ? 'own ours' : 'own', r: 4.5, cx: chart.x(p[xKey]), cy: chart.y(p[yKey]) }, chart.svg);
      }
    }
  }
  const marks = data.handles.map((handle, h) => ({
    handle,
    down: node('line', { class: 'cross' }, chart.svg),
    across: node('line', { class: 'cross' }, chart.svg),
    here: node('path', { class: 'here', d: markOf(data, h) }, chart.svg),
  }));
  const away = node('text', { x: chart.right - 6, y: chart.floor - 8, 'text-anchor': 'end', class: 'strong' }, chart.svg);
  chart.svg.addEventListener('click', (event) => {
    const box = chart.svg.getBoundingClientRect(), scale = chart.width / box.width;
    const px = (event.clientX - box.left) * scale, py = (event.clientY - box.top) * scale;
    let best = null, nearest = 40 ** 2;
    for (const p of all[state.contender]) {
      if (p[yKey] === null) continue;
      const distance = (chart.x(p[xKey]) - px) ** 2 + (chart.y(p[yKey]) - py) ** 2;
      if (distance < nearest) { nearest = distance; best = p.place; }
    }
    if (best !== null) onPick(best);
  });
  return (places) => {
    const lost = [];
    marks.forEach(({ handle, down, across, here }, h) => {
      const p = all[state.contender][places[h]], there = p[yKey] !== null && inside(chart, p[xKey], p[yKey]);
      for (const mark of [here, down, across]) mark.setAttribute('visibility', there ? 'visible' : 'hidden');
      if (!there) lost.push(p[yKey] === null ? handle.empty : `the ${handle.cut} lies outside this view`);
      if (!there) return;
      const cx = chart.x(p[xKey]), cy = chart.y(p[yKey]);
      for (const [mark, ends] of [[here, { transform: `translate(${cx} ${cy})`, 'data-x': cx, 'data-y': cy }],
        [down, { x1: cx, x2: cx, y1: cy, y2: chart.floor }], [across, { x1: chart.left, x2: cx, y1: cy, y2: cy }]]) {
        for (const key in ends) mark.setAttribute(key, ends[key]);
      }
    });
    away.textContent = lost.join('; ');
  };
}

// Positives upwards, negatives downwards, each as a share of its class; gives back a function that moves the cuts.
function drawHistogram(host, data, state, onPick) {
  const rows = data.contenders[state.contender].parts[data.parts[state.part].key], h = rows.histogram;
  const bins = h.positives.length, width = (h.high - h.low) / bins;
  const up = h.positives.map((n) => ratio(n, rows.positives)), down = h.negatives.map((n) => ratio(n, rows.negatives));
  const chart = makeChart(host, {
    x: [h.low, h.high], y: [-1.16 * Math.max(...down), 1.16 * Math.max(...up)], yShare: true, ratio: 0.34,
    xName: data.margins ? 'margin (score - threshold of the group)' : 'score', yName: 'share of class',
    label: `Histogram of scores: ${rows.positives} positives upwards, ${rows.negatives} negatives downwards`,
  });
  const cut = `cut-${charts}`, two = data.handles.length > 1;
  const band = two ? node('rect', { class: 'band', y: chart.top, height: chart.floor - chart.top }, chart.plot) : null;
  const sides = ['left', ...(two ? ['between'] : []), 'right'].map((side) => {
    const box = node('rect', { y: 0, height: chart.height }, node('clipPath', { id: `${cut}-${side}` }, chart.svg));
    const group = node('g', { 'clip-path': `url(#${cut}-${side})` }, chart.plot);
    for (let i = 0; i < bins; i++) {
      const x = chart.x(h.low + i * width) + 0.5, w = chart.x(h.low + width) - chart.x(h.low) - 1, zero = chart.y(0);
      const bars = [[up[i], 'pos', chart.y(up[i]), zero - chart.y(up[i])], [down[i], 'neg', zero, chart.y(-down[i]) - zero]];
      for (const [share, kind, y, height] of bars) {
        if (share > 0) node('rect', { class: `${kind} ${side}`, x, y, width: w, height: Math.max(height, 0.75) }, group);
      }
    }
    return box;
  });
  node('line', { class: 'axis', x1: chart.left, x2: chart.right, y1: chart.y(0), y2: chart.y(0) }, chart.plot);
  const place = (v) => Math.min(Math.max(chart.x(v), chart.left), chart.right);
  for (const i of rows.own) {
    const x = place(rows.threshold[i]);
    node('line', { class: 'own-rule', x1: x, x2: x, y1: chart.top, y2: chart.floor }, chart.svg);
  }
  node('text', { class: 'strong', x: chart.left + 8, y: chart.top + 12 }, chart.svg, 'positives');
  node('text', { class: 'strong', x: chart.left + 8, y: chart.floor - 8 }, chart.svg, 'negatives');
  const rules = data.handles.map(() => node('line', { class: 'rule', y1: chart.top, y2: chart.floor }, chart.svg));
  const named = two ? node('text', { class: 'strong', y: chart.top + 12, 'text-anchor': 'middle' }, chart.svg, 'review') : null;
  chart.svg.addEventListener('click', (event) => {
    const box = chart.svg.getBoundingClientRect(), px = (event.clientX - box.left) * chart.width / box.width;
    const distance = (i) => Math.abs(chart.x(rows.threshold[i]) - px);
    onPick(rows.threshold.reduce((best, _, i) => (distance(i) < distance(best) ? i : best), 0), (i) => rows.threshold[i]);
  });
  const stretch = (box, from, to) => { box.setAttribute('x', from); box.setAttribute('width', to - from); };
  return (places) => {
    const xs = places.map((i) => place(rows.threshold[i])), ends = [0, ...xs, chart.width];
    rules.forEach((rule, h) => { rule.setAttribute('x1', xs[h]); rule.setAttribute('x2', xs[h]); });
    sides.forEach((box, i) => stretch(box, ends[i], ends[i + 1]));
    if (!two) return;
    stretch(band, xs[0], xs[1]);
    named.setAttribute('x', (xs[0] + xs[1]) / 2);
    named.setAttribute('visibility', xs[1] - xs[0] > 46 ? 'visible' : 'hidden');
  };
}

function drawReliability(host, rows, name, ours) {
  const chart = makeChart(host, {
    x: [0, 1], y: [-0.22, 1], xShare: true, yShare: true, ratio: 0.78, yFrom: 0, yTicks: 7,
    xName: 'mean predicted probability', yName: 'share positive',
    label: `Reliability of ${name}: ${rows.map((r) => `${percent(r.mean)} predicted, ${percent(r.share)} observed in ${r.n} rows`).join('; ')}`,
  });
  const kind = ours ? ' ours' : '', most = Math.max(...rows.map((r) => r.n)), tall = 0.55 * (chart.floor - chart.y(0));
  for (const r of rows) {
    const bin = Math.min(Math.floor(r.mean * 10), 9), x = chart.x(bin / 10) + 2, height = Math.max(tall * r.n / most, 1);
    const w = chart.x(0.1) - chart.x(0) - 4;
    node('rect', { class: 'bin', x, width: w, y: chart.floor - height, height }, chart.plot);
    node('text', { class: 'small', x: x + w / 2, y: chart.floor - height - 3, 'text-anchor': 'middle' }, chart.svg,
      r.n < 10000 ? whole(r.n) : `${whole(r.n / 1000)}k`);
  }
  line(chart, [0, 1], [0, 1], { class: 'curve faint' });
  line(chart, rows.map((r) => r.mean), rows.map((r) => r.share), { class: `curve${kind}`, 'stroke-width': 1.5 });
  for (const r of rows) {
    const x = chart.x(r.mean);
    node('line', { class: `whisker${kind}`, x1: x, x2: x, y1: chart.y(r.low), y2: chart.y(r.high) }, chart.plot);
    node('circle', { class: `dot${kind}`, r: 4, cx: x, cy: chart.y(r.share) }, chart.svg);
  }
}

function drawHistory(host, contender, quantity) {
  const rows = contender.history, keys = [['soft', 'soft'], ['train', 'train'], ['held_out', 'held-out']];
  const values = rows.flatMap((r) => keys.map(([key]) => r[key])).filter((v) => v !== null);
  const low = Math.min(...values), high = Math.max(...values), room = 0.05 * (high - low) || 0.01;
  const chart = makeChart(host, {
    x: [rows[0].epoch, rows[rows.length - 1].epoch], y: [low - room, high + room], yShare: quantity.share, ratio: 0.62,
    xName: 'epoch', yName: quantity.name, label: `${quantity.name} by epoch of ${contender.name}: soft, train and held-out`,
  });
  const best = contender.best === null ? null : rows[contender.best];
  if (best) {
    const x = chart.x(best.epoch);
    node('line', { class: 'own-rule', x1: x, x2: x, y1: chart.top, y2: chart.floor }, chart.plot);
  }
  for (const member of new Set(rows.map((r) => r.member))) {
    const own = rows.filter((r) => r.member === member);
    for (const [key] of keys) {
      line(chart, own.map((r) => r.epoch), own.map((r) => r[key]),
        { class: `curve${key === 'held_out' ? ' ours' : key === 'soft' ? ' soft' : ''}` });
    }
  }
  if (best && best.held_out !== null) {
    node('circle', { class: 'own ours', r: 4.5, cx: chart.x(best.epoch), cy: chart.y(best.held_out) }, chart.svg);
  }
}
