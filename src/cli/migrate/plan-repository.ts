import { conflictingRepository } from '../../../controllers/repository/repository-conflict.ts';
import { messageOf } from '../../foundation/sluice-error.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type Stored } from '../../resource/object/object.ts';
import { isExpected } from '../output/report-error.ts';
import { differences } from '../transfer/import-plan.ts';
import { portableObject } from '../transfer/portable-object.ts';
import type { RepositoryReport } from './migration-report.ts';

/** On a Repository whose package revisions newer versions of Porch keep as custom resources. */
const V1ALPHA2_ANNOTATION = 'porch.kpt.dev/v1alpha2-migration';

export interface RepositoryPlan extends Pick<RepositoryReport, 'action' | 'message' | 'next'> {
  /** What Sluice would have; absent if it can have none. */
  readonly object?: Repository;
}

/** Decides what becomes of a Repository of Porch. `existing` are those of Sluice in the same namespace, and those planned before. */
export async function planRepository(
  given: Stored<Repository>,
  existing: readonly Stored<Repository>[],
): Promise<RepositoryPlan> {
  const { name } = given.metadata;
  if (given.spec.type === 'oci' || given.spec.git === undefined)
    return {
      ...{ action: 'blocked', message: `repositories of type ${given.spec.type} are not supported` },
      next: 'copy its packages to a Git repository, or leave it to Porch; --only selects the others',
    };
  let object: Repository;
  try {
    object = registrationOf(given);
  } catch (error) {
    if (!isExpected(error)) throw error;
    const next = 'correct the Repository at Porch; an address with a password needs a Secret instead';
    return {
      action: 'blocked',
      message: `Sluice refuses the object: ${withoutPasswords(messageOf(error), given)}`,
      next,
    };
  }
  const same = existing.find(({ metadata }) => metadata.name === name);
  if (same !== undefined) {
    const fields = differences(object, registrationOf(same));
    if (fields.length === 0) return { action: 'present', object };
    return {
      ...{ action: 'conflict', object, message: `Sluice has another Repository of this name (${fields.join(', ')})` },
      next: `change one of the two, or forget that of Sluice: sluice repo unreg ${name} -n ${given.metadata.namespace}`,
    };
  }
  const other = await conflictingRepository(object, existing, () => true);
  if (other === undefined) return { action: 'register', object };
  return {
    action: 'blocked',
    message: `Repository conflict with existing repository: ${keyText(keyOf(other))} has the same packages, or some of them`,
    next: 'Sluice registers packages once in each namespace: delete one of the two at Porch, or exclude it with --only',
  };
}

/**
 * The part of a Repository that both systems have: without finalizers and owners, which belong to the controllers of one cluster, and
 * without the time of a requested synchronisation, which "repo sync" writes.
 */
function registrationOf(given: Stored<Repository>): Repository {
  const { metadata, spec, ...rest } = portableObject(repositoryKind, given).object as Repository;
  const { name, namespace, labels, annotations: all = {} } = metadata;
  const { [V1ALPHA2_ANNOTATION]: _handed, ...annotations } = all;
  const { schedule } = spec.sync ?? {};
  const { sync: _sync, ...content } = spec;
  return {
    ...rest,
    metadata: {
      ...{ name, namespace },
      ...(labels === undefined ? {} : { labels }),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec: { ...content, ...(schedule === undefined ? {} : { sync: { schedule } }) },
  };
}

/** The address of a repository without what can be a secret; also an address that is no URL. */
export function shownAddress({ spec }: Repository): string {
  return maskedAddress(spec.git?.repo ?? spec.oci?.registry ?? '-');
}

/** A start such as `https://`, also where slashes are missing or wrong, which parsers of URLs correct. */
const SCHEME = /^(?:[a-z][a-z0-9+.-]*:[\\/]{2,}|(?:git\+)?(?:https?|ssh|git|file|oci):[\\/]*)/i;

/**
 * Masks the user and password, the query and the fragment. The name of an SSH user alone is no secret; the one of an http address can be a
 * token.
 */
function maskedAddress(whole: string): string {
  const address = whole.replace(/[?#].*$/s, (rest) => `${rest[0]}***`);
  const scheme = SCHEME.exec(address)?.[0] ?? '';
  const at = address.lastIndexOf('@');
  const user = address.slice(scheme.length, Math.max(at, scheme.length));
  // An @ in a path.
  if (user === '' || /^[\\/]/.test(user) || (/[\\/]/.test(user) && hasNoUser(address))) return address;
  const isSsh = scheme === '' || /^(?:git\+)?ssh:/i.test(scheme);
  return isSsh && /^[\w.-]+$/.test(user) ? address : `${scheme}***${address.slice(at)}`;
}

function hasNoUser(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, host, username, password } = new URL(address);
  return protocol !== '' && host !== '' && username === '' && password === '';
}

/** A text whose addresses contain no secrets, also where a password contains a slash; `repository` is the one that it is about. */
export function withoutPasswords(text: string, repository?: Repository): string {
  const address = repository?.spec.git?.repo ?? repository?.spec.oci?.registry;
  const known = address ? text.replaceAll(address, () => maskedAddress(address)) : text;
  return known
    .replaceAll(/(?<=[a-z]:\/\/)[^\s"]*@/gi, '***@')
    .replaceAll(/([a-z]:\/\/[^\s"?#]*[?#])[^\s"]+/gi, '$1***');
}
