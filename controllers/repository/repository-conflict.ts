import { canonicalAddress, foldersOverlap } from '../../src/git/open/repository-address.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type Stored } from '../../src/resource/object/object.ts';

/**
 * The Repository object of the same namespace whose packages overlap with those of this one: the same repository and branch, and the
 * same folder or one inside the other. The open one has priority, then the one that was read before, then the older one. Undefined if there
 * is none. A caller that calls often passes a caching `addressOf`.
 */
export async function conflictingRepository(
  object: Repository,
  others: Iterable<Stored<Repository>>,
  isOpen: (other: Stored<Repository>) => boolean,
  addressOf: (address: string) => Promise<string> = canonicalAddress,
): Promise<Stored<Repository> | undefined> {
  for (const other of others) {
    if (isGone(other, object) || namespaceOf(other) !== namespaceOf(object)) continue;
    if (!isOpen(other) && !precedes(other, object)) continue;
    if (other.metadata.name === object.metadata.name) return other;
    if (await isSamePlace(object, other, addressOf)) return other;
  }
  return undefined;
}

/**
 * The object of another namespace that registered the same packages first; undefined if there is none. Both are open, on one
 * mirror, and the policies of both namespaces apply; controllers act for the first one only.
 */
export async function leadingRepository(
  object: Repository,
  others: Iterable<Stored<Repository>>,
  addressOf: (address: string) => Promise<string> = canonicalAddress,
): Promise<Stored<Repository> | undefined> {
  for (const other of others) {
    if (isGone(other, object) || namespaceOf(other) === namespaceOf(object) || !isOlder(other, object)) continue;
    if (await isSamePlace(object, other, addressOf)) return other;
  }
  return undefined;
}

function isGone({ metadata }: Stored<Repository>, object: Repository): boolean {
  return metadata.uid === object.metadata.uid || metadata.deletionTimestamp !== undefined;
}

function namespaceOf({ metadata }: Repository): string {
  return metadata.namespace ?? DEFAULT_NAMESPACE;
}

/**
 * Registrations with other branches publish other packages and have their own lists of these, so that both are open and controllers act
 * for each. They share drafts and records: the policies of each namespace apply in the other whatever the branch, see session-policy.ts.
 */
async function isSamePlace(
  { spec: { git: one } }: Repository,
  { spec: { git: other } }: Repository,
  addressOf: (address: string) => Promise<string>,
): Promise<boolean> {
  if (one === undefined || other === undefined || one.branch !== other.branch) return false;
  if (!foldersOverlap(one.directory, other.directory)) return false;
  return (await addressOf(one.repo)) === (await addressOf(other.repo));
}

/** Clients know the packages of the one that was read: they must not vanish because a process starts. */
function precedes(one: Repository, other: Repository): boolean {
  const [a, b] = [one, other].map(({ status }) => status?.lastFullSyncTime != null);
  return a === b ? isOlder(one, other) : a === true;
}

function isOlder(one: Repository, other: Repository): boolean {
  const [a, b] = [one, other].map(({ metadata }) => metadata.creationTimestamp);
  return a === b ? keyText(keyOf(one)) < keyText(keyOf(other)) : String(a) < String(b);
}
