import { expect, test } from 'vitest';
import { functionsOf } from './work-options.ts';

test('a program that renders packages must be an executable file when the server starts', () => {
  expect(functionsOf({ kustomize: process.execPath })).toMatchObject({ kustomize: process.execPath });
  for (const path of ['/nonexistent', import.meta.filename, import.meta.dirname])
    for (const name of ['kustomize', 'helm'] as const)
      expect(() => functionsOf({ [name]: path })).toThrow(
        expect.objectContaining({
          code: 'InvalidInput',
          message: expect.stringContaining(
            `--${name} (or SLUICE_${name.toUpperCase()}): ${path} is not an executable file`,
          ),
        }),
      );
});
