import { openRepository } from '../../src/git/open/open-repository.ts';
import type { Scratch } from './scratch-repository.ts';

/** Pushes a package as a draft branch, or as the next commit on it, as a person with plain git would. */
export async function pushDraft(
  scratch: Scratch,
  name: string,
  files: ReadonlyMap<string, Uint8Array | string | null>,
): Promise<void> {
  const git = await openRepository(scratch.path);
  const ref = `refs/heads/drafts/${name}/v1`;
  const tip = await git.resolveRef(ref);
  const parent = tip ?? (await git.resolveRef('refs/heads/main')) ?? '';
  const edits = new Map(
    [...files].map(([path, data]) => [`${name}/${path}`, data === null ? null : { data: Buffer.from(data) }] as const),
  );
  const signature = { name: 'pusher', email: 'pusher@example.com', time: Date.now() };
  const tree = await git.editTree((await git.readCommit(parent)).tree, edits);
  const message = `${tip === undefined ? 'Add' : 'Edit'} ${name}\n`;
  const commit = await git.writeCommit({ tree, parents: [parent], author: signature, committer: signature, message });
  await git.transaction([
    tip === undefined ? { type: 'create', ref, new: commit } : { type: 'update', ref, old: tip, new: commit },
  ]);
  await git.close();
}
