import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliFixture, cliFixture, runCli } from '../../src/cli/testing.ts';
import { Up } from '../support/up.ts';

const CUSTOM = `apiVersion: example.com/v1
kind: Gadget
metadata: {name: first}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {plural: gadgets, kind: Gadget}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {size: {type: integer}}}}
`;

const VIEWER = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: viewers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: victor}]
`;

let cli: CliFixture;
const running: Up[] = [];
beforeEach(async () => {
  cli = await cliFixture();
});
afterEach(async () => {
  for (const up of running.splice(0)) up.child.kill('SIGKILL');
  await cli[Symbol.asyncDispose]();
});

async function serve(name: string): Promise<string> {
  const data = join(cli.folder, name);
  const up = new Up(data);
  running.push(up);
  await up.said(/--kubeconfig/);
  return data;
}

test('objects move from a data folder to a running server and back, with kinds of users', async () => {
  const [first, second] = await Promise.all([serve('first'), serve('second')]);
  const on = (data: string, ...words: string[]) => runCli([...words, '--kubeconfig', join(data, 'kubeconfig')]);
  const file = join(cli.folder, 'objects.yaml');
  await writeFile(file, CUSTOM);
  expect(await on(first, 'import', file, '--dry-run')).toMatchObject({ code: 0 });
  const made = await on(first, 'import', file);
  expect(made).toMatchObject({ code: 0, stderr: '2 created\n' });
  expect((await runCli(['repo', 'reg', cli.bare('apps.git'), '--data', first])).code).toBe(0);

  const moved = join(cli.folder, 'moved.yaml');
  const exported = await on(first, 'export', moved, '--include-secrets');
  expect(exported).toMatchObject({ code: 0, stderr: expect.stringContaining('3 objects exported') });
  expect(await on(second, 'import', moved)).toMatchObject({ code: 0, stderr: '3 created\n' });
  expect(await on(second, 'import', moved)).toMatchObject({ code: 0, stderr: '3 unchanged\n' });
  // Controllers have written status, finalizers and defaults by now, none of which is exported.
  await expect.poll(async () => (await runCli(['repo', 'get', '--data', second])).stdout).toMatch(/^apps .* True/m);
  const there = (await on(second, 'export')).stdout;
  expect((await on(first, 'export')).stdout).toBe(there);

  // A user who may read a part gets that part, and sees that it is one.
  await writeFile(file, VIEWER);
  expect(await on(second, 'import', file)).toMatchObject({ code: 0 });
  const part = await on(second, 'export', '--as', 'victor');
  expect(part).toMatchObject({ code: 1, stdout: expect.stringContaining('kind: Repository') });
  expect(part.stderr).toMatch(/^not exported: .*secrets/m);
  expect(await on(second, 'import', moved, '--as', 'victor')).toMatchObject({ code: 1 });
  const whole = (await on(second, 'export')).stdout;

  // The same from the folder, without its server.
  expect(await running[1]?.end('SIGTERM')).toBe(0);
  const offline = await runCli(['export', '--data', second]);
  expect(offline).toMatchObject({ code: 0, stdout: whole });
  expect(await runCli(['import', moved, '--data', second])).toMatchObject({ code: 0, stderr: '3 unchanged\n' });
});
