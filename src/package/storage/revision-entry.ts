import { type IndexKey, indexKeysOf } from '../../resource/index-key.ts';
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
    const { revision } = this;
    const labels = { ...revision.record?.labels, ...(revision.latest ? { [LATEST_REVISION_LABEL]: 'true' } : {}) };
    const fields: Readonly<Record<string, string>> = {
      'spec.revision': String(revision.revision),
      'spec.packageName': revision.key.package,
      'spec.repository': revision.key.repository,
      'spec.workspaceName': revision.key.workspace,
      'spec.lifecycle': revision.lifecycle,
    };
    const { namespace } = this.repository;
    return indexKeysOf({ name: revision.name, namespace, labels, field: (path) => fields[path] }, packageRevisionKind);
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
