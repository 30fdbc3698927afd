import type { RenderStatus } from '../../../../kptfile-schema/index.ts';
import { mapLimited } from '../../../foundation/concurrency/map-limited.ts';
import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import type { PackageRevision as RevisionObject } from '../../../resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../../resource/kinds/porch/package-revision-resources.ts';
import { invalidObject, invalidValue } from '../../../resource/object/invalid-object.ts';
import { keyText, type ObjectKey, type Stored } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import type { ObjectOf } from '../../../resource/schema/kind.ts';
import { checkPreconditions, notFound, resourceName } from '../../../resource/storage/memory/object-rules.ts';
import type {
  ListOptions,
  ListResult,
  Storage,
  Verb,
  WatchEvent,
  WatchOptions,
} from '../../../resource/storage/storage.ts';
import { revisionId } from '../../model/revision/package-revision.ts';
import type { Lifecycle } from '../../model/revision/revision-state.ts';
import { isAppliedBefore } from '../../plan/edit/applied-before.ts';
import type { RevisionChange } from '../../plan/edit/change.ts';
import { savedUnrendered } from '../../plan/edit/render-failure.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import { type FieldOwners, memoryFieldOwners } from '../objects/field-owners.ts';
import {
  BINARY_FILES_ANNOTATION,
  filesOf,
  resourcesObject,
  unreadableObject,
  withoutFiles,
} from '../objects/resources-object.ts';
import { entryOf, type RevisionEntry } from '../objects/revision-entry.ts';
import { notSupported } from './not-supported.ts';
import type { PackageRevisionStorage } from './package-revision-storage.ts';

type Resources = ObjectOf<typeof packageRevisionResourcesKind>;

/**
 * The annotation of `kubectl apply`. It is a copy of the files and is not stored, so kubectl warns each time that it is
 * missing.
 */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** Files that one list may hold together, in bytes of UTF-8 as far as they are ASCII; binary ones as base64. */
const MAX_LIST_BYTES = 64 * 1024 * 1024;
/** Packages that are read at the same time. */
const MAX_READERS = 8;
/** Events whose files are kept for the other watchers that will request them. */
const MAX_KEPT_EVENTS = 8;

/**
 * The files of package revisions as Kubernetes objects. They are read on request. Name, uid, version and labels are those
 * of the package revision, so a write of the one is a conflict for a writer of the other.
 *
 * An update replaces all text files, and binary files where it names them (Porch's clients do not); a patch, which the server makes into an update of what was read, touches the files that it
 * names.
 */
export class PackageResourcesStorage implements Storage<Resources> {
  readonly kind = packageRevisionResourcesKind;
  readonly subResources: readonly string[] = [];
  readonly updatesNeedVersion = true;
  readonly verbs: readonly Verb[] = ['get', 'list', 'patch', 'update', 'watch'];
  readonly applyNeverRemoves = true;
  readonly #store: RevisionStore;
  readonly #revisions: PackageRevisionStorage;
  readonly #owners: FieldOwners;
  readonly #recent = new Map<object, Promise<Stored<Resources>>>();

  constructor(store: RevisionStore, revisions: PackageRevisionStorage, owners: FieldOwners = memoryFieldOwners()) {
    this.#store = store;
    this.#revisions = revisions;
    this.#owners = owners;
    // A recreated revision has the same uid, but is independent of the previous one.
    store.subscribe((changes) => {
      for (const { before, after } of changes)
        if (after === undefined && before !== undefined) owners.set(before.uid, undefined);
    });
  }

  async get(_context: RequestContext, key: ObjectKey): Promise<Stored<Resources>> {
    const entry = await this.#revisions.table.evaluated(key);
    if (entry === undefined) throw this.#absence(key);
    return this.#read(entry);
  }

  async list(_context: RequestContext, options: ListOptions = {}): Promise<ListResult<Resources>> {
    const page = this.#revisions.listFor(this.kind, options);
    let size = 0;
    const items = await mapLimited(page.items, MAX_READERS, async (object) => {
      const item = await this.#present(object);
      const { resources = {}, binaryResources = {} } = item.spec;
      for (const text of [...Object.values(resources), ...Object.values(binaryResources)]) size += text.length;
      if (size > MAX_LIST_BYTES)
        throw new SluiceError(
          'LimitExceeded',
          `the packages of this list have more than ${MAX_LIST_BYTES} bytes together; request fewer at a time with limit, or select some`,
        );
      return item;
    });
    return { ...page, items: Object.freeze(items) };
  }

  /** Every change of the package revision is one of this object too, since they share their version. */
  async *watch(_context: RequestContext, options: WatchOptions): AsyncGenerator<WatchEvent<Resources>> {
    for await (const event of this.#revisions.watchFor(this.kind, options)) {
      if (event.type === 'BOOKMARK') yield event;
      // The files of a deleted revision may be missing as well.
      else if (event.type === 'DELETED') yield { type: 'DELETED', object: withoutFiles(event.object) };
      else yield { type: event.type, object: await this.#shared(event.object) };
    }
  }

  async create(): Promise<never> {
    throw notSupported(this.kind, 'create');
  }

  async update(context: RequestContext, object: Resources): Promise<Stored<Resources>> {
    const { metadata, spec } = object;
    // This is decided first, so that planning the write does not wait for a query while it occupies a slot of the
    // repository.
    if (context.mayWriteStatus !== undefined) await context.mayWriteStatus();
    const entry = this.#existing(metadata);
    const stored = entry.object;
    if (metadata.resourceVersion === undefined || metadata.resourceVersion === '')
      throw withPrefix(context, new SluiceError('InvalidInput', 'resourceVersion must be specified for an update'));
    const { resourceVersion } = metadata;
    const version = entry.settledVersion(resourceVersion) ?? resourceVersion;
    try {
      checkPreconditions(this.kind, stored, { ...metadata, resourceVersion: version });
    } catch (error) {
      throw isSluiceError(error, 'Conflict') ? withPrefix(context, error) : error;
    }
    this.#checkSpec(stored, object);
    this.#warnOfIgnored(context, stored, object);
    const whole = filesOf(object);
    // With `disableRender` the files are written as they are; the revision controller renders them later.
    let rendered: RenderStatus | undefined;
    const change: RevisionChange = {
      whole,
      mustRender: true,
      ...(spec.disableRender === true ? { rendering: { kptfile: [] } } : {}),
      onRendered: (status) => {
        rendered = status;
      },
    };
    const { revision } = entry;
    // A client that applies the same files repeatedly does not revert changes of controllers, nor edit published revisions.
    if (isApplied(metadata, revision.lifecycle) && (await isAppliedBefore(entry.repository, revision, whole))) {
      context.warn?.(
        `${revision.name} (${revision.lifecycle}) was left as it is: it was made from these files already`,
      );
      return this.#read(entry);
    }
    const id = revisionId(revision);
    const write = this.#revisions.table.beginWrite(context, id, undefined);
    let after: RevisionEntry | undefined;
    try {
      const updated = withContentErrors(revision.name, () =>
        this.#store.update(id, { change, expectedCommit: revision.commit }, context),
      );
      after = await write.finish(await updated);
    } finally {
      write.end();
    }
    if (metadata.managedFields !== undefined && context.dryRun !== true)
      this.#owners.set(revision.uid, metadata.managedFields.length === 0 ? undefined : metadata.managedFields);
    // As in Porch, the caller sees an error although the files are saved.
    if (rendered?.errorSummary !== undefined) throw savedUnrendered(rendered.errorSummary);
    // As in Porch, what the functions did is in the response; later it is where the Kptfile keeps it.
    return this.#read(after ?? entry, rendered);
  }

  /** An update that does not name binary files keeps them; a patch that removes the field removes the files. */
  afterPatch(live: Resources, patched: Resources): Resources {
    if (live.spec.binaryResources === undefined || patched.spec.binaryResources !== undefined) return patched;
    return { ...patched, spec: { ...patched.spec, binaryResources: {} } };
  }

  async updateSubResource(_context: RequestContext, name: string): Promise<never> {
    throw new SluiceError('Unsupported', `${resourceName(this.kind)} have no sub-resource ${JSON.stringify(name)}`);
  }

  async delete(): Promise<never> {
    throw notSupported(this.kind, 'delete');
  }

  #existing(key: ObjectKey): RevisionEntry {
    const found = this.#revisions.table.get(key);
    if (found === undefined) throw this.#absence(key);
    return found;
  }

  #absence(key: ObjectKey): SluiceError {
    return this.#store.openingError(keyText(key)) ?? notFound(this.kind, key.name);
  }

  async #read(entry: RevisionEntry, rendered?: RenderStatus): Promise<Stored<Resources>> {
    const { revision, repository } = entry;
    const owners = this.#owners.get(revision.uid);
    const status = rendered ?? revision.kptfile?.status?.renderStatus;
    const content = await withContentErrors(revision.name, () => repository.content(revision));
    return resourcesObject(entry.object, content, status, owners);
  }

  /** An object that cannot be read contains the reason, and does not affect other objects. */
  async #present(object: Stored<RevisionObject>): Promise<Stored<Resources>> {
    const entry = entryOf(object);
    if (entry === undefined) throw new SluiceError('Internal', `${object.metadata.name} was not made from a revision`);
    try {
      return await this.#read(entry);
    } catch (error) {
      const known = (['NotFound', 'LimitExceeded', 'InvalidInput'] as const).some((code) => isSluiceError(error, code));
      if (!known || !isSluiceError(error)) throw error;
      return unreadableObject(object, error.message);
    }
  }

  /** The same object for all who watch. */
  #shared(object: Stored<RevisionObject>): Promise<Stored<Resources>> {
    const known = this.#recent.get(object);
    if (known !== undefined) return known;
    const shown = this.#present(object);
    this.#recent.set(object, shown);
    for (const old of this.#recent.keys()) {
      if (this.#recent.size <= MAX_KEPT_EVENTS) break;
      this.#recent.delete(old);
    }
    // The caller gets the error; the next one tries again.
    shown.catch(() => this.#recent.delete(object));
    return shown;
  }

  #checkSpec(stored: Stored<RevisionObject>, { metadata, spec }: Resources): void {
    const own = stored.spec;
    const causes = (['repository', 'packageName', 'workspaceName', 'revision'] as const)
      .filter((field) => spec[field] !== undefined && spec[field] !== (own[field] ?? 0) && spec[field] !== own[field])
      .map((field) => invalidValue(['spec', field], spec[field], 'field is immutable'));
    if (causes.length > 0)
      throw invalidObject(`${this.kind.kind}.${this.kind.group} ${JSON.stringify(metadata.name)}`, causes);
  }

  #warnOfIgnored(context: RequestContext, stored: Stored<RevisionObject>, { metadata }: Resources): void {
    const { [BINARY_FILES_ANNOTATION]: _binary, [LAST_APPLIED]: _applied, ...annotations } = metadata.annotations ?? {};
    const same =
      sameValue(metadata.labels ?? {}, stored.metadata.labels ?? {}) && Object.keys(annotations).length === 0;
    if (!same)
      context.warn?.(
        'labels and annotations of packagerevisionresources are ignored; write them to the package revision',
      );
  }
}

/** Any user who may push can write a tree that Git itself would not write, which is a problem of the package and no defect. */
async function withContentErrors<Result>(name: string, action: () => Promise<Result>): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (!isSluiceError(error, 'Corrupt')) throw error;
    throw new SluiceError(
      'InvalidInput',
      `the files of ${name} cannot be read: ${error.message}. Push the branch again, or delete the revision`,
      { cause: error },
    );
  }
}

/**
 * Over the API, with the prefix of Porch: porchctl prints it, and scripts compare what it prints. The code is that of the error, so that
 * clients try again after a conflict.
 */
function withPrefix({ face }: RequestContext, error: SluiceError): SluiceError {
  if (face !== 'api') return error;
  const { code, details } = error;
  return new SluiceError(code, `Internal error occurred: ${error.message}`, { cause: error, details });
}

/** By kubectl on its side; of a draft, where other writes count as well, server-side apply cannot be distinguished from them. */
function isApplied({ annotations, managedFields = [] }: Resources['metadata'], lifecycle: Lifecycle): boolean {
  if (annotations?.[LAST_APPLIED] !== undefined) return true;
  return lifecycle !== 'Draft' && managedFields.some(({ operation }) => operation === 'Apply');
}
