import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { temporaryFolder } from '../support/git/git-cli.ts';
import { startGitServer } from '../support/git/git-server.ts';
import { buildGoProgram, PORCHCTL } from '../support/go-program.ts';
import type { GoClientServer } from './go-client-tests.ts';
import {
  expectedOutcome,
  makeCaseRepository,
  type PorchCase,
  type PorchCaseTools,
  porchModule,
  readPorchCases,
  runPorchCommand,
} from './porch-cases.ts';

/** Commands whose outcome is not that of Porch v1.5.3, and why; docs/porch.md explains them to users. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  'repo-register 3': 'newer Porch shows the columns Sync schedule and Age, as Sluice does',
  'rpkg-init-deploy 4': 'newer Porch shows the columns Sync schedule and Age, as Sluice does',
  'rpkg-lifecycle 12': 'newer Porch refuses without an admission webhook, in the words of Sluice',
  'rpkg-push 11': 'newer Porch has other words for a push that cannot be rendered',
};

/** Starts a server of a folder, with arguments for Sluice; Git hosts of this machine are allowed. */
export type StartServer = (folder: string, words: readonly string[]) => Promise<GoClientServer>;

/** Runs Porch's command-line cases and expects the outcomes of Porch, except for known differences. */
export async function testPorchCases({ skip }: TestContext, start: StartServer): Promise<void> {
  const { path: porchctl, missing } = await buildGoProgram(PORCHCTL);
  const module = await porchModule();
  if (porchctl === undefined || module === undefined) return void skip(missing || 'the module of Porch is not here');
  const folder = temporaryFolder();
  const [root, scratch] = ['git', 'scratch'].map((name) => join(folder.path, name)) as [string, string];
  for (const one of [join(root, 'nephio'), scratch]) mkdirSync(one, { recursive: true });
  const bundle = join(module, 'test/pkgs/test-pkgs/test-blueprints.bundle');
  execFileSync('git', ['clone', '--quiet', '--mirror', bundle, join(root, 'nephio/test-blueprints.git')]);
  const git = await startGitServer({ root });
  // The default of Porch v1.5.3, from which the cases are.
  const up = await start(folder.path, ['--default-image-prefix', 'gcr.io/kpt-fn/']);
  try {
    const tools: PorchCaseTools = { porchctl, kubeconfig: up.kubeconfig, gitHost: git.url, scratch };
    const differing: Record<string, unknown> = {};
    let count = 0;
    for (const one of await readPorchCases(module)) {
      makeCaseRepository(root, one.name);
      count += one.commands.length;
      Object.assign(differing, await differencesOf(one, tools, up));
    }
    console.info(`${count - Object.keys(differing).length} of ${count} commands as in Porch`);
    const unknown = Object.entries(differing).filter(([key]) => DIFFERENCES[key] === undefined);
    expect(Object.fromEntries(unknown)).toEqual({});
  } finally {
    await up.stop();
    await git.close();
    folder.remove();
  }
}

/** Runs a case in a namespace of its own, and returns what differs by `<case> <number of the command>`. */
async function differencesOf(
  { name, commands }: PorchCase,
  tools: PorchCaseTools,
  { api }: GoClientServer,
): Promise<Record<string, unknown>> {
  const differing: Record<string, unknown> = {};
  const repositories = `/apis/config.porch.kpt.dev/v1alpha1/namespaces/${name}/repositories`;
  await api.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  for (const [index, command] of commands.entries()) {
    const [got, want] = [await runPorchCommand(command, tools), expectedOutcome(command, tools)];
    const sameError = command.containsErrorString ? got.stderr.includes(want.stderr) : got.stderr === want.stderr;
    if (got.exitCode !== want.exitCode || got.stdout !== want.stdout || !sameError)
      differing[`${name} ${index}`] = { command: command.args.join(' '), want, got };
    const registered = command.args.includes('register') && command.args.find((word) => word.startsWith('--name='));
    if (registered)
      await eventually(
        () => api.get(`${repositories}/${registered.slice('--name='.length)}`),
        ({ text }) => /"type":"Ready"[^}]*"status":"True"|"status":"True"[^}]*"type":"Ready"/.test(text),
      );
  }
  // Porch's suite deletes the namespace, so that the next case does not list these.
  const { body } = await api.get(repositories);
  for (const { metadata } of body.items as { metadata: { name: string } }[])
    await api.delete(`${repositories}/${metadata.name}`);
  return differing;
}
