import { type Indexed, type IndexKey, indexKeysOf, sharedKeysOf } from '../../resource/index-key.ts';
import {
  LATEST_REVISION_LABEL,
  packageRevisionKind,
  type PackageRevision as RevisionObject,
} from '../../resource/kinds/package-revision.ts';
import { deepFreeze, type ManagedFieldsEntry, type Stored } from '../../resource/object.ts';
import type { PackageRepository } from '../package-repository.ts';
import type { PackageRevision } from '../package-revision.ts';
import { revisionObject } from './revision-object.ts';

/** Which entry an object was made from. */
const entries = new WeakMap<object, RevisionEntry>();

/** The entry that an object of a package revision was made from; undefined for any other object. */
export function entryOf(object: Stored<RevisionObject>): RevisionEntry | undefined {
  return entries.get(object);
}

/** A revision at one version, and its object once somebody asks for it: most of tens of thousands are never looked at. */
export class RevisionEntry {
  readonly revision: PackageRevision;
  readonly repository: PackageRepository;
  readonly resourceVersion: string;
  readonly #managedFields: readonly ManagedFieldsEntry[] | undefined;
  #object: Stored<RevisionObject> | undefined;

  constructor(
    revision: PackageRevision,
    repository: PackageRepository,
    resourceVersion: string,
    managedFields: readonly ManagedFieldsEntry[] | undefined,
  ) {
    this.revision = revision;
    this.repository = repository;
    this.resourceVersion = resourceVersion;
    this.#managedFields = managedFields;
  }

  get object(): Stored<RevisionObject> {
    this.#object ??= this.#make();
    return this.#object;
  }

  /** What it is found by, told without making the object. */
  indexKeys(): IndexKey[] {
    return indexKeysOf(this.#indexed(), packageRevisionKind);
  }

  /** The labels and fields among them. */
  sharedKeys(): IndexKey[] {
    return sharedKeysOf(this.#indexed(), packageRevisionKind);
  }

  #indexed(): Indexed {
    const { revision, repository } = this;
    const own = revision.record?.labels;
    const labels = revision.latest ? { ...own, [LATEST_REVISION_LABEL]: 'true' } : own;
    const field = (path: string) => fieldOf(revision, path);
    return { name: revision.name, namespace: repository.namespace, labels, field };
  }

  #make(): Stored<RevisionObject> {
    const object = revisionObject(this.revision, this.repository);
    const managedFields = this.#managedFields;
    const metadata = {
      ...object.metadata,
      resourceVersion: this.resourceVersion,
      ...(managedFields === undefined ? {} : { managedFields }),
    };
    // What it shares with the index is never changed there either.
    const made = deepFreeze({ ...object, metadata }) as Stored<RevisionObject>;
    entries.set(made, this);
    return made;
  }
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
