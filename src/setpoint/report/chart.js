// A chart: axes in inline SVG, as wide as its host, and the two functions from values to pixels.

const SVG = 'http://www.w3.org/2000/svg';
let charts = 0;

function node(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function element(name, attributes, parent, text) {
  const made = document.createElement(name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function roundStep(width, about) {
  const rough = width / about, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= rough * 0.999);
}

function ticks(low, high, about) {
  const step = roundStep(high - low, about), found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return { values: found, step };
}

const digits = (step) => Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
const percentTick = (step) => (v) => `${(100 * Math.abs(v)).toFixed(digits(100 * step))}%`;
const plainTick = (step) => (v) => v.toFixed(Math.min(digits(step), 12));

const ratio = (part, all) => (all > 0 ? part / all : 0);
const whole = (v) => Math.round(v).toLocaleString('en-US');
// With 4 digits; a threshold may need more to decide the same rows, and 0 stands for all digits.
const number = (v, most = 4) => (most === 4 ? rounded(v) : String(most ? Number(v.toPrecision(most)) : v));
const rounded = (v) => (v === 0 ? '0' : Math.abs(v) >= 1e6 || Math.abs(v) < 1e-4 ? v.toExponential(3) : String(Number(v.toPrecision(4))));
const percent = (v) => `${v === 0 || Math.abs(v) >= 0.001 ? (100 * v).toFixed(2) : Number((100 * v).toPrecision(2))}%`;
const shown = (share, v) => (share ? percent(v) : number(v));

// options: x and y [low, high], xName, yName, xShare, yShare, ratio (height / width), label (for those who cannot see it)
function makeChart(host, options) {
  host.replaceChildren();
  const width = Math.max(host.clientWidth, 200);
  const height = Math.round(Math.min(Math.max(width * (options.ratio || 0.72), 190), 400));
  const edge = { left: 54, right: 22, top: 10, bottom: 42 };
  const [x0, x1] = options.x, [y0, y1] = options.y;
  const right = width - edge.right, floor = height - edge.bottom;
  const x = (v) => edge.left + (v - x0) / (x1 - x0) * (right - edge.left);
  const y = (v) => floor - (v - y0) / (y1 - y0) * (floor - edge.top);
  const svg = node('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': options.label }, host);
  const clip = `clip-${++charts}`;
  node('rect', { x: edge.left, y: edge.top, width: right - edge.left, height: floor - edge.top },
    node('clipPath', { id: clip }, svg));
  const xTicks = ticks(x0, x1, width < 420 ? 5 : 7), yTicks = ticks(y0, y1, options.yTicks || 5);
  const xText = (options.xShare ? percentTick : plainTick)(xTicks.step);
  const yText = (options.yShare ? percentTick : plainTick)(yTicks.step);
  for (const v of xTicks.values) {
    node('line', { class: 'gridline', x1: x(v), x2: x(v), y1: edge.top, y2: floor }, svg);
    node('text', { x: x(v), y: floor + 17, 'text-anchor': 'middle' }, svg, xText(v));
  }
  for (const v of yTicks.values.filter((v) => options.yFrom === undefined || v >= options.yFrom - 1e-9)) {
    node('line', { class: 'gridline', x1: edge.left, x2: right, y1: y(v), y2: y(v) }, svg);
    node('text', { x: edge.left - 7, y: y(v) + 4, 'text-anchor': 'end' }, svg, yText(v));
  }
  node('line', { class: 'axis', x1: edge.left, x2: right, y1: floor, y2: floor }, svg);
  node('text', { x: (edge.left + right) / 2, y: height - 6, 'text-anchor': 'middle' }, svg, options.xName);
  node('text', { x: 0, y: 0, 'text-anchor': 'middle', transform: `translate(11 ${(edge.top + floor) / 2}) rotate(-90)` }, svg, options.yName);
  const plot = node('g', { 'clip-path': `url(#${clip})` }, svg);
  return { svg, plot, x, y, width, height, left: edge.left, right, top: edge.top, floor, options };
}

const inside = (chart, vx, vy) => {
  const [x0, x1] = chart.options.x, [y0, y1] = chart.options.y, e = 1e-9;
  return vx >= x0 - e && vx <= x1 + e && vy >= y0 - e && vy <= y1 + e;
};

function line(chart, xs, ys, attributes) {
  let path = '';
  for (let i = 0; i < xs.length; i++) {
    if (ys[i] === null) continue;
    path += `${path ? 'L' : 'M'}${chart.x(xs[i]).toFixed(1)} ${chart.y(ys[i]).toFixed(1)}`;
  }
  return node('path', { ...attributes, d: path }, chart.plot);
}
