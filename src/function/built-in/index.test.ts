import { expect, test } from 'vitest';
import { builtIns } from './index.ts';

test('every built-in function has a name of its own, and explains itself', () => {
  expect(new Set(builtIns.map(({ name }) => name)).size).toBe(builtIns.length);
  for (const { name, doc } of builtIns) {
    expect(name).toMatch(/^[a-z][a-z-]*$/);
    expect(doc.summary, name).toMatch(/\S.*\.$/);
    expect(doc.summary, name).not.toContain('\n');
    expect(doc.description, name).not.toBe('');
  }
});
