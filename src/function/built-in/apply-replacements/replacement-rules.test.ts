import { expect, test } from 'vitest';
import { copy, run, thing } from './testing.ts';

const LIST =
  'list:\n  - name: web-admin\n    image: old\n  - name: web\n    image: old\n  - name: web\n    image: old\n';
const FROM = thing('from', 'value: new\n');

test.each(['v0.1.0', 'v0.1.1'])('%s skips target fields that do not exist, and copies into the others', async (tag) => {
  const resources = `${FROM}---\n${thing('to', 'there: old\n')}`;
  const { files, messages } = await run(resources, copy('value', ['missing.deeper', 'there']), tag);
  expect(messages).toEqual([]);
  expect(files['resources.yaml']).toBe(`${FROM}---\n${thing('to', 'there: new\n')}`);
});

test.each(['v0.1.2', 'v0.1.5', 'v0.1', 'latest'])('%s fails of a target field that does not exist', async (tag) => {
  const resources = `${FROM}---\n${thing('to', 'there: old\n')}`;
  const { messages } = await run(resources, copy('value', ['missing']), tag);
  expect(messages).toEqual([expect.stringContaining('error: unable to find the field')]);
});

test('a missing source field is an error in all versions', async () => {
  const resources = `${FROM}---\n${thing('to', 'there: old\n')}`;
  const { messages } = await run(resources, copy('missing', ['there']), 'v0.1.1');
  expect(messages).toEqual([expect.stringContaining('error: the field is missing or empty')]);
});

test.each([
  ['v0.1.1', ['web-admin: old', 'web: new', 'web: old']],
  ['v0.1.2', ['web-admin: new', 'web: new', 'web: new']],
])('%s: which items [name=web] selects', async (tag, expected) => {
  const resources = `${FROM}---\n${thing('to', LIST)}`;
  const { files, messages } = await run(resources, copy('value', ['list.[name=web].image']), tag);
  expect(messages).toEqual([]);
  const [, after = ''] = (files['resources.yaml'] ?? '').split('---\n');
  expect([...after.matchAll(/name: (\S+)\n {4}image: (\w+)/g)].map(([, name, image]) => `${name}: ${image}`)).toEqual(
    expected,
  );
});

test.each([
  ['v0.1.1', []],
  ['v0.1.2', []],
  ['v0.1.3', ['web-1', 'web-2']],
  ['v0.1.5', ['web-1', 'web-2']],
])('%s: what the name "web-.*" of a target selects', async (tag, expected) => {
  const resources = [FROM, thing('web-1', 'field: old\n'), thing('web-2', 'field: old\n')].join('---\n');
  const replacements =
    '- source:\n    name: from\n    fieldPath: value\n  targets:\n    - select:\n        name: web-.*\n      fieldPaths:\n        - field\n';
  const { files, messages } = await run(resources, replacements, tag);
  expect(messages).toEqual([]);
  const changed = (files['resources.yaml'] ?? '').split('---\n').filter((text) => text.includes('field: new'));
  expect(changed.map((text) => /name: (\S+)/.exec(text)?.[1])).toEqual(expected);
});

test.each([
  ['v0.1.1', 'a: "8080"', 'b: 80', 'b: "8080"'],
  ['v0.1.1', 'a: 8080', 'b: "80"', 'b: 8080'],
  ['v0.1.1', 'a: 8080', 'b: port', 'b: 8080'],
  ['v0.1.2', 'a: "8080"', 'b: 80', 'b: 8080'],
  ['v0.1.2', 'a: port', 'b: 80', 'b: port'],
  ['v0.1.2', 'a: 8080', 'b: "80"', 'b: "8080"'],
  ['v0.1.2', 'a: 8080', 'b: port', 'b: "8080"'],
])('%s: %s over %s', async (tag, from, to, expected) => {
  const resources = `${thing('from', `${from}\n`)}---\n${thing('to', `${to}\n`)}`;
  const { files, messages } = await run(resources, copy('a', ['b']), tag);
  expect(messages).toEqual([]);
  expect((files['resources.yaml'] ?? '').split('---\n')[1]).toBe(thing('to', `${expected}\n`));
});
