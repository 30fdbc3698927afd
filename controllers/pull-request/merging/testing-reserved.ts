import { vi } from 'vitest';
import { PushRefusedError } from '../../../src/git/errors.ts';
import { hostRepository } from '../../../test/support/delivery-pull-request.ts';
import type { Proposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';

/** A proposal, shown by its pull request, in a repository whose main branch the host reserves for merges. `unprotect` ends that. */
export async function proposeReserved(
  at: Proposals,
  review: Record<string, unknown> = {},
  spec: Record<string, unknown> = {},
): Promise<{ readonly name: string; unprotect(): void }> {
  await at.policy(review, spec);
  const name = await at.propose();
  const unprotect = protectMain(at.world.store.repository('apps'));
  hostRepository(at.forge, at.path);
  await at.reconcile(name);
  return { name, unprotect };
}

/** The controller and the syncs of a while. */
export async function settleReserved(at: Proposals, name: string, times = 3): Promise<void> {
  for (let turn = 0; turn < times; turn += 1) {
    await at.world.store.repository('apps').sync();
    await at.reconcile('apps');
    await at.reconcile(name);
  }
}

/** A rule of the host refuses every tag. */
export function protectTags(at: Proposals): void {
  const { git } = at.world.store.repository('apps');
  const transaction = git.transaction.bind(git);
  vi.spyOn(git, 'transaction').mockImplementation(async (updates) => {
    const tag = updates.find(({ ref, type }) => ref.startsWith('refs/tags/') && type !== 'verify');
    if (tag === undefined) return transaction(updates);
    throw new PushRefusedError({ ref: tag.ref }, `the remote rejected ${tag.ref}: protected tag`);
  });
}
