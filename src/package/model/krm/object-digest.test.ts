import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { readKptfile } from '../../../../kptfile-schema/index.ts';
import { contentDigest } from '../content/content.ts';
import { readKrmFile } from './krm.ts';
import { ObjectDigests } from './object-digest.ts';

const HEAD = 'apiVersion: example.com/v1\nkind: Claim\nmetadata:\n  name: n3\n';

function digestOf(text: string): string {
  const data = Buffer.from(text);
  const { objects } = readKrmFile('a.yaml', data);
  expect(objects.length).toBeGreaterThan(0);
  return new ObjectDigests(new Map([['a.yaml', data]])).of(objects);
}
const ofValue = (value: string) => digestOf(`${HEAD}spec:\n  a: ${value}\n`);

describe('what is written counts, where readers of YAML may take it otherwise', () => {
  test.each([
    ['0644', '644'],
    ['yes', '"yes"'],
    ['yes', 'true'],
    ['9007199254740993', '9007199254740992'],
    ['1', '1.0'],
    ['1', '"1"'],
    ['null', '~'],
    ['', '""'],
    ['12:30:45', '45045'],
    ['0x10', '16'],
    ['!!str 123', '123'],
    ['one', 'two'],
  ])('%s is not %s', (one, other) => {
    expect(ofValue(one)).not.toBe(ofValue(other));
  });
});

describe('how it is laid out does not', () => {
  test.each([
    ['one', '"one"'],
    ['one', "'one'"],
    ['"one"', 'one # a comment'],
    ['{b: 1, c: 2}', '{c: 2, b: 1}'],
    ['[1, 2]', '\n    - 1\n    # a comment\n    - 2'],
    ['"one\\n"', '|\n    one'],
  ])('%s is %s', (one, other) => {
    expect(ofValue(one)).toBe(ofValue(other));
  });

  test('nor do status, other objects of the file, or the order of keys', () => {
    const digest = digestOf(`${HEAD}spec: {a: 1}\n`);
    expect(digestOf(`${HEAD}status: {ready: true}\nspec: {a: 1}\n`)).toBe(digest);
    expect(digestOf(`spec: {a: 1}\n${HEAD}`)).toBe(digest);
    expect(digest).toMatch(/^o2:[0-9a-f]{32}$/);
  });
});

test('aliases count as their values; one without a bounded expansion, and a long file, count as the whole file', () => {
  expect(digestOf(`${HEAD}x: &x 0644\nspec: {a: *x}\n`)).not.toBe(digestOf(`${HEAD}x: &x 644\nspec: {a: *x}\n`));
  const bomb = [
    'a0: &a0 [x, x]',
    ...Array.from({ length: 25 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`),
  ].join('\n');
  expect(digestOf(`${HEAD}${bomb}\n`)).not.toBe(digestOf(`${HEAD}${bomb}\n# a comment\n`));
  const long = `text: ${'x'.repeat(70_000)}\n`;
  expect(digestOf(`${HEAD}${long}`)).not.toBe(digestOf(`${HEAD}${long}# a comment\n`));
});

describe('an object that merges fields counts with its whole file, since for some readers their order decides', () => {
  const base = `${HEAD}base: &x {a: 1}\n`;
  test.each([
    ['a plain key', 'spec: {<<: *x, a: 2}', 'spec: {a: 2, <<: *x}'],
    ['a quoted key', 'spec: {"<<": *x, a: 2}', 'spec: {a: 2, "<<": *x}'],
    ['a key of the object itself', '<<: *x\nspec: {}', 'spec: {}\n<<: *x'],
    ['in a list', 'spec: [{<<: *x, a: 2}]', 'spec: [{a: 2, <<: *x}]'],
    ['an alias of a key', 'k: &k <<\nspec: {*k : *x, a: 2}', 'k: &k <<\nspec: {a: 2, *k : *x}'],
  ])('%s', (_, one, other) => {
    expect(digestOf(`${base}${one}\n`)).not.toBe(digestOf(`${base}${other}\n`));
  });
});

describe('what is a comment to one reader of YAML and a field to another counts with each byte', () => {
  const CHARACTERS = [
    ['CR', '\r'],
    ['NEL', '\u0085'],
    ['LS', '\u2028'],
    ['PS', '\u2029'],
  ] as const;

  test.each(CHARACTERS)('behind %s, which ends a line for some', (_, character) => {
    const plain = digestOf(`${HEAD}spec: {a: 1}\n`);
    const hidden = digestOf(`${HEAD}spec: {a: 1}\n# note${character}evil: x\n`);
    expect(hidden).not.toBe(plain);
    expect(hidden).not.toBe(digestOf(`${HEAD}spec: {a: 1}\n# note${character}evil: y\n`));
    expect(digestOf(`${HEAD}spec: {a: 1}\n`.replaceAll('\n', '\r\n'))).toBe(plain);
  });

  test('under a directive, which chooses the rules', () => {
    expect(digestOf(`%YAML 1.1\n---\n${HEAD}spec: {a: 1}\n`)).not.toBe(digestOf(`${HEAD}spec: {a: 1}\n`));
  });

  const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: x\n';
  const contentOfKptfile = (text: string) => {
    const result = readKptfile(text);
    const oid = createHash('sha1').update(text).digest('hex');
    const entries = [{ name: 'Kptfile', mode: '100644', oid, type: 'blob' } as const];
    return contentDigest(entries, result.ok ? result.kptfile : undefined, Buffer.from(text));
  };

  test.each(CHARACTERS)('in the Kptfile: %s', (_, character) => {
    const hidden = (image: string) => `${KPTFILE}# note${character}pipeline: {mutators: [{image: ${image}}]}\n`;
    expect(contentOfKptfile(hidden('evil'))).not.toBe(contentOfKptfile(KPTFILE));
    expect(contentOfKptfile(hidden('evil'))).not.toBe(contentOfKptfile(hidden('other')));
  });

  test('in the Kptfile: a directive; a comment is none of the content', () => {
    expect(contentOfKptfile(`%YAML 1.1\n---\n${KPTFILE}`)).not.toBe(contentOfKptfile(KPTFILE));
    expect(contentOfKptfile(`${KPTFILE}# a comment\n`)).toBe(contentOfKptfile(KPTFILE));
  });
});
