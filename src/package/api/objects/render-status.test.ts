import { expect, test } from 'vitest';
import { renderStatusOf } from './render-status.ts';

test('what a function prints is among the results only if it failed', () => {
  const image = 'starlark:v0.5.0';
  expect(renderStatusOf({ mutationSteps: [{ image, stderr: 'hello\n', exitCode: 0 }] })).toEqual({
    result: { exitCode: 0, items: [{ image, exitCode: 0 }] },
  });
  expect(renderStatusOf({ mutationSteps: [{ image, stderr: 'broken\n', exitCode: 1 }] }).result?.items).toEqual([
    { image, exitCode: 1, stderr: 'broken\n' },
  ]);
});
