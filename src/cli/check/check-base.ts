import { SluiceError } from '../../foundation/sluice-error.ts';
import { printable } from '../output/printable.ts';
import { runGit } from './run-git.ts';

/** Throws InvalidInput, with what to do, unless the clone has the base, and a commit that the base and HEAD have in common. */
export async function checkBase(root: string, base: string): Promise<void> {
  if ((await find(root, ['rev-parse', '--verify', '--quiet', `${base}^{commit}`])) === '')
    throw new SluiceError(
      'InvalidInput',
      (await isShallow(root))
        ? `this shallow clone has no commit "${printable(base)}"; ${WHOLE_HISTORY}`
        : `there is no commit "${printable(base)}"; fetch it first, or name another one with --base`,
    );
  if ((await find(root, ['merge-base', base, 'HEAD'])) !== '') return;
  throw new SluiceError(
    'InvalidInput',
    `"${printable(base)}" and the commit that is checked out have no commit in common; ${(await isShallow(root)) ? `the clone is shallow: ${WHOLE_HISTORY}` : 'name a base of the same history with --base'}`,
  );
}

const WHOLE_HISTORY =
  'fetch the whole history of both branches, for example by "git fetch --unshallow", or "fetch-depth: 0" of actions/checkout';

/** What git prints, without the end of the line; empty if it finds nothing. */
async function find(root: string, args: readonly string[]): Promise<string> {
  return (await runGit(root, args, { permitted: [1] })).trim();
}

async function isShallow(root: string): Promise<boolean> {
  return (await find(root, ['rev-parse', '--is-shallow-repository'])) === 'true';
}
