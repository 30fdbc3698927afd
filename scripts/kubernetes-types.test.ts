import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { KUBERNETES_TYPES_FILE, kubernetesTypes } from './kubernetes-types.ts';

test('the types of Kubernetes are those of the client; otherwise run: npm run kubernetes-types', async () => {
  expect(readFileSync(KUBERNETES_TYPES_FILE, 'utf8')).toBe(await kubernetesTypes());
});
