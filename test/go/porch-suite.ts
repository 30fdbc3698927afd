import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { git, initBare } from '../support/git/git-cli.ts';
import { buildGoTest, type GoProgram, goCacheFolder } from '../support/go-program.ts';

/** Starts Porch's own Git server, which offers neither `atomic` nor `report-status`. */
const OWN_GIT_SERVER = '\ttmp, err := os.MkdirTemp("", "porch-test-*")\n';
const GIVEN_GIT_SERVER =
  '\tif url := os.Getenv("SLUICE_TEST_GIT"); url != "" {\n' +
  '\t\treturn GitConfig{Repo: url, Branch: "main", Directory: "/"}\n\t}\n';

/** External hosts that never respond. */
const FOREIGN_HOST = '"http://10.255.255.';
const HANGING_HOST = 'os.Getenv("SLUICE_TEST_HANGING") + "/';

export interface PorchSuite extends GoProgram {
  /** Its working directory, since it reads files. */
  readonly folder: string;
}

/** Builds the tests of a Porch module from a copy in the cache, since Go does not let files of modules be replaced. */
export async function buildPorchSuite(module: string): Promise<PorchSuite> {
  const copy = join(goCacheFolder, 'porch-suite');
  await rm(copy, { recursive: true, force: true });
  await cp(module, copy, { recursive: true });
  // Modules are read-only.
  execFileSync('chmod', ['-R', 'u+w', copy]);
  const folder = join(copy, 'test/e2e');
  await replaceIn(join(folder, 'suite.go'), OWN_GIT_SERVER, GIVEN_GIT_SERVER + OWN_GIT_SERVER);
  await replaceIn(join(folder, 'e2e_test.go'), FOREIGN_HOST, HANGING_HOST);
  return { ...(await buildGoTest(copy, 'porch-suite.test', './test/e2e')), folder };
}

async function replaceIn(file: string, old: string, replacement: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  if (!text.includes(old)) throw new Error(`${file} does not contain ${JSON.stringify(old)} any more`);
  await writeFile(file, text.replaceAll(old, replacement));
}

/** Creates the repository of a test at its first request, with an empty commit as Porch's Git server does. */
export function makeTestRepository(root: string, url: string): void {
  const name = /^\/(porch-test-[a-z0-9-]+)\//.exec(url)?.[1];
  if (name === undefined || existsSync(join(root, name))) return;
  const repository = initBare(join(root, name));
  const commit = git(repository, ['commit-tree', '-m', 'Empty Commit', git(repository, ['mktree'])]);
  git(repository, ['update-ref', 'refs/heads/main', commit]);
}

/** Creates the repositories that tests clone from: Porch's own, and a replacement of a public one with the same two packages. */
export function makeUpstreams(module: string, root: string): void {
  mkdirSync(root, { recursive: true });
  const bundle = join(module, 'test/pkgs/test-pkgs/test-blueprints.bundle');
  execFileSync('git', ['clone', '--quiet', '--mirror', bundle, join(root, 'test-blueprints')]);
  const repository = initBare(join(root, 'blueprints'));
  const tree = (entries: readonly string[]) => git(repository, ['mktree'], `${entries.join('\n')}\n`);
  const blob = (name: string, text: string) =>
    `100644 blob ${git(repository, ['hash-object', '-w', '--stdin'], text)}\t${name}`;
  const kptfile = (name: string) =>
    blob('Kptfile', `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${name}\n`);
  const bucket = blob(
    'bucket.yaml',
    'apiVersion: storage.cnrm.cloud.google.com/v1beta1\nkind: StorageBucket\n' +
      'metadata:\n  name: blueprints-project-bucket2\n  namespace: config-control\n',
  );
  const catalog = tree([
    `040000 tree ${tree([kptfile('bucket'), bucket])}\tbucket`,
    `040000 tree ${tree([kptfile('empty')])}\tempty`,
  ]);
  const commit = git(repository, ['commit-tree', '-m', 'Packages', tree([`040000 tree ${catalog}\tcatalog`])]);
  git(repository, ['update-ref', 'refs/heads/main', commit]);
}

export interface PorchSuiteRun {
  readonly kubeconfig: string;
  /** URL of the Git host, with the repositories of `makeUpstreams`. */
  readonly gitHost: string;
  /** URL of a host that accepts connections and never responds. */
  readonly hangingHost: string;
  readonly tests: readonly string[];
}

export interface PorchResult {
  readonly outcome: 'PASS' | 'FAIL' | 'SKIP';
  /** Errors that it reported. */
  readonly errors: readonly string[];
}

/** Runs tests of Porch's suite; the results by name. */
export async function runPorchSuite(
  { path = '', folder }: PorchSuite,
  { kubeconfig, gitHost, hangingHost, tests }: PorchSuiteRun,
): Promise<Map<string, PorchResult>> {
  const chosen = `-testify.m=^(${tests.join('|')})$`;
  const child = spawn(path, ['-test.v', '-test.run=^TestE2E$', '-test.timeout=9m', chosen], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...{ E2E: '1', RUN_E2E_LOCALLY: 'true', KUBECONFIG: kubeconfig, SLUICE_TEST_GIT: gitHost },
      SLUICE_TEST_HANGING: hangingHost,
      PORCH_TEST_BLUEPRINTS_REPO_URL: `${gitHost}/test-blueprints`,
      PORCH_GCP_BLUEPRINTS_REPO_URL: `${gitHost}/blueprints`,
      ...{ PORCH_GCP_BUCKET_REF: 'main', PORCH_KPT_FUNCTION_REF: 'main' },
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  return resultsOf(output);
}

/** The lines of a test are between the line of its start and that of its result. */
function resultsOf(output: string): Map<string, PorchResult> {
  const errors = new Map<string, string[]>();
  const results = new Map<string, PorchResult>();
  let current = '';
  for (const line of output.split('\n')) {
    const [, begun] = /^=== (?:RUN|CONT|NAME) +TestE2E\/(\w+)/.exec(line) ?? [];
    if (begun !== undefined) current = begun;
    if (/ERROR:|FATAL:|Messages:|panic:/.test(line)) errors.set(current, [...(errors.get(current) ?? []), line.trim()]);
    const [, outcome, name] = /^ {4}--- (PASS|FAIL|SKIP): TestE2E\/(\w+) /.exec(line) ?? [];
    if (outcome !== undefined && name !== undefined)
      results.set(name, { outcome: outcome as PorchResult['outcome'], errors: errors.get(name) ?? [] });
  }
  return results;
}
