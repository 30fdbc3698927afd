import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, type TestContext } from 'vitest';
import { temporaryFolder } from '../support/git/git-cli.ts';
import { startGitServer } from '../support/git/git-server.ts';
import type { StartServer } from './porch-case-tests.ts';
import { porchModule } from './porch-cases.ts';
import { buildPorchSuite, makeTestRepository, makeUpstreams, runPorchSuite } from './porch-suite.ts';

const PODS = 'needs pods';
const INTERNET = 'needs a public repository';
const TWO_NAMES =
  'registers one repository twice in a namespace, which newer Porch refuses as Sluice does (the test waits two minutes for it)';

/** Tests that are not run, and why. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  TestGitRepositoryWithReleaseTagsAndDirectory: INTERNET,
  TestPodFunctionEvaluatorWithDistrolessImage: PODS,
  TestPodEvaluator: PODS,
  TestPodEvaluatorWithFailure: PODS,
  TestFailedPodEvictionAndRecovery: PODS,
  TestPackageRevisionInMultipleNamespaces: TWO_NAMES,
  TestUniquenessOfUIDs: TWO_NAMES,
};

/** Tests that fail, or may, and why; docs/porch.md explains them to users. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  TestLatestVersionOnDelete: 'makes a second revision with init, which newer Porch refuses as Sluice does',
};

async function testsIn(folder: string): Promise<string[]> {
  const texts = await Promise.all(
    ['e2e_test.go', 'kpt_function_test.go'].map((name) => readFile(join(folder, name), 'utf8')),
  );
  return texts.flatMap((text) =>
    [...text.matchAll(/^func \(t \*PorchSuite\) (Test\w+)\(/gm)].map(([, name]) => name as string),
  );
}

/** Runs Porch's end-to-end tests and expects that they pass, except for known differences. */
export async function testPorchSuite({ skip }: TestContext, start: StartServer): Promise<void> {
  const module = await porchModule();
  if (module === undefined) return void skip('the module of Porch is not here');
  const suite = await buildPorchSuite(module);
  if (suite.path === undefined) return void skip(suite.missing);
  const all = await testsIn(suite.folder);
  const tests = all.filter((name) => LEFT_OUT[name] === undefined);
  const folder = temporaryFolder();
  const root = join(folder.path, 'git');
  makeUpstreams(module, root);
  const git = await startGitServer({ root, beforeRequest: (url) => makeTestRepository(root, url) });
  const hanging = await startGitServer({ root, hang: 'all' });
  const up = await start(folder.path, []);
  try {
    const run = { kubeconfig: up.kubeconfig, gitHost: git.url, hangingHost: hanging.url, tests };
    const results = await runPorchSuite(suite, run);
    const outcomes = Object.fromEntries(tests.map((name) => [name, results.get(name)]));
    const passed = tests.filter((name) => outcomes[name]?.outcome === 'PASS');
    const able = all.filter((name) => LEFT_OUT[name] === undefined || LEFT_OUT[name] === TWO_NAMES);
    const others = able.filter((name) => !passed.includes(name));
    console.info(`${passed.length} of ${able.length} tests of Porch pass; others: ${others.join(', ')}`);
    const failed = others.filter((name) => LEFT_OUT[name] === undefined && DIFFERENCES[name] === undefined);
    expect(Object.fromEntries(failed.map((name) => [name, outcomes[name]]))).toEqual({});
  } finally {
    await up.stop();
    await Promise.all([git.close(), hanging.close()]);
    folder.remove();
  }
}
