import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { buildOnce, userCacheFolder } from '../../../support/built-once.ts';
import { whyMissing } from '../../../support/go-program.ts';

const run = promisify(execFile);

/** The module that names the version of Porch. */
const MODULE = fileURLToPath(new URL('../../../go/porchctl/', import.meta.url));
const PORCH = 'github.com/nephio-project/porch';

export interface PorchProgram {
  /** Path of Porch's API server. */
  readonly path: string;
  /** Folder of the module, with its definitions. */
  readonly module: string;
}

/** Builds Porch's API server, once for each user of this machine and each version. Returns the reason where that is not possible. */
export async function porchProgram(): Promise<PorchProgram | { readonly missing: string }> {
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) hash.update(await readFile(join(MODULE, file)));
  const path = join(userCacheFolder('sluice-porch'), `porch-server-${hash.digest('hex').slice(0, 16)}`);
  try {
    await buildOnce(path, async (unfinished) => {
      await go('build', '-ldflags', '-s -w', '-o', unfinished, `${PORCH}/cmd/porch`);
    });
    await go('mod', 'download', PORCH);
    return { path, module: (await go('list', '-m', '-f', '{{.Dir}}', PORCH)).trim() };
  } catch (error) {
    const missing = whyMissing(error);
    if (missing === undefined) throw error;
    return { missing };
  }
}

async function go(verb: string, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOWORK: 'off', CGO_ENABLED: '0', GOFLAGS: '-mod=readonly' };
  return (await run('go', [verb, ...args], { cwd: MODULE, env, maxBuffer: 1 << 26 })).stdout;
}
