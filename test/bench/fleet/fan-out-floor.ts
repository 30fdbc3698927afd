import { join } from 'node:path';
import { mapLimited } from '../../../src/foundation/concurrency/map-limited.ts';
import { git } from '../synthetic-repository.ts';

const QUIET = ['-c', 'gc.auto=0', '-c', 'maintenance.auto=false', '-c', 'core.fsync=loose-object,pack,reference'];
const DRAFTS = 'refs/heads/drafts/*';
/** Repositories at a time. */
const AT_ONCE = 2;

/** Commits of drafts. */
export async function draftsAhead(folder: string, names: readonly string[]): Promise<number> {
  const counts = await Promise.all(
    names.map(async (name) => {
      const range = [`--glob=${DRAFTS}`, '--not', 'refs/heads/main'];
      return Number(await git(['-C', join(folder, `${name}.git`), 'rev-list', '--count', ...range]));
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/**
 * Milliseconds that git needs for the drafts of these repositories: one `git fast-import` into a mirror, and one push to the server, for
 * each. The repositories before the drafts are at `floor-<name>.git`.
 */
export async function fanOutFloor(folder: string, names: readonly string[], url: string): Promise<number> {
  const jobs = await mapLimited(names, AT_ONCE, async (name) => {
    const mirror = join(folder, `mirror-${name}.git`);
    await git(['clone', '--quiet', '--bare', join(folder, `floor-${name}.git`), mirror]);
    const source = join(folder, `${name}.git`);
    const listed = await git(['-C', source, 'for-each-ref', '--format=%(refname)', DRAFTS]);
    const refs = listed.toString().split('\n').filter(Boolean);
    const range = ['--reference-excluded-parents', ...refs, '^refs/heads/main'];
    const stream = (await git(['-C', source, 'fast-export', ...range])).toString();
    return { mirror, refs, stream, address: `${url}/floor-${name}.git` };
  });
  const began = performance.now();
  await mapLimited(jobs, AT_ONCE, async ({ mirror, refs, stream, address }) => {
    await git(['-C', mirror, ...QUIET, 'fast-import', '--quiet', '--force'], stream);
    await git(['-C', mirror, ...QUIET, 'push', '--quiet', '--atomic', address, ...refs]);
  });
  return performance.now() - began;
}
