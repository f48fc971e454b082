// The page of the cluster: asks tokd for its numbers every two seconds and draws them.
//
// What programs and peers say of themselves is never taken for HTML: it goes into the page as the text of a node.
'use strict';

const kEvery = 2000;    // ms
const kHistory = 150;   // points of a chart

const byId = (id) => document.getElementById(id);

function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; Math.abs(n) >= 1024 && unit + 1 < units.length; ++unit) n /= 1024;
  return (n >= 100 || unit === 0 ? n.toFixed(0) : n.toFixed(1)) + ' ' + units[unit];
}

function time(seconds) {
  if (seconds === null) return '';
  if (seconds < 1e-3) return (seconds * 1e6).toFixed(0) + ' µs';
  if (seconds < 1) return (seconds * 1e3).toPrecision(3) + ' ms';
  if (seconds < 120) return seconds.toFixed(0) + ' s';
  if (seconds < 7200) return (seconds / 60).toFixed(0) + ' min';
  return (seconds / 3600).toFixed(1) + ' h';
}

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// `columns`: [title, of a row to text, class]
function fill(table, columns, rows) {
  const head = element('tr');
  for (const [title, , kind] of columns) head.append(element('th', title, kind));
  const lines = rows.map((row) => {
    const line = element('tr');
    for (const [, text, kind] of columns) {
      const cell = element('td', text(row), kind);
      if (kind === 'long') cell.title = text(row);
      if (kind === 'number heat') cell.style.setProperty('--heat', 100 * row.heat + '%');
      line.append(cell);
    }
    return line;
  });
  table.replaceChildren(head, ...lines);
}

class Chart {
  constructor(id, names, unit) {
    this.at = byId(id);
    this.data = [[], ...names.map(() => [])];
    const colors = ['#2f6fde', '#e8590c', '#2b8a3e', '#9c36b5', '#0c8599', '#c2255c'];
    const quiet = getComputedStyle(document.body).getPropertyValue('--quiet');
    const line = getComputedStyle(document.body).getPropertyValue('--line');
    const axis = {stroke: quiet, grid: {stroke: line, width: 1}, ticks: {stroke: line, width: 1}};
    this.plot = new uPlot({
      width: this.at.clientWidth, height: 200,
      series: [{}, ...names.map((name, i) => ({label: name, stroke: colors[i], width: 1.5, value: (_, v) => v === null ? '' : unit(v)}))],
      axes: [axis, {...axis, size: 76, values: (_, values) => values.map(unit)}],
      scales: {y: {range: (_, low, high) => [0, Math.max(high || 0, 1) * 1.05]}},
    }, this.data, this.at);
    addEventListener('resize', () => this.plot.setSize({width: this.at.clientWidth, height: 200}));
  }
  add(values) {
    [Date.now() / 1000, ...values].forEach((value, i) => this.data[i].push(value));
    if (this.data[0].length > kHistory) this.data.forEach((series) => series.shift());
    this.plot.setData(this.data);
  }
}

const memory = new Chart('memory', ['used', 'created here', 'capacity'], bytes);
const protocols = ['eager', 'read', 'write'];
const transfers = new Chart('transfers', [...protocols.map((p) => 'in, ' + p), ...protocols.map((p) => 'out, ' + p)],
                            (n) => bytes(n) + '/s');

// The time within which `part` of the gets were answered, as far as the histogram says.
function quantile(counts, bounds, part) {
  const all = counts.reduce((a, b) => a + b, 0);
  let seen = 0;
  for (let i = 0; i < counts.length; ++i) {
    seen += counts[i];
    if (seen >= part * all) return i < bounds.length ? '≤ ' + time(bounds[i]) : '> ' + time(bounds[bounds.length - 1]);
  }
  return '';
}

let last = null;

function showNode(node) {
  const now = performance.now() / 1000;
  byId('node').textContent = `${node.node} · ${node.device} · directory: ${node.directory} · version ${node.version} · up ${time(node.uptime_seconds)}`;
  byId('state').textContent = node.why_not_ready || 'ready';
  byId('state').className = node.why_not_ready ? 'bad' : '';
  const store = node.store;
  const cards = [
    ['memory', `${bytes(store.used_bytes)} of ${bytes(store.capacity_bytes)}`], ['objects', store.sealed_objects],
    ['of these pinned', store.pinned_objects], ['programs', node.clients], ['pulls running', node.pulls_running],
    ['taken by peers', node.pins_of_peers], ['in quarantine', bytes(store.quarantined_bytes)],
  ].map(([what, value]) => {
    const card = element('div', undefined, 'card');
    card.append(element('b', String(value)), element('span', what));
    return card;
  });
  byId('cards').replaceChildren(...cards);
  memory.add([store.used_bytes, store.kept_bytes, store.capacity_bytes]);
  if (last) {
    const rate = (name) => protocols.map((p) => Math.max(0, node[name][p] - last.node[name][p]) / (now - last.now));
    transfers.add([...rate('came_bytes'), ...rate('left_bytes')]);
  }
  const bounds = node.latency_bounds_seconds;
  const sum = (counts) => counts.reduce((a, b) => a + b, 0);
  fill(byId('latency'), [
    ['by', (row) => row.protocol], ['size up to', (row) => row.size_up_to === null ? 'any' : bytes(row.size_up_to)],
    ['gets', (row) => String(sum(row.counts)), 'number'], ['mean', (row) => time(row.seconds / sum(row.counts)), 'number'],
    ['half', (row) => quantile(row.counts, bounds, 0.5), 'number'], ['99 %', (row) => quantile(row.counts, bounds, 0.99), 'number'],
  ], node.latency.filter((row) => sum(row.counts) > 0));
  fill(byId('programs'), [
    ['program', (row) => row.program, 'long'], ['being written', (row) => bytes(row.unsealed_bytes), 'number'],
    ['pinned', (row) => bytes(row.pinned_bytes), 'number'], ['kept', (row) => bytes(row.kept_bytes), 'number'],
  ], node.programs);
  last = {node, now};
}

function showNodes(nodes) {
  fill(byId('nodes'), [
    ['node', (row) => row.node + (last && row.node === last.node.node ? ' (this)' : ''), 'long'], ['address', (row) => row.address],
    ['device', (row) => row.device, 'long'], ['memory', (row) => bytes(row.capacity_bytes), 'number'],
  ], nodes);
}

const usedBefore = new Map();

function showObjects(report) {
  const now = performance.now() / 1000;
  for (const object of report.objects) {
    const before = usedBefore.get(object.id);
    object.rate = before && now > before.now ? Math.max(0, object.uses - before.uses) / (now - before.now) : 0;
    object.heat = object.uses / Math.max(1, report.objects[0].uses);
  }
  usedBefore.clear();
  for (const object of report.objects) usedBefore.set(object.id, {uses: object.uses, now});
  byId('seen').textContent = `of ${report.seen} objects that were looked at`;
  fill(byId('objects'), [
    ['object', (row) => row.id, 'long'], ['size', (row) => bytes(row.bytes), 'number'], ['uses', (row) => String(row.uses), 'number heat'],
    ['uses/s', (row) => row.rate.toFixed(1), 'number'], ['pins', (row) => String(row.pins), 'number'],
    ['age', (row) => time(row.age_seconds), 'number'], ['origin', (row) => row.origin],
  ], report.objects);
}

async function ask(path, show) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(5000)});
  if (!answer.ok) throw new Error((await answer.text()).trim());
  show(await answer.json());
}

async function turn() {
  const parts = await Promise.allSettled([ask('/api/node', showNode), ask('/api/nodes', showNodes), ask('/api/objects', showObjects)]);
  const failed = parts.find((part) => part.status === 'rejected');
  if (failed) {
    byId('state').textContent = failed.reason.message;
    byId('state').className = 'bad';
  }
  document.body.dataset.turns = Number(document.body.dataset.turns || 0) + 1;
  setTimeout(turn, document.hidden ? 5 * kEvery : kEvery);
}

turn();
