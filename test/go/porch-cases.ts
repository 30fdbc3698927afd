import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { z } from 'zod';

const run = promisify(execFile);
const MODULE_FOLDER = fileURLToPath(new URL('porchctl', import.meta.url));
const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
const HOST = 'http://gitea.gitea.svc.cluster.local:3000';
const SCRATCH = '/tmp/porch-e2e';

const command = z.object({
  args: z.array(z.string()),
  stdin: z.string().default(''),
  stdout: z.string().default(''),
  stderr: z.string().default(''),
  exitCode: z.number().default(0),
  yaml: z.boolean().default(false),
  ignoreWhitespace: z.boolean().default(false),
  stdErrTabToWhitespace: z.boolean().default(false),
  containsErrorString: z.boolean().default(false),
});
const config = z.object({
  repository: z.string().optional(),
  skip: z.string().optional(),
  commands: z.array(command),
});

export type PorchCommand = z.infer<typeof command>;
export interface PorchCase extends z.infer<typeof config> {
  readonly name: string;
}

/** The output of a command, in the form that Porch's suite compares. */
export interface Outcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface PorchCaseTools {
  readonly porchctl: string;
  readonly kubeconfig: string;
  /** URL of the Git host that replaces Porch's. */
  readonly gitHost: string;
  /** An existing folder for pulled packages. */
  readonly scratch: string;
}

/** The folder of the Porch module that porchctl is built from; undefined where it is not on this machine. */
export async function porchModule(): Promise<string | undefined> {
  const words = ['list', '-mod=readonly', '-m', '-f', '{{.Dir}}', 'github.com/nephio-project/porch'];
  try {
    const { stdout } = await run('go', words, { cwd: MODULE_FOLDER, env: { ...process.env, GOTOOLCHAIN: 'local' } });
    return stdout.trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Reads the command-line cases in the folder of a Porch module, or of its `testdata`. */
export async function readPorchCases(module: string): Promise<PorchCase[]> {
  const root = join(module, 'test/e2e/cli/testdata');
  const names = (await readdir(root)).sort();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(root, name, 'config.yaml'), 'utf8');
      return withoutReplay({ name, ...config.parse(parse(text)) });
    }),
  );
}

/**
 * A case that copies drafts by repeating their tasks, adapted to newer versions of Porch, which copy published revisions only: with
 * the draft itself in place of its copy.
 */
function withoutReplay(one: PorchCase): PorchCase {
  const replay = one.commands.find(({ args }) => args.some((word) => word.startsWith('--replay-strategy')));
  const source = replay?.args.at(-1);
  const workspace = replay?.args.find((word) => word.startsWith('--workspace='))?.slice('--workspace='.length);
  if (source === undefined || workspace === undefined) return one;
  const copy = source.replace(/[^.]+$/, workspace);
  const text = JSON.stringify(one.commands.filter((command) => command !== replay));
  return { ...one, commands: z.array(command).parse(JSON.parse(text.replaceAll(copy, source))) };
}

/** Creates the bare repository of a case, with a README on main as Porch's suite does. */
export function makeCaseRepository(root: string, name: string): void {
  const folder = join(root, 'nephio');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  const identity = { NAME: "Nephio O' Test", EMAIL: 'nephiotest@example.com' };
  const env = {
    ...process.env,
    ...Object.fromEntries(
      Object.entries(identity).flatMap(([key, value]) => [
        [`GIT_AUTHOR_${key}`, value],
        [`GIT_COMMITTER_${key}`, value],
      ]),
    ),
  };
  const git = (words: readonly string[], input = '') =>
    execFileSync('git', ['--git-dir', path, ...words], { env, input, encoding: 'utf8' }).trim();
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', path]);
  const blob = git(['hash-object', '-w', '--stdin'], '# Test\n');
  const tree = git(['mktree'], `100644 blob ${blob}\tREADME.md\n`);
  git(['update-ref', 'refs/heads/main', git(['commit-tree', '-m', 'Initial commit', tree])]);
}

/** Runs a command of a case. `sluice` replaces `kpt`, since its function verbs are the same. */
export async function runPorchCommand({ args, ...options }: PorchCommand, tools: PorchCaseTools): Promise<Outcome> {
  const [program = '', ...words] = args.map((word) => replaceHosts(word, tools));
  const [file, first] =
    program === 'porchctl' ? [tools.porchctl, []] : program === 'kpt' ? [process.execPath, [SLUICE]] : [program, []];
  const child = spawn(file, [...first, ...words], {
    env: { ...process.env, KUBECONFIG: tools.kubeconfig, HOME: tools.scratch, NO_COLOR: '1' },
    timeout: 60_000,
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  // A command that ends without reading its input is fine.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.stdin);
  const exitCode = await new Promise<number>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? -1));
  });
  return comparable({ exitCode, stdout, stderr }, options);
}

/** The output that Porch's suite expects of a command, with the host and the scratch folder of this run. */
export function expectedOutcome(expected: PorchCommand, tools: PorchCaseTools): Outcome {
  const { exitCode, stdout, stderr } = expected;
  const outcome = { exitCode, stdout: replaceHosts(stdout, tools), stderr: replaceHosts(stderr, tools) };
  return comparable(outcome, expected);
}

function replaceHosts(text: string, { gitHost, scratch }: PorchCaseTools): string {
  return text.replaceAll(HOST, gitHost).replaceAll(SCRATCH, scratch);
}

/** Porch's suite ignores the order of lines and of YAML keys, versions, times and durations. */
function comparable({ exitCode, stdout, stderr }: Outcome, options: Omit<PorchCommand, 'args'>): Outcome {
  const seen = stderr
    .split('\n')
    .filter((line) => !line.includes('[PASS]'))
    .join('\n');
  const tabs = options.stdErrTabToWhitespace ? seen.replaceAll('\t', '  ') : seen;
  const words = (text: string) =>
    options.ignoreWhitespace
      ? text
          .split(' ')
          .filter((word) => word !== '')
          .join(' ')
      : text;
  return { exitCode, stdout: words(options.yaml ? sortedYaml(stdout) : sortedLines(stdout)), stderr: words(tabs) };
}

function sortedLines(text: string): string {
  // Addresses of this run have another length, and columns with them another width.
  const narrow = text.split('\n').map((line) => line.trimEnd().replace(/ {2,}/g, '  '));
  const [head = '', ...lines] = narrow.filter((line) => line !== '');
  return [head, ...lines.sort()].join('\n');
}

function sortedYaml(text: string): string {
  const kept = text.split('\n').filter((line) => !/resourceVersion:|creationTimestamp:/.test(line));
  const sorted = (_: string, value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return JSON.stringify(withoutRendered(parse(kept.join('\n'))), sorted, 2) ?? '';
}

/** Without the condition that newer versions of Porch write, as Sluice does. */
function withoutRendered(list: unknown): unknown {
  const { items = [], ...rest } = (list ?? {}) as { items?: Record<string, unknown>[] };
  const plain = items.map((item) => {
    const { conditions = [], ...status } = (item.status ?? {}) as { conditions?: { type: string }[] };
    const others = conditions.filter(({ type }) => type !== 'Rendered');
    const { status: _status, ...kept } = item;
    const left = { ...status, ...(others.length === 0 ? {} : { conditions: others }) };
    return Object.keys(left).length === 0 ? kept : { ...kept, status: left };
  });
  return { ...rest, items: plain };
}
