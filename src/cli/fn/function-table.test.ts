import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { builtIns } from '../../function/built-in/index.ts';
import { withFunctionTable } from './function-table.ts';

test('docs/functions.md describes every built-in function; "npm run functions" regenerates the table', () => {
  const page = readFileSync(new URL('../../../docs/functions.md', import.meta.url), 'utf8');
  expect(builtIns.length).toBeGreaterThan(15);
  expect(page).toBe(withFunctionTable(page, builtIns));
});

test('the description of a function stays in its row', () => {
  const page =
    '<!-- built-in functions: written by `npm run functions` -->\nold\n<!-- end of built-in functions -->\nafter\n';
  const doc = { summary: 'a | b\nc', description: '', examples: [], differences: ['one', 'two'] };
  const written = withFunctionTable(page, [{ name: 'x', doc, run: () => undefined }]);
  expect(written).toContain('\n| `x` | a \\| b c | none: by its documentation | one<br>two |\n');
  expect(written).not.toContain('old');
  expect(written.endsWith('-->\nafter\n')).toBe(true);
});
