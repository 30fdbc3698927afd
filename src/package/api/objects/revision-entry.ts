import type { Condition } from '../../../../kptfile-schema/index.ts';
import {
  LATEST_REVISION_LABEL,
  packageRevisionKind,
  type RevisionDeployment,
  type PackageRevision as RevisionObject,
} from '../../../resource/kinds/porch/package-revision.ts';
import { deepFreeze, type ManagedFieldsEntry, type Stored } from '../../../resource/object/object.ts';
import { settledVersion } from '../../../resource/object/settled-version.ts';
import { type IndexedObject, type IndexKey, indexKeysOf, sharedKeysOf } from '../../../resource/watch/index-key.ts';
import { isComputedType } from '../../model/gates/ready-type.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { PackageRepository } from '../../store/package-repository.ts';
import { readyCondition } from './ready-condition.ts';
import { revisionObject } from './revision-object.ts';

/** The entry of each object. */
const entries = new WeakMap<object, RevisionEntry>();

/** Returns the entry of a package revision object; undefined for any other object. */
export function entryOf(object: Stored<RevisionObject>): RevisionEntry | undefined {
  return entries.get(object);
}

/** The last evaluation of the gates of a pending revision. */
export interface Readiness {
  /** Undefined if there was none yet, or there are no gates. */
  readonly condition: Condition | undefined;
  /** False if it is of an earlier state. */
  readonly isCurrent: boolean;
  /** Whether rules permit an approval, of a proposed revision that has some. */
  readonly approval?: Condition;
  /** Time at which a gate expires or a rule begins or ends to block, milliseconds since the epoch. */
  readonly until?: number;
}

export const NOT_EVALUATED: Readiness = { condition: undefined, isCurrent: false };

/** Lifecycle steps of one caller between Published and DeletionProposed, without another change between them. */
interface OwnSteps {
  readonly caller: string;
  /** The version before the first of them. */
  readonly since: string;
}

interface EntryParts {
  readonly managedFields?: readonly ManagedFieldsEntry[] | undefined;
  readonly ready?: Readiness;
  readonly since?: string;
  /** The version of the entry whose place it takes. */
  readonly replaces?: string | undefined;
}

/** A revision at one version, and its object once a caller requests it: most of tens of thousands are never read. */
export class RevisionEntry {
  readonly resourceVersion: string;
  /** The version of the last change that was more than a new evaluation of its gates. */
  readonly since: string;
  /** The version that it had before; undefined if there was none. */
  readonly replaces: string | undefined;
  readonly #managedFields: readonly ManagedFieldsEntry[] | undefined;
  #revision: PackageRevision;
  #repository: PackageRepository;
  #ready: Readiness;
  #ownSteps: OwnSteps | undefined;
  #object: Stored<RevisionObject> | undefined;

  constructor(
    revision: PackageRevision,
    repository: PackageRepository,
    resourceVersion: string,
    { managedFields, ready = NOT_EVALUATED, since = resourceVersion, replaces }: EntryParts = {},
  ) {
    this.#revision = revision;
    this.#repository = repository;
    this.resourceVersion = resourceVersion;
    this.since = since;
    this.replaces = replaces;
    this.#managedFields = managedFields;
    this.#ready = ready;
  }

  get revision(): PackageRevision {
    return this.#revision;
  }

  get repository(): PackageRepository {
    return this.#repository;
  }

  /** Notes that the repository was opened again and has the same revision. */
  move(revision: PackageRevision, repository: PackageRepository): void {
    this.#revision = revision;
    this.#repository = repository;
  }

  /** The last evaluation of its gates. */
  get ready(): Readiness {
    return this.#ready;
  }

  /** True if the object was created, so that clients may have seen it. */
  get isSeen(): boolean {
    return this.#object !== undefined;
  }

  /** Notes an evaluation that an existing object already contains. */
  noteReady(ready: Readiness): void {
    this.#ready = ready;
  }

  /** The same revision with another evaluation of its gates. */
  withReady(ready: Readiness, resourceVersion: string): RevisionEntry {
    const { revision, repository, since } = this;
    const managedFields = this.#managedFields;
    return new RevisionEntry(revision, repository, resourceVersion, { managedFields, ready, since });
  }

  /**
   * The current version in place of one that differs from it only in what is computed, so that a client that read the object before the
   * gates were evaluated does not fail with a conflict.
   */
  settledVersion(version: string | undefined): string | undefined {
    return settledVersion(version, { since: this.since, current: this.resourceVersion });
  }

  /**
   * Returns the current version in place of an older one if only lifecycle steps between Published and DeletionProposed lie between
   * them, all by this caller: the caller knows them, and published content never changes. Porch does not count lifecycle steps as
   * changes at all.
   */
  versionForStep(caller: string, version: string | undefined): string | undefined {
    const steps = this.#ownSteps;
    if (steps?.caller !== caller) return this.settledVersion(version);
    return settledVersion(version, { since: steps.since, current: this.resourceVersion });
  }

  /** Notes that a write of the caller replaced `before` by this entry, if nothing else changed between them. */
  noteOwnStep(caller: string, before: RevisionEntry): void {
    if (this.replaces !== before.resourceVersion || !isReversible(before.revision, this.revision)) return;
    const earlier = before.#ownSteps;
    this.#ownSteps = { caller, since: earlier?.caller === caller ? earlier.since : before.since };
  }

  get object(): Stored<RevisionObject> {
    this.#object ??= this.#make();
    return this.#object;
  }

  /** The object with what its reader computes from objects that are not in Git; it has no version of its own. */
  withDeployments(deployments: readonly RevisionDeployment[]): Stored<RevisionObject> {
    const { object } = this;
    if (deployments.length === 0) return object;
    const status = { ...(object.status ?? { publishTimestamp: null }), deployments };
    const made = deepFreeze({ ...object, status }) as Stored<RevisionObject>;
    entries.set(made, this);
    return made;
  }

  /** The keys that it is found by, without building the object. */
  indexKeys(): IndexKey[] {
    return indexKeysOf(this.#indexed(), packageRevisionKind);
  }

  /** The labels and fields among them. */
  sharedKeys(): IndexKey[] {
    return sharedKeysOf(this.#indexed(), packageRevisionKind);
  }

  #indexed(): IndexedObject {
    const { revision, repository } = this;
    const own = revision.record?.labels;
    const labels = revision.latest ? { ...own, [LATEST_REVISION_LABEL]: 'true' } : own;
    const field = (path: string) => fieldOf(revision, path);
    return { name: revision.name, namespace: repository.namespace, labels, field };
  }

  #make(): Stored<RevisionObject> {
    const { condition, approval } = this.#ready;
    const ready = readyCondition(this.revision, this.repository, condition);
    const object = withComputed(
      revisionObject(this.revision, this.repository),
      [ready, approval].filter((one) => one !== undefined),
    );
    const managedFields = this.#managedFields;
    const metadata = {
      ...object.metadata,
      resourceVersion: this.resourceVersion,
      ...(managedFields === undefined ? {} : { managedFields }),
    };
    // Parts that are shared with the index are immutable there too.
    const made = deepFreeze({ ...object, metadata }) as Stored<RevisionObject>;
    entries.set(made, this);
    return made;
  }
}

/** True for a step between Published and DeletionProposed without other changes. */
function isReversible(before: PackageRevision, after: PackageRevision): boolean {
  const states = [before.lifecycle, after.lifecycle];
  const same = before.uid === after.uid && before.commit === after.commit;
  return same && states.includes('Published') && states.includes('DeletionProposed');
}

/** Conditions of these types in the Kptfile do not count. */
function withComputed(object: RevisionObject, computed: readonly Condition[]): RevisionObject {
  const own = object.status?.conditions ?? [];
  if (computed.length === 0 && !own.some(({ type }) => isComputedType(type))) return object;
  const { conditions: _conditions, ...status } = object.status ?? { publishTimestamp: null };
  const conditions = [...own.filter(({ type }) => !isComputedType(type)), ...computed];
  return { ...object, status: { ...status, ...(conditions.length === 0 ? {} : { conditions }) } } as RevisionObject;
}

function fieldOf({ key, revision, lifecycle }: PackageRevision, path: string): string | undefined {
  switch (path) {
    case 'spec.revision':
      return String(revision);
    case 'spec.packageName':
      return key.package;
    case 'spec.repository':
      return key.repository;
    case 'spec.workspaceName':
      return key.workspace;
    case 'spec.lifecycle':
      return lifecycle;
    default:
      return undefined;
  }
}
