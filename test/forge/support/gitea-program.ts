import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildOnce, userCacheFolder } from '../../support/built-once.ts';
import { whyMissing } from '../../support/go-program.ts';

const run = promisify(execFile);

const MODULE = 'code.gitea.io/gitea';
export const GITEA_VERSION = '1.26.0';
/** The checksum of the module by Go: the same source, wherever it is fetched from. */
const SUM = 'h1:fJP9dqLbzKrKWUVnCVTfVersZdVDuyJQLEDzCAOmKKA=';
/** Compiling takes some minutes, and up to twenty on a busy machine. */
const BUILDS_WITHIN = 40 * 60_000;

export interface GiteaProgram {
  /** Path of the program. */
  readonly path: string;
  /** Folder of its source, from which it reads templates and translations. */
  readonly assets: string;
}

/**
 * Builds Gitea from its module, once for each user of this machine. Returns the reason where Go or the modules are not available; throws
 * with the output of the compiler if it fails.
 */
export async function giteaProgram(): Promise<GiteaProgram | { readonly missing: string }> {
  try {
    const assets = await fetchSource();
    const path = join(userCacheFolder('sluice-forge'), `gitea-${GITEA_VERSION}`);
    await buildOnce(path, async (unfinished) => {
      const flags = [
        '-mod=readonly',
        '-trimpath',
        '-tags=sqlite,sqlite_unlock_notify',
        `-ldflags=-s -w -X main.Version=${GITEA_VERSION}`,
      ];
      await go(['build', ...flags, '-o', unfinished, '.'], assets);
    });
    return { path, assets };
  } catch (error) {
    const missing = whyMissing(error);
    if (missing === undefined) throw error;
    return { missing };
  }
}

/** The folder of the source in the cache of modules. */
async function fetchSource(): Promise<string> {
  const stdout = await go(['mod', 'download', '-json', `${MODULE}@v${GITEA_VERSION}`], '/');
  const { Dir, Sum } = JSON.parse(stdout) as { readonly Dir: string; readonly Sum: string };
  if (Sum !== SUM) throw new Error(`${MODULE}@v${GITEA_VERSION} is ${Sum}, and not the reviewed source`);
  return Dir;
}

async function go(args: readonly string[], cwd: string): Promise<string> {
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOWORK: 'off' };
  return (await run('go', args, { cwd, env, timeout: BUILDS_WITHIN, maxBuffer: 1 << 26 })).stdout;
}
