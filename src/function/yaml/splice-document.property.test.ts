import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDocument, stringify } from 'yaml';
import { runs } from '../../../test/support/runs.ts';
import type { FieldPath } from '../resource/resource.ts';
import { Resource } from '../resource/resource.ts';
import { graftNode } from './graft-node.ts';
import { plainValue } from './node-value.ts';

/** Texts that are easily taken for something else, or need care where they are written. */
const text = fc.oneof(
  fc.constantFrom(
    'a',
    'b-c',
    'on',
    '12',
    '1e3',
    'null',
    '~',
    '',
    ' x',
    'x ',
    '#',
    'a #b',
    'a: b',
    '- a',
    '*a',
    '&a',
    '!a',
    '{',
    '[a',
    ',',
    "it's",
    '"q"',
    '%',
    '@',
    '`',
    '---',
    '...',
    '? a',
    '|',
    '>',
    'é\u2028x',
    '\t',
    'a\tb',
    '0x1F',
    '1_000',
    '12:30',
  ),
  fc.constantFrom(
    'one\ntwo\n',
    'one\n\n two',
    '\nlead',
    'end\n\n',
    '# no comment\nx\n',
    'tail \n x',
    '-\nx',
    '?\nx',
    ' \n\t\n',
  ),
  fc.string({ maxLength: 6 }),
  fc
    .string({ unit: 'binary', maxLength: 4 })
    .filter((value) => value.isWellFormed() && !/[\0-\x08\x0b-\x1f\x7f-\x9f\ufeff\ufffe\uffff]/.test(value)),
);
const scalar = fc.oneof(text, fc.integer({ min: -9, max: 999 }), fc.boolean(), fc.constant(null));
const name = fc.constantFrom('a', 'b', 'c', 'name', 'on', '12', 'x/y', 'a b', '__proto__');

const { value } = fc.letrec<{ value: unknown; map: Record<string, unknown>; list: unknown[] }>((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, scalar, tie('map'), tie('list')),
  map: fc.array(fc.tuple(name, tie('value')), { maxLength: 4 }).map((entries) => {
    const map = Object.create(null) as Record<string, unknown>;
    for (const [key, inner] of entries) map[key] = inner;
    return map;
  }),
  list: fc.array(tie('value'), { maxLength: 4 }),
}));

/** How a person may write it. */
const style = fc.record({
  indent: fc.constantFrom(2, 4),
  indentSeq: fc.boolean(),
  collectionStyle: fc.constantFrom('any' as const, 'any' as const, 'flow' as const),
  defaultStringType: fc.constantFrom('PLAIN' as const, 'QUOTE_SINGLE' as const, 'QUOTE_DOUBLE' as const),
  eol: fc.constantFrom('\n', '\r\n'),
  comments: fc.boolean(),
  start: fc.constantFrom('', '---\n', '# head\n\n', '\ufeff'),
});

/** A change at a place that numbers choose. */
const change = fc.record({
  steps: fc.array(fc.nat(5), { minLength: 1, maxLength: 4 }),
  key: name,
  action: fc.constantFrom('set' as const, 'add' as const, 'delete' as const, 'clone' as const),
  value,
});

function written(
  data: unknown,
  { eol, comments, start, ...options }: { eol: string; comments: boolean; start: string } & object,
): string {
  let body = stringify({ kind: 'A', data, end: 'x' }, { lineWidth: 0, aliasDuplicateObjects: false, ...options });
  // The library writes some texts so that it does not read them itself.
  fc.pre(parseDocument(body).errors.length === 0);
  // Behind a plain text on a line of its own.
  if (comments) body = body.replace(/^( *(?:- )?\w+: [a-z]+)$/gm, '$1   # about');
  return `${start}${body}`.replaceAll('\n', eol);
}

/** The path that numbers choose through what is there. */
function pathOf(resource: Resource, steps: readonly number[]): FieldPath {
  const path: (string | number)[] = ['data'];
  let at = resource.get(path);
  for (const step of steps) {
    if (typeof at !== 'object' || at === null) break;
    const keys = Array.isArray(at) ? [...at.keys()] : Object.keys(at);
    const key = keys[step % Math.max(1, keys.length)];
    if (key === undefined) break;
    path.push(key);
    at = resource.get(path);
  }
  return path;
}

function apply(
  resource: Resource,
  { steps, key, action, value: wanted }: { steps: number[]; key: string; action: string; value: unknown },
): Resource {
  if (action === 'clone') return resource.clone();
  const path = pathOf(resource, steps);
  const there = resource.get(path);
  if (action === 'delete') resource.delete(path);
  else if (action === 'set') resource.set(path, wanted);
  else if (Array.isArray(there)) resource.set([...path, there.length], wanted);
  else if (typeof there === 'object' && there !== null) resource.set([...path, key], wanted);
  return resource;
}

test('set and deleted values are read back, and other lines stay', () => {
  fc.assert(
    fc.property(value, style, fc.array(change, { maxLength: 6 }), (data, options, changes) => {
      const source = written(data, options);
      let resource = Resource.parse(source, { file: 'a.yaml', index: 0 });
      for (const one of changes) resource = apply(resource, one);
      const text = resource.toText();
      const again = Resource.parse(text, { file: 'a.yaml', index: 0 });
      expect(again.value).toEqual(resource.value);
      if (!resource.isChanged) expect(text).toBe(source);
      expect(text.startsWith(options.start.replaceAll('\n', options.eol))).toBe(true);
      const breaks = text.match(/\r?\n/g) ?? [];
      expect(new Set(breaks).size).toBeLessThanOrEqual(1);
      // Written once, nothing is left to do.
      expect(again.toText()).toBe(text);
    }),
    { numRuns: runs(1000) },
  );
});

test('a tree that gets the content of another one has that content', () => {
  fc.assert(
    fc.property(value, value, style, style, (mine, theirs, mineStyle, theirStyle) => {
      const sent = Resource.parse(written(mine, mineStyle), { file: 'a.yaml', index: 0 });
      const returned = Resource.parse(written(theirs, theirStyle), { file: 'b.yaml', index: 0 });
      const contents = graftNode(sent.clone().root, returned.root) as typeof sent.root;
      const taken = Resource.of(contents, { file: 'a.yaml', index: 0 }, sent);
      expect(taken.value).toEqual(Resource.parse(written(theirs, theirStyle), returned).value);
      expect(Resource.parse(taken.toText(), sent).value).toEqual(taken.value);
      expect(sent.isChanged).toBe(false);
    }),
    { numRuns: runs(500) },
  );
});

test('a new scalar changes one line', () => {
  fc.assert(
    fc.property(value, style, text, (data, options, end) => {
      fc.pre(!end.includes('\n') && options.collectionStyle === 'any');
      const source = written(data, options);
      const resource = Resource.parse(source, { file: 'a.yaml', index: 0 });
      resource.set(['end'], end);
      const before = source.split('\n');
      const after = resource.toText().split('\n');
      expect(after.length).toBe(before.length);
      expect(after.slice(0, -2)).toEqual(before.slice(0, -2));
      expect(plainValue(Resource.parse(after.join('\n'), { file: 'a.yaml', index: 0 }).node(['end']))).toBe(end);
    }),
    { numRuns: runs(500) },
  );
});
