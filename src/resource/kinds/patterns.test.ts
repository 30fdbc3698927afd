import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

const FOLDER = new URL('../../../deploy/crds/', import.meta.url);

/** V8 tries a pattern at each position of the text: without a bound, one long value would block the process for minutes. */
test('patterns are anchored, or the length of the text is limited', () => {
  const unbounded: string[] = [];
  const visit = (node: unknown, path: string) => {
    if (typeof node !== 'object' || node === null) return;
    const { pattern, maxLength } = node as { readonly pattern?: unknown; readonly maxLength?: unknown };
    if (typeof pattern === 'string' && !pattern.startsWith('^') && maxLength === undefined)
      unbounded.push(`${path}: ${pattern}`);
    for (const [name, child] of Object.entries(node)) visit(child, `${path}.${name}`);
  };
  const files = readdirSync(FOLDER).filter((name) => name.includes('.sluice.dev') || name.includes('.nephio.org'));
  expect(files.length).toBeGreaterThan(3);
  for (const file of files) visit(parse(readFileSync(new URL(file, FOLDER), 'utf8')), file);
  expect(unbounded).toEqual([]);
});
