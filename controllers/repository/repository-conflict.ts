import type { Repository } from '../../src/resource/kinds/repository.ts';
import { keyOf, keyText, type Stored } from '../../src/resource/object.ts';
import { canonicalAddress, overlap } from './repository-address.ts';

/**
 * The Repository object that holds the packages which this one asks for: the same repository and branch, and the same folder or
 * one inside the other; also one with the same name in another namespace, since package revisions are named after their repository.
 * The one that is open goes first, then the older one. Undefined if there is none. Whoever asks often gives an `addressOf` that
 * remembers.
 */
export async function conflictingRepository(
  object: Repository,
  others: Iterable<Stored<Repository>>,
  isOpen: (other: Stored<Repository>) => boolean,
  addressOf: (address: string) => Promise<string> = canonicalAddress,
): Promise<Stored<Repository> | undefined> {
  const own = await placeOf(object, addressOf);
  for (const other of others) {
    if (other.metadata.uid === object.metadata.uid || other.metadata.deletionTimestamp !== undefined) continue;
    if (!isOpen(other) && !isOlder(other, object)) continue;
    const place = await placeOf(other, addressOf);
    if (own === undefined || place === undefined || place.branch !== own.branch) continue;
    if (place.address === own.address && overlap(place.directory, own.directory)) return other;
  }
  return undefined;
}

async function placeOf({ spec }: Repository, addressOf: (address: string) => Promise<string>) {
  if (spec.git === undefined) return undefined;
  const { repo, branch, directory } = spec.git;
  return { address: await addressOf(repo), branch, directory };
}

function isOlder(one: Repository, other: Repository): boolean {
  const [a, b] = [one, other].map(({ metadata }) => metadata.creationTimestamp);
  return a === b ? keyText(keyOf(one)) < keyText(keyOf(other)) : String(a) < String(b);
}
