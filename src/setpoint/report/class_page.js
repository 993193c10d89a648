// The page of several classes: the shift of one class moves, and the table of each class and the counts follow.

const data = JSON.parse(document.getElementById('data').textContent);
const find = (id) => document.getElementById(id);
const state = { part: 0, shifted: data.first, place: 0 };
const slider = find('shift'), size = data.classes.length;
const cuts = () => data.parts[state.part].cuts[state.shifted];

// The table at a step of the slider: the first one, and all changes up to there.
function tableAt(cut, place) {
  const table = [...cut.first];
  cut.changes.slice(0, place).forEach((step) => step.forEach(([cell, n]) => { table[cell] += n; }));
  return table;
}

function showClasses(table, shifts) {
  const body = find('classes').tBodies[0], all = table.reduce((sum, n) => sum + n, 0);
  body.replaceChildren();
  data.classes.forEach((name, k) => {
    const rows = table.slice(k * size, (k + 1) * size).reduce((sum, n) => sum + n, 0), hits = table[k * size + k];
    const given = data.classes.reduce((sum, _, j) => sum + table[j * size + k], 0);
    const [low, high] = clopperPearson(hits, rows);
    const row = element('tr', { 'data-class': name, ...(k === state.shifted ? { class: 'asked' } : {}) }, body);
    element('th', { scope: 'row' }, row, name);
    const texts = [whole(rows), percent(ratio(hits, rows)), `${percent(low)} to ${percent(high)}`, percent(ratio(hits, given)), percent(ratio(given, all)), number(shifts[k], data.digits)];
    texts.forEach((text) => element('td', { class: 'n' }, row, text));
  });
}

function showCounts(table) {
  find('confusion').querySelectorAll('tbody td').forEach((cell, i) => { cell.textContent = whole(table[i]); });
}

function showBounds(cut) {
  find('bounds').replaceChildren();
  data.bounds.forEach((bound, i) => {
    const holds = cut.holds[i][state.place] === '1';
    element('span', { class: holds ? 'holds' : 'broken', 'data-holds': holds }, find('bounds'),
      `${bound.text} ${holds ? 'holds' : 'is broken'}, at ${shown(bound.share, cut.values[i][state.place])}`);
  });
}

function update() {
  const cut = cuts(), shifts = [...data.own], value = shown(data.objective.share, cut.objective[state.place]);
  shifts[state.shifted] = cut.shifts[state.place];
  const table = tableAt(cut, state.place);
  showClasses(table, shifts);
  showCounts(table);
  showBounds(cut);
  slider.value = state.place;
  find('shift-value').textContent = number(shifts[state.shifted], data.digits);
  find('objective-value').textContent = value;
  slider.setAttribute('aria-valuetext', `${number(shifts[state.shifted], data.digits)}, ${data.objective.name} ${value}`);
  find('back').disabled = state.place === cut.own;
}

// After a change of class or rows: other cuts, and the run's own shift among them.
function select() {
  const cut = cuts();
  slider.max = cut.shifts.length - 1;
  state.place = cut.own;
  find('steps').textContent = cut.shifts.length < cut.cuts
    ? `Of ${whole(cut.cuts)} different cuts the slider holds ${whole(cut.shifts.length)}, all of them near the run's own; the counts at each are exact.`
    : `The slider holds all ${whole(cut.cuts)} different cuts of these rows.`;
  find('rows').textContent = data.parts[state.part].name;
  update();
}

data.classes.forEach((name, k) => { element('option', { value: k }, find('shifted'), name); });
find('shifted').value = state.shifted;
find('shifted').addEventListener('change', (event) => { state.shifted = Number(event.target.value); select(); });
slider.addEventListener('input', () => { state.place = Number(slider.value); update(); });
find('back').addEventListener('click', () => { state.place = cuts().own; update(); });
data.parts.forEach((part, i) => {
  const label = element('label', {}, find('part')), radio = element('input', { type: 'radio', name: 'part', value: i }, label);
  radio.checked = i === 0;
  label.append(part.name);
  radio.addEventListener('change', () => { state.part = i; select(); });
});
find('part').hidden = data.parts.length < 2;
find('controls').hidden = false;
select();
