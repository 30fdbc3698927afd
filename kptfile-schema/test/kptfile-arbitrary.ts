import fc from 'fast-check';
import { parse } from 'yaml';
import type { KptfileEdit } from '../index.ts';

/** Draws a number from 0 to `below - 1`. */
type Draw = (below: number) => number;

const TEXTS = [
  'plain',
  'two words',
  'true',
  '10',
  '1.10',
  '0x1F',
  '2020-01-01',
  '1:30',
  'null',
  '~',
  'yes',
  '',
  'a: b',
  'with # hash',
  'ends:',
  "it's",
  'a "quote"',
  '- dash',
  '{brace}',
  '[x], y',
  '*star',
  '&and',
  '!bang',
  '%percent',
  '@at',
  '`tick',
  '#hash',
  ' leading',
  'trailing ',
  'tab\tinside',
  'é – 中 😀',
  'line one\nline two',
  'line one\n\n  indented\nend\n',
  'back\\slash',
  'https://example.com/a?b=c#d',
  'next\u0085line\u2028separator',
  'ghcr.io/example/set-labels:v0.2.0@sha256:00',
];
const TYPES = ['Checked', 'True', 'nephio.org.Specializer.specialize', 'req.nephio.org/v1alpha1.Interface.n3', 'a: b'];
const KEYS = ['a', 'b.example.com/c', 'true', 'z z', '10'];
const COMMENTS = ['# note', '# - image: old', '#', '# kpt-set: name'];

type Tree = string | number | readonly Tree[] | { readonly [key: string]: Tree };

/** A Kptfile as a user might have written it: any indentation, quotes, comments, styles and line breaks. */
export const messyKptfile: fc.Arbitrary<string> = fc.gen().map((g) => {
  const draw: Draw = (below) => g(fc.nat, { max: below - 1 });
  return write(kptfileTree(draw), draw);
});

/** One edit; types and keys are those that messyKptfile uses, so that many edits meet something. */
export const anyEdit: fc.Arbitrary<KptfileEdit> = fc
  .gen()
  .map((g) => drawnEdit((below) => g(fc.nat, { max: below - 1 })));

function pick<Item>(items: readonly Item[], draw: Draw): Item {
  return items[draw(items.length)] as Item;
}

/** True once in `times`; smaller counterexamples have less of what a chance decides. */
function chance(times: number, draw: Draw): boolean {
  return draw(times) === times - 1;
}

function maybe(draw: Draw, fields: { [key: string]: () => Tree }): { [key: string]: Tree } {
  const result: { [key: string]: Tree } = {};
  for (const [key, field] of Object.entries(fields)) if (!chance(3, draw)) result[key] = field();
  return result;
}

function some<Item>(draw: Draw, item: () => Item): Item[] {
  return Array.from({ length: draw(4) }, item);
}

function kptfileTree(draw: Draw): { [key: string]: Tree } {
  const text = (): Tree => pick(TEXTS, draw);
  const map = (): Tree => Object.fromEntries(some(draw, () => [pick(KEYS, draw), text()]));
  const git = (): Tree => maybe(draw, { repo: text, directory: text, ref: text });
  const step = (): Tree =>
    maybe(draw, { image: text, exitCode: () => 1, results: () => some(draw, () => ({ message: text() })) });
  const condition = (): Tree => ({
    ...maybe(draw, { message: text, reason: text }),
    status: pick(['True', 'False', 'Unknown', 'true'], draw),
    type: pick(TYPES, draw),
    ...(chance(6, draw) ? { lastTransitionTime: text() } : {}),
  });
  const list = (): Tree =>
    some(draw, () => ({
      image: text(),
      ...maybe(draw, { configMap: map, selectors: () => some(draw, () => ({ kind: text() })) }),
    }));
  return {
    apiVersion: 'kpt.dev/v1',
    kind: 'Kptfile',
    ...maybe(draw, {
      metadata: () => ({ name: 'package', ...maybe(draw, { labels: map, annotations: map }) }),
      upstream: () => ({ type: 'git', git: git() }),
      upstreamLock: () => ({ type: 'git', git: git() }),
      info: () =>
        maybe(draw, {
          description: text,
          keywords: () => some(draw, text),
          readinessGates: () => some(draw, () => ({ conditionType: pick(TYPES, draw) })),
          title: text,
        }),
      pipeline: () => maybe(draw, { mutators: list, validators: list }),
      extra: map,
      status: () =>
        maybe(draw, {
          conditions: () => some(draw, condition),
          renderStatus: () => ({ mutationSteps: some(draw, step) }),
        }),
    }),
  };
}

function write(tree: { [key: string]: Tree }, draw: Draw): string {
  const lines: string[] = [];
  if (chance(8, draw)) lines.push('---');
  if (chance(6, draw)) lines.push(`{${flowEntries(tree, draw)}}`);
  else writeMapping(tree, 0, '', lines, draw);
  if (chance(6, draw)) lines.push('# the end');
  const lineBreak = chance(4, draw) ? '\r\n' : '\n';
  const bom = chance(8, draw) ? '\uFEFF' : '';
  return bom + lines.join('\n').replaceAll('\n', lineBreak) + (chance(3, draw) ? '' : lineBreak);
}

/** `lead` is what the first line begins with instead of indentation: the dash of a list item. */
function writeMapping(
  tree: { readonly [key: string]: Tree },
  column: number,
  lead: string,
  lines: string[],
  draw: Draw,
): void {
  let first = lead;
  for (const [name, value] of Object.entries(tree)) {
    if (first === '' && chance(8, draw)) lines.push(`${' '.repeat(column)}${pick(COMMENTS, draw)}`);
    if (first === '' && chance(12, draw)) lines.push('');
    const key = chance(8, draw) ? JSON.stringify(name) : scalar(name, draw, true);
    writeValue(value, `${first === '' ? ' '.repeat(column) : first}${key}:`, column, lines, draw);
    first = '';
  }
}

function writeValue(value: Tree, start: string, column: number, lines: string[], draw: Draw): void {
  const comment = chance(6, draw) ? ` ${pick(COMMENTS, draw)}` : '';
  if (typeof value === 'number') {
    lines.push(`${start} ${value}${comment}`);
    return;
  }
  if (typeof value === 'string') {
    const body = value.endsWith('\n') ? value.slice(0, -1) : value;
    if (/^[^\s\t].*\n/.test(value) && !/[\t\u0085\u2028]| \n| $/.test(value) && !chance(3, draw)) {
      const indent = ' '.repeat(column + 1 + draw(4));
      lines.push(`${start} |${value.endsWith('\n') ? '' : '-'}${comment}`);
      for (const line of body.split('\n')) lines.push(line === '' ? '' : indent + line);
      return;
    }
    lines.push(`${start} ${scalar(value, draw)}${comment}`);
    return;
  }
  const entries = Object.entries(value);
  if (entries.length === 0) {
    const empty = Array.isArray(value) ? ' []' : ' {}';
    lines.push(`${start}${pick([empty, empty, '', ' null', ' ~'], draw)}${comment}`);
    return;
  }
  if (chance(6, draw)) {
    lines.push(`${start} ${flow(value, draw)}${comment}`);
    return;
  }
  lines.push(start + comment);
  if (Array.isArray(value)) {
    const dash = column + draw(3);
    const gap = ' '.repeat(1 + (chance(5, draw) ? 2 : 0));
    for (const item of value as readonly Tree[]) {
      if (chance(8, draw)) lines.push(`${' '.repeat(dash)}${pick(COMMENTS, draw)}`);
      const lead = `${' '.repeat(dash)}-${gap}`;
      if (typeof item !== 'object') lines.push(lead + flow(item, draw));
      else if (Object.keys(item).length === 0 || chance(8, draw)) lines.push(lead + flow(item, draw));
      else writeMapping(item as { [key: string]: Tree }, dash + 1 + gap.length, lead, lines, draw);
    }
  } else {
    writeMapping(value as { [key: string]: Tree }, column + 1 + draw(4), '', lines, draw);
  }
  if (chance(8, draw)) lines.push(`${' '.repeat(column + draw(4))}${pick(COMMENTS, draw)}`);
}

function flow(value: Tree, draw: Draw): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return scalar(value, draw, true);
  if (Array.isArray(value)) return `[${value.map((item: Tree) => flow(item, draw)).join(', ')}]`;
  return `{${flowEntries(value as { [key: string]: Tree }, draw)}}`;
}

function flowEntries(value: { readonly [key: string]: Tree }, draw: Draw): string {
  const blank = chance(3, draw) ? ' ' : '';
  const entries = Object.entries(value).map(([key, field]) => `${scalar(key, draw, true)}: ${flow(field, draw)}`);
  return `${blank}${entries.join(', ')}${blank}`;
}

/** A text plain, where another YAML reader understands it so, or in one of the two kinds of quotes. */
function scalar(value: string, draw: Draw, flowOrKey = false): string {
  const style = 2 - draw(3);
  const fits = flowOrKey ? /^[\w./ -]+$/.test(value) : !/[\n\u0085\u2028]/.test(value);
  if (style === 0 && fits && readsAs(value)) return value;
  if (style === 1 && !/[\n\t\u0085\u2028]/.test(value)) return `'${value.replaceAll("'", "''")}'`;
  return JSON.stringify(value).replaceAll('\u0085', '\\u0085').replaceAll('\u2028', '\\u2028');
}

function readsAs(value: string): boolean {
  try {
    const read: unknown = parse(`key: ${value}`, { schema: 'failsafe', logLevel: 'silent' });
    return value !== '' && !/^(?:null|~|[%@`].*)$/.test(value) && (read as { key?: unknown }).key === value;
  } catch {
    // Not a plain scalar for this reader; the caller quotes it.
    return false;
  }
}

function drawnEdit(draw: Draw): KptfileEdit {
  const text = (): string => pick(TEXTS, draw);
  const type = pick(TYPES, draw);
  const key = pick(KEYS, draw);
  const list = pick(['mutators', 'validators'] as const, draw);
  const git = { repo: text(), directory: text(), ref: text() };
  const edits: readonly (() => KptfileEdit)[] = [
    () => {
      const status = pick(['True', 'False', 'Unknown'] as const, draw);
      const rest = { ...(chance(2, draw) ? { reason: text() } : {}), ...(chance(2, draw) ? { message: text() } : {}) };
      return { op: 'setCondition', condition: { type, status, ...rest } };
    },
    () => ({ op: 'removeCondition', type }),
    () => ({ op: 'addGate', conditionType: type }),
    () => ({ op: 'removeGate', conditionType: type }),
    () => ({ op: 'setLabel', key, value: text() }),
    () => ({ op: 'removeLabel', key }),
    () => ({ op: 'setAnnotation', key, value: text() }),
    () => ({ op: 'removeAnnotation', key }),
    () => ({ op: 'setName', name: text() || 'name' }),
    () => ({ op: 'setInfo', field: pick(['description', 'site', 'man'] as const, draw), value: text() }),
    () => ({ op: 'setInfo', field: 'description' }),
    () => ({ op: 'setInfo', field: 'keywords', value: some(draw, text) }),
    () => ({ op: 'setUpstream', upstream: { type: 'git', git } }),
    () => ({ op: 'setUpstream' }),
    () => ({ op: 'setUpstreamLock', upstreamLock: { type: 'git', git: { ...git, commit: text() } } }),
    () => ({ op: 'setUpstreamLock', upstreamLock: { type: 'generic', generic: { storeID: text() } } }),
    () => ({ op: 'addFunction', list, function: { image: text(), configMap: { [key]: text() } } }),
    () => ({ op: 'addFunction', list, index: 0, function: { exec: text(), selectors: [{ kind: text() }] } }),
    () => ({ op: 'removeFunction', list, index: draw(3) }),
    () => ({
      op: 'setRenderStatus',
      renderStatus: { mutationSteps: [{ image: text(), exitCode: draw(3), stderr: text() }] },
    }),
    () => ({ op: 'setRenderStatus' }),
  ];
  return pick(edits, draw)();
}
