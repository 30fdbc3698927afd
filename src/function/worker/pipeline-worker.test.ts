import { expect, test } from 'vitest';
import { loadedModules } from '../../../test/support/loaded-modules.ts';

test('a worker starts without the code that few pipelines need', () => {
  const program = new URL('./pipeline-worker.ts', import.meta.url);
  const loaded = loadedModules(program, String(process.pid));
  expect(loaded).toContain(program.href);
  const few = /bufbuild|re2js|function\/starlark|resource\/schema|kubernetes-types/;
  expect(loaded.filter((url) => few.test(url))).toEqual([]);
});
