import { expect, test } from 'vitest';
import { setNamePrefix } from './set-name-prefix.ts';
import { runFunction } from './support/testing.ts';

const text = (prefix: string) => `apiVersion: v1
kind: Secret
metadata:
  name: ${prefix}
---
apiVersion: v1
kind: Pod
metadata:
  name: ${prefix}-web
spec:
  imagePullSecrets:
    - name: ${prefix}
---
apiVersion: v1
kind: Secret
metadata:
  name: packagenames
`;

const CONTEXT = `apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  name: ghost
`;

test('takes the prefix from the package, or from its configuration', async () => {
  const files = { 'a.yaml': text('packagename'), 'package-context.yaml': CONTEXT };
  expect((await runFunction(setNamePrefix, files)).files).toEqual({ ...files, 'a.yaml': text('ghost') });
  expect((await runFunction(setNamePrefix, files, { prefix: 'sea' })).files['a.yaml']).toBe(text('sea'));
  const old = { prefix: 'sea', oldPrefix: 'old' };
  expect((await runFunction(setNamePrefix, text('old'), old)).files['resources.yaml']).toBe(text('sea'));
});

test('needs a prefix', async () => {
  await expect(runFunction(setNamePrefix, text('packagename'))).rejects.toThrow('set-name-prefix needs a prefix');
});
