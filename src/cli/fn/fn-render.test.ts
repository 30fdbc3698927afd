import { expect, test } from 'vitest';
import { loadedModules } from '../../../test/support/loaded-modules.ts';

test('the worker is started before further code is loaded', () => {
  const command = new URL('./fn-render.ts', import.meta.url);
  const loaded = loadedModules(command);
  expect(loaded).toContain(command.href);
  expect(loaded.filter((url) => /node_modules\/(?:yaml|zod)\/|kptfile-schema/.test(url))).toEqual([]);
});
