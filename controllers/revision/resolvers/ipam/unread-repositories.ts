import type { RevisionStore } from '../../../../src/package/revision-store.ts';
import type { Client } from '../../../../src/resource/client.ts';
import { repositoryKind } from '../../../../src/resource/kinds/repository.ts';

/** Registered Git repositories whose packages nobody has read yet, by name. */
export async function unreadRepositories(client: Client, store: RevisionStore, signal: AbortSignal): Promise<string[]> {
  const { items } = await client.list(repositoryKind, { signal });
  const open = new Set(store.repositories().map(({ repository }) => repository));
  return items
    .filter(({ spec, metadata }) => spec.git !== undefined && metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name)
    .filter((name) => !open.has(name));
}
