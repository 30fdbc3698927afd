import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../../src/cli/testing.ts';
import { eventually } from '../support/api/eventually.ts';
import { git, refsOf } from '../support/git/git-cli.ts';
import { NAMESPACE } from './support/sluice-serve.ts';
import { useInstallation } from './support/use-installation.ts';

const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const REPOSITORY = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories/packages';
const SECRET = `/api/v1/namespaces/${NAMESPACE}/secrets/sluice-signing-key`;
const used = useInstallation({ replicas: 1, prepare: (kept) => kept.register('default') });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-keys-'));
});
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));

const environment = { SLUICE_ALLOW_GIT_HOST: '127.0.0.1' };
async function expectRun(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCli(words, { ...process.env, ...environment });
  expect({ words, code, stderr }).toMatchObject({ code: 0 });
  return stdout;
}
/** On the installation. */
const inCluster = (...words: string[]) => expectRun(...words, '--kubeconfig', used.plane.kubeconfig);
/** On a data folder that works on the same repository. */
const inFolder = (...words: string[]) => expectRun(...words, '--data', join(folder, 'data'));

interface Shown {
  readonly own: { readonly fingerprint: string; readonly publicKey: string };
  readonly source: string;
  readonly keys: readonly { readonly fingerprint: string; readonly revocation?: { readonly at: string } }[];
}
const shown = async () => JSON.parse(await inCluster('key', 'show', '-o', 'json')) as Shown;

async function publishInFolder(name: string): Promise<void> {
  await inFolder('rpkg', 'init', name, '--repository', 'packages', '--workspace', 'v1');
  for (const verb of ['propose', 'approve']) await inFolder('rpkg', verb, `packages.${name}.v1`);
}

/** Reads the repository now, and returns the status of a package revision once the server lists it. */
async function statusOf(name: string, wanted: RegExp): Promise<string> {
  const spec = { sync: { runOnceAt: new Date().toISOString() } };
  const { status, text } = await used.current.admin.patch(REPOSITORY, { spec });
  expect({ status, text }).toMatchObject({ status: 200 });
  const { body } = await eventually(
    () => used.current.admin.get(`${REVISIONS}/packages.${name}.v1`),
    ({ status: answer, text: content }) => answer === 200 && wanted.test(content),
  );
  return JSON.stringify(body.status);
}

test('a key that the CLI trusts counts in the running server, and nothing that it signs after the CLI revoked it', async () => {
  const { own, source, keys } = await shown();
  expect(own.publicKey).toBe(used.current.publicKey.split(' ').slice(0, 2).join(' '));
  expect(source).toBe(`Secret ${NAMESPACE}/sluice-signing-key`);
  expect(keys.map(({ fingerprint }) => fingerprint)).toEqual([own.fingerprint]);

  await inFolder('repo', 'reg', `${used.current.git.url}/packages.git`, '--name', 'packages');
  const other = (JSON.parse(await inFolder('key', 'show', '-o', 'json')) as Shown).own;
  await publishInFolder('before');
  expect(await statusOf('before', /outOfBand/)).toContain('UntrustedKey');

  expect(await inCluster('key', 'trust', other.publicKey)).toContain('trusted');
  await publishInFolder('during');
  for (const name of ['before', 'during'])
    expect(await statusOf(name, /^(?!.*outOfBand).*"Published"/s)).not.toContain('outOfBand');

  expect(await inCluster('key', 'revoke', other.fingerprint)).toContain('revoked');
  await publishInFolder('after');
  expect(await statusOf('after', /outOfBand/)).toContain('RevokedKey');
  expect(await statusOf('during', /"Published"/)).not.toContain('outOfBand');

  // As docs/trust.md describes it: an adoption in a data folder whose key the cluster trusts.
  const adoption = ['--data', join(folder, 'adoption')];
  await expectRun('repo', 'reg', `${used.current.git.url}/packages.git`, '--name', 'packages', ...adoption);
  await expectRun('key', 'trust', own.publicKey, ...adoption);
  const { own: adopter } = JSON.parse(await expectRun('key', 'show', '-o', 'json', ...adoption)) as Shown;
  await inCluster('key', 'trust', adopter.publicKey);
  await expectRun('repo', 'adopt', 'packages', '--only', 'after/*', '--yes', ...adoption);
  expect(await statusOf('after', /^(?!.*outOfBand).*"Published"/s)).not.toContain('outOfBand');
  const { text } = await used.current.admin.get(REPOSITORY);
  expect(text).not.toContain('older than the repository');

  // With the kubeconfig: the list changes nothing, and the adoption counts.
  await publishInFolder('later');
  expect(await statusOf('later', /outOfBand/)).toContain('RevokedKey');
  const adopt = (...words: string[]) => inCluster('repo', 'adopt', 'packages', '--only', 'later/*', ...words);
  const { keys: known } = await shown();
  expect(await adopt()).toMatch(/refs\/tags\/later\/v1 +RevokedKey[\s\S]*would adopt: 1 tag/);
  expect((await shown()).keys).toEqual(known);
  expect(await adopt('--yes')).toContain('adopted: 1 tag');
  expect(await statusOf('later', /^(?!.*outOfBand).*"Published"/s)).not.toContain('outOfBand');
  const { own: unchanged, keys: after } = await shown();
  expect(unchanged).toEqual(own);
  expect(after.slice(known.length)).toMatchObject([{ origin: 'added', comment: 'sluice repo adopt' }]);
  const { text: state } = await used.current.admin.get(REPOSITORY);
  expect(state).not.toContain('older than the repository');
  expect(await inCluster('repo', 'adopt', 'packages')).toContain('nothing to adopt in packages');
});

test('a publication that was deleted counts again once it is adopted with the kubeconfig', async () => {
  const { gitFolder } = used.current;
  const tag = 'refs/tags/back/v1';
  await inCluster('rpkg', 'init', 'back', '--repository', 'packages', '--workspace', 'v1');
  for (const verb of ['propose', 'approve']) await inCluster('rpkg', verb, 'packages.back.v1');
  const published = git(gitFolder, ['rev-parse', tag]).trim();
  for (const verb of ['propose-delete', 'delete']) await inCluster('rpkg', verb, 'packages.back.v1');
  expect(refsOf(gitFolder).has(tag)).toBe(false);
  git(gitFolder, ['update-ref', tag, published]);
  expect(await statusOf('back', /outOfBand/)).toContain('RolledBack');
  expect(await inCluster('repo', 'adopt', 'packages', '--only', 'back/*', '--yes')).toContain('adopted: 1 tag');
  expect(await statusOf('back', /^(?!.*outOfBand).*"Published"/s)).not.toContain('outOfBand');
});

test('an adoption that only the leader could record is refused with the next step', async () => {
  const adopt = (...words: string[]) =>
    runCli(['repo', 'adopt', 'packages', '--kubeconfig', used.plane.kubeconfig, ...words], {
      ...process.env,
      ...environment,
    });
  expect(await adopt('--new-id', '--yes')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('only the leader writes that into the ledger of a cluster'),
  });
  expect(await adopt('--ledger-namespace', 'default')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/no trust ledger in the namespace default.*--ledger-namespace/),
  });
  // A user without the right to read policies gets the refusal, and does not wait for them.
  const ROLES = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`;
  const { admin, gitFolder } = used.current;
  await admin.post(`${ROLES}/roles`, {
    metadata: { name: 'ledger-reader' },
    rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }],
  });
  await admin.post(`${ROLES}/rolebindings`, {
    metadata: { name: 'ledger-reader' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'ledger-reader' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'olga' }],
  });
  const olga = ['repo', 'adopt', 'packages', '--kubeconfig', await used.plane.userKubeconfig('olga')];
  const result = await eventually(
    () => runCli(olga, { ...process.env, ...environment }),
    ({ stderr }) => !stderr.includes('configmaps'),
  );
  expect(result).toMatchObject({ code: 1, stderr: expect.stringMatching(/cannot list resource/) });
  const accepted = git(gitFolder, ['rev-parse', 'main']).trim();
  const rewritten = git(gitFolder, ['commit-tree', `${accepted}^{tree}`, '-m', 'rewritten']).trim();
  git(gitFolder, ['update-ref', 'refs/heads/main', rewritten]);
  const refused = await adopt('--yes');
  git(gitFolder, ['update-ref', 'refs/heads/main', accepted]);
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      new RegExp(`cannot accept ${rewritten} .* push the accepted commit to the main branch`),
    ),
  });
});

test('the running server signs with the key of a rotation, and the old one is revoked with --force', async () => {
  const before = await shown();
  const { revoked, own } = JSON.parse(
    await inCluster('key', 'revoke', before.own.fingerprint, '--force', '-o', 'json'),
  ) as { readonly revoked: Shown['keys'][number]; readonly own: Shown['own'] };
  expect(revoked).toMatchObject({ fingerprint: before.own.fingerprint, revocation: { at: expect.any(String) } });
  expect((await shown()).own).toEqual({ fingerprint: own.fingerprint, publicKey: own.publicKey });
  expect(Object.keys((await used.current.admin.get(SECRET)).body.data as object)).toEqual(['identity']);
  // Until the server has the new key, it refuses to sign.
  const draft = {
    ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', metadata: { namespace: 'default' } },
    spec: { packageName: 'rotated', workspaceName: 'v1', repository: 'packages', tasks: [{ type: 'init' }] },
  };
  await eventually(
    () => used.current.admin.post(REVISIONS, draft),
    ({ status }) => status === 201,
  );
  for (const verb of ['propose', 'approve']) await inCluster('rpkg', verb, 'packages.rotated.v1');
  expect(await statusOf('rotated', /"Published"/)).not.toContain('outOfBand');
});

test('a namespace without an installation is refused with the next step', async () => {
  const words = ['key', 'show', '--kubeconfig', used.plane.kubeconfig, '--ledger-namespace', 'default'];
  expect(await runCli(words)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/no trust ledger in the namespace default of https.*--ledger-namespace/),
  });
});
