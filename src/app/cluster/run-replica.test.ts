import { expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { explainMissingNamespace } from './run-replica.ts';

test('a namespace that does not exist is an error with the next step; other errors stay', () => {
  const missing = new SluiceError('NotFound', 'namespaces "sluice-system" not found');
  expect(explainMissingNamespace(missing, 'sluice-system')).toMatchObject({
    code: 'NotFound',
    message:
      'cannot start in the namespace sluice-system: namespaces "sluice-system" not found; install the manifests (docs/install.md), which create it, or name another one with --namespace',
  });
  const other = new SluiceError('NotFound', 'secrets "a" not found');
  expect(explainMissingNamespace(other, 'a')).toBe(other);
});
