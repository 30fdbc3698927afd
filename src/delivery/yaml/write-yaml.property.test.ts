import fc from 'fast-check';
import { load } from 'js-yaml';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { runs } from '../../../test/support/runs.ts';
import { readYaml } from './read-yaml.ts';
import { writeYaml } from './write-yaml.ts';
import type { Scalar, Value } from './yaml-value.ts';

type Json = string | Json[] | { [key: string]: Json };

const odd = fc.constantFrom(
  'yes',
  'n',
  '010',
  '1e3',
  '1_000',
  '12:30:45',
  '',
  ' ',
  '\n',
  '\t',
  ':',
  'a: b',
  'a #b',
  '- a',
);
const pieces = fc.constantFrom(
  'a',
  ' ',
  '\n',
  '\t',
  '\r',
  '#',
  ':',
  '-',
  '\u0085',
  '\u2028',
  '\ufeff',
  '"',
  "'",
  '\\',
  '%',
  '&',
);
const strings = fc.oneof(
  odd,
  fc.string({ unit: 'binary' }).map((text) => text.toWellFormed()),
  fc.array(pieces, { maxLength: 8 }).map((list) => list.join('')),
  fc
    .array(fc.constantFrom('x', ' x', 'x ', '', '  ', '---', '# x', 'k: v', '%a'), { maxLength: 5 })
    .map((list) => list.join('\n')),
);
const { tree } = fc.letrec<{ tree: Json }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    strings,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(
      strings.filter((key) => key !== '__proto__' && key.length < 100),
      tie('tree'),
      { maxKeys: 4 },
    ),
  ),
}));

function toValue(json: Json): Value {
  if (typeof json === 'string') return string(json);
  if (Array.isArray(json)) return json.map(toValue);
  const entries = Object.entries(json).map(
    ([key, value]) => [key, { key: string(key), value: toValue(value) }] as const,
  );
  return { entries: new Map(entries), line: 1 };
}

function string(text: string): Scalar {
  return { text, plain: false };
}

test('property: every reader returns the written strings, and writing them again gives the same bytes', () => {
  fc.assert(
    fc.property(tree, (json) => {
      const wrapped = { root: json };
      const text = writeYaml([toValue(wrapped)], 1_000_000);
      expect(load(text)).toEqual(wrapped);
      expect(parse(text, { version: '1.1', logLevel: 'silent' })).toEqual(wrapped);
      expect(parse(text, { version: '1.2' })).toEqual(wrapped);
      const again = readYaml(text).map(({ value }) => value);
      expect(writeYaml(again, 1_000_000)).toBe(text);
    }),
    { numRuns: runs(2000) },
  );
});
