// The page of the cluster: asks tokd for its numbers every two seconds and draws them.
//
// What programs and peers say of themselves is never taken for HTML: it goes into the page as the text of a node.
'use strict';

const kEvery = 2000;    // ms
const kHistory = 150;   // points of a chart
const kShortest = 10;   // seconds that a chart shows at least
const kLowest = 1024;   // bytes at the top of a chart, at least

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

// `columns`: [title, of a row to text or an element, class or of a row to class, of a row to the part of the cell that is filled]
function fill(table, columns, rows) {
  const head = element('tr');
  for (const [title, , kind] of columns) head.append(element('th', title, typeof kind === 'string' ? kind : ''));
  const lines = rows.map((row) => {
    const line = element('tr');
    for (const [, text, kind, part] of columns) {
      const cell = element('td', undefined, typeof kind === 'function' ? kind(row) : kind);
      cell.append(text(row));
      if (kind === 'long') cell.title = cell.textContent;
      if (part) cell.style.setProperty('--part', 100 * Math.min(1, part(row)) + '%');
      line.append(cell);
    }
    return line;
  });
  table.replaceChildren(head, ...lines);
}

// Steps from one tick to the next that are round in binary units, and the unit in which all of them are whole.
const kSteps = Array.from({length: 50}, (_, power) => 2 ** power);
function ticks(values, step, unit) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(step) / 10));
  return values.map((value) => value === 0 ? '0' : value / 1024 ** power + ' ' + units[power] + unit);
}

// Of bytes, or of bytes a second where `unit` says so.
class Chart {
  constructor(id, names, unit) {
    const shown = (v) => bytes(v) + unit;
    this.at = byId(id);
    this.data = [[], ...names.map(() => [])];
    const colors = ['#2f6fde', '#e8590c', '#2b8a3e', '#9c36b5', '#0c8599', '#c2255c'];
    const quiet = getComputedStyle(document.body).getPropertyValue('--quiet');
    const line = getComputedStyle(document.body).getPropertyValue('--line');
    const axis = {stroke: quiet, grid: {stroke: line, width: 1}, ticks: {stroke: line, width: 1}};
    this.plot = new uPlot({
      width: this.at.clientWidth, height: 200,
      series: [{}, ...names.map((name, i) => ({label: name, stroke: colors[i], width: 1.5, value: (_, v) => v === null ? '' : shown(v)}))],
      axes: [axis, {...axis, size: 76, incrs: kSteps, values: (_, values, axisIndex, space, step) => ticks(values, step, unit)}],
      // What there is, and no more: of one point some seconds.
      scales: {
        x: {range: () => {
          const first = this.data[0][0] || Date.now() / 1000, last = this.data[0][this.data[0].length - 1] || first;
          return [Math.min(first, last - kShortest), last];
        }},
        y: {range: (_, low, high) => [0, Math.max(high || 0, kLowest) * 1.05]},
      },
    }, this.data, this.at);
    addEventListener('resize', () => this.plot.setSize({width: this.at.clientWidth, height: 200}));
  }
  add(values) {
    [Date.now() / 1000, ...values].forEach((value, i) => this.data[i].push(value));
    if (this.data[0].length > kHistory) this.data.forEach((series) => series.shift());
    this.plot.setData(this.data);
  }
}

const memory = new Chart('memory', ['used', 'created here', 'capacity'], '');
const protocols = ['eager', 'read', 'write'];
const transfers = new Chart('transfers', [...protocols.map((p) => 'in, ' + p), ...protocols.map((p) => 'out, ' + p)],
                            '/s');

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

const seenBefore = new Map();  // of each node its numbers of two moments

// Bytes per second, over the node's own time: a view that is shown twice has the same rates. One that was started again begins from nothing.
function rate(node, total) {
  const {now, before} = seenBefore.get(node);
  if (!now || !before) return '';
  const restarted = now.uptime_milliseconds < before.uptime_milliseconds || now[total] < before[total];
  const from = restarted ? {uptime_milliseconds: 0, [total]: 0} : before;
  return bytes(1000 * (now[total] - from[total]) / Math.max(1, now.uptime_milliseconds - from.uptime_milliseconds)) + '/s';
}

function noteNumbers(nodes) {
  for (const {node, numbers} of nodes) {
    const seen = seenBefore.get(node) || {};
    const is_new = numbers.uptime_milliseconds !== undefined && (!seen.now || numbers.uptime_milliseconds !== seen.now.uptime_milliseconds);
    seenBefore.set(node, is_new ? {now: numbers, before: seen.now} : seen);
  }
  const names = new Set(nodes.map(({node}) => node));
  for (const name of seenBefore.keys()) if (!names.has(name)) seenBefore.delete(name);
}

function standing(row) {
  if (row.state !== 'alive') return `${row.state}, seen ${Math.floor(row.unheard_seconds)} s ago`;
  return row.numbers.draining ? 'draining' : row.numbers.fenced ? 'fenced' : row.numbers.directory_away ? 'directory away' : row.state;
}

function nameOf(row) {
  if (!row.page) return row.node + (row.is_this ? ' (this)' : '');
  const link = element('a', row.node);
  link.href = row.page;
  return link;
}

function memoryOf(row) {
  const {store_used_bytes: used, store_capacity_bytes: capacity} = row.numbers;
  const text = element('span', used === undefined ? '' : bytes(used));
  text.append(element('span', used === undefined ? bytes(row.capacity_bytes) : ' of ' + bytes(capacity), 'middle'));
  return text;
}

function showNodes({located, nodes}) {
  noteNumbers(nodes);
  nodes.sort((a, b) => a.node.localeCompare(b.node, 'en', {numeric: true}));
  const known = (row) => row.numbers.store_used_bytes !== undefined;
  const ifKnown = (row, text) => known(row) ? text(row.numbers) : '';
  const sum = (name) => nodes.filter(known).reduce((all, row) => all + row.numbers[name], 0);
  const states = ['alive', 'suspected', 'silent'].map((state) => [nodes.filter((row) => row.state === state).length, state])
      .filter(([count]) => count > 0).map(([count, state]) => `${count} ${state}`).join(', ');
  byId('cluster').textContent = `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}: ${states} · ${bytes(sum('store_used_bytes'))} of ` +
      `${bytes(sum('store_capacity_bytes'))} in use` + (located ? '' : ' · the directory is away: these are the nodes that it named last');
  fill(byId('nodes'), [
    ['node', nameOf, 'long'], ['state', standing, (row) => 'words ' + (standing(row) === row.state ? row.state : row.state === 'alive' ? 'suspected' : row.state)],
    ['memory in use', memoryOf, 'number part memory', (row) => known(row) ? row.numbers.store_used_bytes / Math.max(1, row.numbers.store_capacity_bytes) : 0],
    ['objects', (row) => ifKnown(row, (n) => String(n.store_sealed_objects)), 'number middle'],
    ['in', (row) => rate(row.node, 'pulled_bytes_total'), 'number'], ['out', (row) => rate(row.node, 'served_bytes_total'), 'number'],
    ['pulls', (row) => ifKnown(row, (n) => String(n.pulls_running)), 'number wide'],
    ['programs', (row) => ifKnown(row, (n) => String(n.clients)), 'number wide'],
    ['address', (row) => row.address, 'wide'], ['device', (row) => row.device, 'long wide'],
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
    ['object', (row) => row.name || row.id, 'id'], ['size', (row) => bytes(row.bytes), 'number'], ['uses', (row) => String(row.uses), 'number part heat', (row) => row.heat],
    ['uses/s', (row) => row.rate.toFixed(1), 'number middle'], ['pins', (row) => String(row.pins), 'number middle'],
    ['age', (row) => time(row.age_seconds), 'number'], ['origin', (row) => row.origin, 'words'],
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
