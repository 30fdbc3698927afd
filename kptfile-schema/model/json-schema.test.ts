import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { kptfileJsonSchema } from '../index.ts';

test('kptfile.schema.json is current; if not, run npm run schema', () => {
  const written = readFileSync(new URL('../kptfile.schema.json', import.meta.url), 'utf8');
  expect(written).toBe(`${JSON.stringify(kptfileJsonSchema(), null, 2)}\n`);
});
