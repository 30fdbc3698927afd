import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { buildOnce, userCacheFolder } from '../../support/built-once.ts';
import { whyMissing } from '../../support/go-program.ts';

const run = promisify(execFile);

const MODULE = fileURLToPath(new URL('../tools/', import.meta.url));
/** Without it, kube-apiserver reports the version `v0.0.0-master`. */
const KUBERNETES_VERSION = 'v1.36.3';

/** The programs with their packages, in the order in which they are built. */
const PACKAGES = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  kwok: 'sigs.k8s.io/kwok/cmd/kwok',
  kustomize: 'sigs.k8s.io/kustomize/kustomize/v5',
  'kustomize-controller': 'github.com/fluxcd/kustomize-controller',
} as const;

type ProgramName = keyof typeof PACKAGES;

export interface ClusterPrograms {
  readonly folder: string;
  /** The path of a program. */
  pathOf(name: ProgramName): string;
  /** A file with the stages of nodes and pods that kwok plays. */
  readonly stages: string;
}

/**
 * Builds the programs of `test/cluster/tools`, once for each user of this machine and each version of their dependencies. `report` receives
 * a line for each step, with its duration. Returns the reason where Go or the modules are not available; throws with the output of the
 * compiler if it fails.
 */
export async function clusterPrograms(
  report: (line: string) => void,
): Promise<ClusterPrograms | { readonly missing: string }> {
  const folder = join(userCacheFolder('sluice-cluster'), await hashOfDependencies());
  const pathOf = (name: ProgramName) => join(folder, name);
  const stages = join(folder, 'stages.yaml');
  try {
    for (const [name, target] of Object.entries(PACKAGES))
      await buildOnce(join(folder, name), (unfinished) => buildProgram(name, target, unfinished, report));
    await buildOnce(stages, async (unfinished) => writeFile(unfinished, await kwokStages()));
    return { folder, pathOf, stages };
  } catch (error) {
    const missing = whyMissing(error);
    if (missing === undefined) throw error;
    return { missing };
  }
}

/** The documents with which its module makes nodes and pods ready at once. Without stages, kwok does not start. */
async function kwokStages(): Promise<string> {
  const module = (await timed(['list', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/kwok'])).stdout.trim();
  const documents: string[] = [];
  for (const stage of ['node/fast', 'node/heartbeat', 'pod/fast']) {
    const folder = join(module, 'kustomize/stage', stage);
    const files = (await readdir(folder)).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml');
    for (const file of files) documents.push(await readFile(join(folder, file), 'utf8'));
  }
  return documents.join('\n---\n');
}

/** Other versions are built into another folder. */
async function hashOfDependencies(): Promise<string> {
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) hash.update(await readFile(join(MODULE, file)));
  return hash.digest('hex').slice(0, 16);
}

async function buildProgram(name: string, target: string, path: string, report: (line: string) => void): Promise<void> {
  // A step of its own, so that the time of the network is not counted to the compiler.
  const download = await timed(['list', '-deps', '-f', '{{.ImportPath}}', target]);
  report(`${name}: downloaded in ${download.seconds} s`);
  const version = 'k8s.io/component-base/version';
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(KUBERNETES_VERSION) ?? [];
  const variables = { gitVersion: KUBERNETES_VERSION, gitMajor: major, gitMinor: minor };
  const settings = Object.entries(variables).map(([variable, value]) => `-X ${version}.${variable}=${value}`);
  const build = await timed(['build', '-ldflags', ['-s -w', ...settings].join(' '), '-o', path, target]);
  report(`${name}: built in ${build.seconds} s, with ${build.cpuSeconds} s of processor time`);
}

interface TimedCommand {
  readonly stdout: string;
  readonly seconds: number;
  /** Of the command and the compilers that it started. */
  readonly cpuSeconds: number;
}

/** Runs the go command in the module of the programs. */
async function timed([verb = '', ...args]: readonly string[]): Promise<TimedCommand> {
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOWORK: 'off', CGO_ENABLED: '0' };
  const start = Date.now();
  // Only a shell reports the processor time of a process that has ended.
  const script = 'command -v go > /dev/null || exit 127; go "$@"; code=$?; times >&2; exit $code';
  const command = ['-c', script, 'go', verb, '-mod=readonly', ...args];
  try {
    const { stdout, stderr } = await run('sh', command, { cwd: MODULE, env, maxBuffer: 1 << 26 });
    return { stdout, seconds: Math.round((Date.now() - start) / 1000), cpuSeconds: cpuSecondsOf(stderr) };
  } catch (error) {
    const { code, stderr = '' } = error as { readonly code?: unknown; readonly stderr?: string };
    if (code === 127) throw Object.assign(new Error('go is not installed'), { code: 'ENOENT' });
    if (whyMissing(error) !== undefined) throw error;
    throw new Error(`go ${verb} ${args.join(' ')} failed:\n${stderr.slice(-4000)}`, { cause: error });
  }
}

/** Reads the last line of `times`: user and system time of the children of the shell. */
function cpuSecondsOf(output: string): number {
  const times = (output.trim().split('\n').at(-1) ?? '').matchAll(/(\d+)m([\d.]+)s/g);
  return Math.round([...times].reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0));
}
