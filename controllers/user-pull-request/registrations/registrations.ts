import { digest } from '../../../src/foundation/text/canonical-json.ts';
import { canonicalAddress } from '../../../src/git/open/repository-address.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Repository } from '../../../src/resource/kinds/porch/repository.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../../src/resource/object/object.ts';
import { isChecked } from '../judging/read-user-pull.ts';

/** A Repository in which pull requests of users are checked. */
export interface Registration {
  readonly object: Stored<Repository>;
  readonly key: ObjectKey;
  /** Undefined while it is not open. */
  readonly repository: PackageRepository | undefined;
  /** From the root of the Git repository; empty for the root. */
  readonly directory: string;
  /** The policies that have its pull requests checked. */
  readonly reviews: readonly ReviewPolicy[];
}

export interface RegistrationReader {
  readonly store: Pick<RevisionStore, 'findRepository'>;
  /** The registered repositories whose address may be the same as this one. */
  registered(address: string): readonly Stored<Repository>[] | Promise<readonly Stored<Repository>[]>;
  reviewsOf(repository: Stored<Repository>): readonly ReviewPolicy[] | Promise<readonly ReviewPolicy[]>;
}

/**
 * All Repositories of the Git repository and branch of one, that one too, in which pull requests of users are checked; the oldest first. A pull
 * request has one check and one comment of a topic, whatever number of them has the packages that it changes. Those that follow another one are left
 * out, since that one judges the same packages, and those that have never been read: a mere object adds no requirement.
 */
export async function registrationsAt(
  reader: RegistrationReader,
  object: Stored<Repository>,
): Promise<readonly Registration[]> {
  const { git } = object.spec;
  return git === undefined ? [] : registrationsOf(reader, object, git, (branch) => branch === git.branch);
}

/** The same for the other branches of its Git repository, by branch. */
export async function otherBranchesOf(
  reader: RegistrationReader,
  object: Stored<Repository>,
): Promise<ReadonlyMap<string, readonly Registration[]>> {
  const { git } = object.spec;
  if (git === undefined) return new Map();
  const all = await registrationsOf(reader, object, git, (branch) => branch !== git.branch);
  return Map.groupBy(all, (one) => one.object.spec.git?.branch ?? '');
}

async function registrationsOf(
  { store, registered, reviewsOf }: RegistrationReader,
  object: Stored<Repository>,
  git: NonNullable<Repository['spec']['git']>,
  isWanted: (branch: string) => boolean,
): Promise<readonly Registration[]> {
  const address = await canonicalAddress(git.repo);
  const found: Registration[] = [];
  // The list may not have this one yet, or as it was.
  const others = (await registered(git.repo)).filter(({ metadata }) => metadata.uid !== object.metadata.uid);
  for (const one of [object, ...others].sort(byAge)) {
    const { metadata, spec, status } = one;
    if (spec.git === undefined || !isWanted(spec.git.branch) || metadata.deletionTimestamp !== undefined) continue;
    if (spec.git.repo !== git.repo && (await canonicalAddress(spec.git.repo)) !== address) continue;
    const key = keyOf(one);
    const repository = store.findRepository(keyText(key));
    if (repository === undefined ? status?.lastFullSyncTime == null : repository.follows) continue;
    const reviews = (await reviewsOf(one)).filter(isChecked);
    const directory = repository?.layout.directory ?? spec.git.directory.replace(/^\/$/, '');
    if (reviews.length > 0) found.push({ object: one, key, repository, directory, reviews });
  }
  return found;
}

/** The one that reads the pull requests, and writes their checks and comments for all: the oldest one that is open. */
export function leadOf(registrations: readonly Registration[]): Registration | undefined {
  return registrations.find(({ repository }) => repository !== undefined);
}

/** What decides about all checks of the pull requests of these: where it changes, all are checked again. */
export function rulesDigest(registrations: readonly Registration[]): string {
  const rules = JSON.stringify(
    registrations.map(({ key, object, repository, reviews }) => [
      ...[keyText(key), object.metadata.uid, repository !== undefined],
      reviews.map(({ mergesSince: _since, ...rest }) => rest),
    ]),
  );
  // Each of them keeps it.
  return digest(rules);
}

function byAge(one: Stored<Repository>, other: Stored<Repository>): number {
  const age = ({ metadata }: Stored<Repository>) =>
    `${metadata.creationTimestamp ?? ''} ${keyText({ namespace: metadata.namespace ?? '', name: metadata.name })}`;
  return age(one) < age(other) ? -1 : 1;
}
