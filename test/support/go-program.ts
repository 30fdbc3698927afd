import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The message of the go command when modules are missing on this machine and cannot be downloaded. */
const NOT_FETCHED = /dial tcp|no such host|i\/o timeout|TLS handshake|module lookup disabled|(403|5\d\d) [A-Z]/;

/** Ignored by git, and not writable by others as the temporary folder of the system is. */
export const goCacheFolder = fileURLToPath(new URL('../../node_modules/.cache/sluice-go/', import.meta.url));

/** What is built from a module, whose folder is relative to `test/go`. */
export interface GoSource {
  readonly module: string;
  readonly name: string;
  readonly target: string;
  /** Further arguments of `go build`. */
  readonly flags?: readonly string[];
}

export const CLIENTS: GoSource = { module: '.', name: 'clients', target: './clients' };
export const PORCHCTL: GoSource = {
  module: 'porchctl',
  name: 'porchctl',
  target: 'github.com/nephio-project/porch/cmd/porchctl',
};

/** Renders the chart of `deploy`. */
export const HELM: GoSource = { module: '../cluster/tools/helm', name: 'helm', target: 'helm.sh/helm/v3/cmd/helm' };

export interface GoProgram {
  /** Path of the program; undefined if it cannot be had here. */
  readonly path: string | undefined;
  /** Why not. */
  readonly missing: string;
}

/**
 * Builds a program of a module in `test/go`. What was downloaded, compiled and linked before is used again. Throws with the words
 * of the compiler if the program is wrong; without Go, or without modules and a way to get them, it is missing.
 */
export async function buildGoProgram({ module, name, target, flags = [] }: GoSource): Promise<GoProgram> {
  return build(fileURLToPath(new URL(`../go/${module}`, import.meta.url)), name, [...flags, target]);
}

/**
 * Builds the program at the root of a published module, in the version `path@version`, with the dependencies that its own go.sum names.
 * What the checksum database of Go does not confirm is not built.
 */
export async function buildGoModule(module: string, name: string): Promise<GoProgram> {
  try {
    const options = { env: goEnvironment(), maxBuffer: 1 << 26 };
    const { stdout } = await run('go', ['mod', 'download', '-json', module], options);
    return await build((JSON.parse(stdout) as { Dir: string }).Dir, name, ['.']);
  } catch (error) {
    const missing = whyMissing(error);
    if (missing === undefined) throw error;
    return { path: undefined, missing: `${module}: ${missing}` };
  }
}

/** Builds the tests of a package of the module in a folder. */
export async function buildGoTest(folder: string, name: string, target: string): Promise<GoProgram> {
  return build(folder, name, [target], ['test', '-c']);
}

async function build(
  cwd: string,
  name: string,
  target: readonly string[],
  verb: readonly string[] = ['build'],
): Promise<GoProgram> {
  await mkdir(goCacheFolder, { recursive: true });
  const path = join(goCacheFolder, name);
  const args = [...verb, '-mod=readonly', '-ldflags=-s -w', '-o', path, ...target];
  try {
    await run('go', args, { cwd, maxBuffer: 1 << 26, env: goEnvironment() });
    return { path, missing: '' };
  } catch (error) {
    const missing = whyMissing(error);
    if (missing !== undefined) return { path: undefined, missing };
    const { stderr = '' } = error as { stderr?: string };
    throw new Error(`go ${[...verb, ...target].join(' ')}:\n${stderr.slice(-4000)}`, { cause: error });
  }
}

function goEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, GOTOOLCHAIN: 'local' };
}

/** Why a call of the go command cannot succeed on this machine; undefined if something else went wrong. */
export function whyMissing(error: unknown): string | undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'go is not installed';
  const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string };
  if (/requires go >= /.test(stderr)) return 'go is too old';
  return NOT_FETCHED.test(stderr + stdout) ? 'modules of Go cannot be fetched' : undefined;
}
