import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import type { Client } from '../../../../src/resource/client/client.ts';
import { type Repository, repositoryKind } from '../../../../src/resource/kinds/porch/repository.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../../../src/resource/object/object.ts';
import { conflictingRepository } from '../../../repository/repository-conflict.ts';

/** Names of registered Git repositories whose packages have not been read yet. */
export async function unreadRepositories(client: Client, store: RevisionStore, signal: AbortSignal): Promise<string[]> {
  const { items } = await client.list(repositoryKind, { signal });
  const open = new Set(store.repositories().map(({ namespace, repository }) => `${namespace}/${repository}`));
  const isOpen = ({ metadata }: Stored<Repository>) =>
    open.has(`${metadata.namespace ?? DEFAULT_NAMESPACE}/${metadata.name}`);
  const unread: string[] = [];
  for (const object of items) {
    const { spec, metadata } = object;
    if (spec.git === undefined || metadata.deletionTimestamp !== undefined || isOpen(object)) continue;
    // A second object for the same packages is never opened; its packages are known through the first.
    const other = await conflictingRepository(object, items, isOpen);
    if (other === undefined || !isOpen(other) || !covers(other, object)) unread.push(metadata.name);
  }
  return unread;
}

function covers(other: Stored<Repository>, object: Stored<Repository>): boolean {
  if (other.metadata.name === object.metadata.name) return false;
  const [outer, inner] = [other, object].map(({ spec }) => `/${spec.git?.directory ?? ''}/`.replace(/\/+/g, '/'));
  return inner?.startsWith(outer ?? '/') ?? false;
}
