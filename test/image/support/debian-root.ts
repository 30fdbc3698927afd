import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MIRROR = 'http://deb.debian.org/debian';

/** Why this machine cannot execute the Dockerfile; undefined if it can. */
export function whyNoRoot(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root on Linux can make a Debian root';
  if (!succeeds('debootstrap', '--version')) return 'debootstrap is not installed';
  if (!succeeds('unshare', '--mount', '--pid', '--fork', 'true')) return 'this machine allows no mount namespaces';
  return undefined;
}

function succeeds(program: string, ...words: readonly string[]): boolean {
  try {
    execFileSync(program, words, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export interface DebianRoot {
  readonly path: string;
  /** Why there is none: Debian's packages cannot be downloaded here. */
  readonly missing: string | undefined;
}

/** Makes the files of `debian:<suite>-slim`, but with documentation, in a folder. */
export async function makeDebianRoot(suite: string, folder: string): Promise<DebianRoot> {
  const path = join(folder, suite);
  try {
    await run('debootstrap', ['--variant=minbase', suite, path, MIRROR], { maxBuffer: 1 << 26 });
    return { path, missing: undefined };
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    if (!/Failed getting release|Couldn't download|Couldn't reach/.test(stdout + stderr)) throw error;
    return { path, missing: `no Debian packages: ${MIRROR} is not reachable` };
  }
}
