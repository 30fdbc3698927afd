import { expect, test } from 'vitest';
import { loadPacks } from './load-packs.ts';

const module = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`;

test('further packs come from modules, after the built-in functions', async () => {
  const packs = await loadPacks([module('export default { name: "mine", functions: [{ name: "f", run() {} }] }')]);
  expect(packs.map(({ name }) => name)).toEqual(['sluice', 'mine']);
});

test('a module that is no pack is refused by its address', async () => {
  for (const text of ['', 'export default []', 'export default { name: "x", functions: [{ name: "f" }] }'])
    await expect(loadPacks([module(text)])).rejects.toThrow(/^data:.* is no pack of functions/);
});

test('every built-in function has a name of its own, and explains itself', async () => {
  const [builtIns] = await loadPacks([]);
  const functions = builtIns?.functions ?? [];
  expect(new Set(functions.map(({ name }) => name)).size).toBe(functions.length);
  for (const { name, doc } of functions) {
    expect(name).toMatch(/^[a-z][a-z-]*$/);
    expect(doc.summary, name).toMatch(/\S.*\.$/);
    expect(doc.summary, name).not.toContain('\n');
    expect(doc.description, name).not.toBe('');
  }
});
