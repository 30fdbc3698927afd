import { expect, test } from 'vitest';
import { unifiedDiff } from './unified-diff.ts';

test('a hunk may have more lines than a call has arguments', async () => {
  const patch = await unifiedDiff('', 'b\n'.repeat(200_000), { before: undefined, after: 'b/f' });
  const head = '--- /dev/null\n+++ b/f\n@@ -0,0 +1,200000 @@\n';
  expect(patch.slice(0, head.length + 6)).toBe(`${head}+b\n+b\n`);
  expect(patch.length).toBe(head.length + 200_000 * 3);
});
