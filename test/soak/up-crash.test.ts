import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { initRepository, openRepository } from '../../src/git/open/open-repository.ts';
import { sluice } from '../support/cli.ts';
import { newKey } from '../support/git/ssh-server.ts';
import { commitFiles, type Scratch, scratchRepository } from '../support/scratch-repository.ts';

const ROUNDS = process.env.SLUICE_SOAK === 'short' ? 4 : 25;
const KILLS = 4;
const PACKAGES = ['a', 'b', 'c', 'd', 'e'];
/** Refs besides those of packages: the main branch and the id of the repository. */
const REFS = ['refs/heads/main', 'refs/sluice/repository'];
const binary = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

const claim = (name: string) => `apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPClaim
metadata:
  name: ${name}
spec:
  kind: network
  networkInstance:
    name: vpc
  selector:
    matchLabels:
      site: east
`;

const kptfile = (name: string) => `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: ${name}
  annotations:
    config.porch.kpt.dev/auto-lifecycle-mgmt: "true"
    approval.nephio.org/policy: initial
info:
  readinessGates:
    - conditionType: ipam.resource.nephio.org/v1alpha1.IPClaim.${name}-n3
`;

const CONFIG = (folder: string) => `apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: { name: packages }
spec: { git: { repo: "${folder}/packages.git" } }
---
apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: { name: kptfile-approvals }
spec: { kptfileApprovals: true }
---
apiVersion: sluice.dev/v1alpha1
kind: DeliveryTarget
metadata: { name: edge }
spec: { selector: { repositories: [packages] }, git: { repo: "${folder}/edge.git", createBranch: true } }
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: NetworkInstance
metadata: { name: vpc }
spec: { prefixes: [ { prefix: 10.0.0.0/16 } ] }
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata: { name: east }
spec: { kind: network, networkInstance: { name: vpc }, prefix: 10.0.0.1/24, labels: { site: east, nephio.org/gateway: "true" } }
`;

async function prepare(scratch: Scratch): Promise<void> {
  const edge = await initRepository(join(scratch.folder, 'edge.git'));
  await edge.close();
  const git = await openRepository(scratch.path);
  for (const name of PACKAGES) {
    const files = {
      [`${name}/Kptfile`]: kptfile(name),
      [`${name}/claim.yaml`]: claim(`${name}-n3`),
      [`${name}/app.yaml`]: `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  namespace: default\n`,
    };
    await commitFiles(git, files, Date.now(), { branch: `drafts/${name}/v1`, from: 'refs/heads/main' });
  }
  await git.close();
  await mkdir(join(scratch.folder, 'conf'));
  await writeFile(join(scratch.folder, 'conf', 'all.yaml'), CONFIG(scratch.folder));
}

async function runAndKill(args: readonly string[], after: number): Promise<void> {
  const child = spawn(process.execPath, [binary, ...args], { stdio: 'ignore' });
  const timer = setTimeout(() => child.kill('SIGKILL'), after);
  await once(child, 'close');
  clearTimeout(timer);
}

test('sluice up, killed repeatedly, ends in the same state, with every address allocated once', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    await using scratch = await scratchRepository();
    await prepare(scratch);
    const args = ['up', '--data', join(scratch.folder, 'data'), '--config', join(scratch.folder, 'conf')];
    for (let kill = 0; kill < KILLS; kill++) await runAndKill(args, 250 + Math.random() * 600);
    const last = await sluice([...args, '--until-idle']);
    expect(last.code, `round ${round}: ${last.stderr}${last.stdout}`).toBe(0);
    const refs = (await scratch.git('for-each-ref', '--format=%(refname)')).split('\n');
    expect(refs, last.stdout).toEqual([...REFS, ...PACKAGES.map((name) => `refs/tags/${name}/v1`)]);
    const claims = await Promise.all(PACKAGES.map((name) => scratch.git('show', `${name}/v1:${name}/claim.yaml`)));
    const addresses = claims.map((text) => /prefix: (\S+)/.exec(text)?.[1]);
    expect(new Set(addresses).size, addresses.join()).toBe(PACKAGES.length);
    const delivered = (await scratch.git('-C', '../edge.git', 'ls-tree', '-r', '--name-only', 'main')).split('\n');
    for (const name of PACKAGES) expect(delivered).toContain(`${name}/app.yaml`);
    expect(await scratch.git('fsck', '--strict', '--no-dangling')).toBe('');
    expect(await scratch.git('-C', '../edge.git', 'fsck', '--strict', '--no-dangling')).toBe('');
  }
});

test('two sluice up on one repository, each with a data folder and a key of its own, do not undo each other', async () => {
  await using scratch = await scratchRepository();
  await prepare(scratch);
  const config = join(scratch.folder, 'conf');
  // Statements of one count for the other.
  const keys = ['one', 'two'].map((name) => newKey(scratch.folder, `${name}.key`));
  const list = keys.map(({ publicKey }) => `      ${publicKey}\n`).join('');
  await writeFile(
    join(config, 'all.yaml'),
    CONFIG(scratch.folder).replace(
      'metadata: { name: packages }',
      `metadata:\n  name: packages\n  annotations:\n    sluice.dev/trusted-keys: |\n${list.trimEnd()}`,
    ),
  );
  const up = (data: string) =>
    sluice(['up', '--data', join(scratch.folder, data), '--config', config, '--until-idle'], {
      environment: { SLUICE_SIGNING_KEY: join(scratch.folder, `${data}.key`) },
    });
  const both = await Promise.all([up('one'), up('two')]);
  // Either may end while the other still has a step to do; a last run of each completes the rest.
  const ended = [...both, await up('one'), await up('two')];
  const last = ended.at(-1);
  expect(last?.code, ended.map(({ stdout, stderr }) => stdout + stderr).join('\n---\n')).toBe(0);
  const refs = (await scratch.git('for-each-ref', '--format=%(refname)')).split('\n');
  expect(refs).toEqual([...REFS, ...PACKAGES.map((name) => `refs/tags/${name}/v1`)]);
  const commits = (await scratch.git('log', '--first-parent', '--format=%s', 'main')).split('\n');
  expect(commits.filter((subject) => subject.startsWith('Approving'))).toHaveLength(PACKAGES.length);
});
