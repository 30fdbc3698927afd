import { SluiceError } from '../../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../../foundation/time/clock.ts';
import { porchPackageKind } from '../../../resource/kinds/porch/porch-package.ts';
import { deepFreeze, keyText, type ObjectKey, type Stored } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import type { ObjectOf } from '../../../resource/schema/kind.ts';
import { ListPages } from '../../../resource/storage/memory/list-pages.ts';
import { ObjectIndex } from '../../../resource/storage/memory/object-index.ts';
import { notFound, resourceName } from '../../../resource/storage/memory/object-rules.ts';
import { topicOf } from '../../../resource/storage/memory/object-storage.ts';
import { compileSelection } from '../../../resource/storage/selection.ts';
import type {
  ListOptions,
  ListResult,
  Storage,
  Verb,
  WatchEvent,
  WatchOptions,
} from '../../../resource/storage/storage.ts';
import type { EventLog } from '../../../resource/watch/event-log.ts';
import {
  type IndexKey,
  indexedObject,
  indexKeysOf,
  narrowestKey,
  sharedKeysOf,
} from '../../../resource/watch/index-key.ts';
import type { LoggedChange } from '../../../resource/watch/log-entry.ts';
import type { IndexChange } from '../../index/state/index-delta.ts';
import { packageName, packageUid } from '../../model/identity/identity.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import { createdAt } from '../objects/revision-object.ts';
import { notSupported } from './not-supported.ts';

type Package = ObjectOf<typeof porchPackageKind>;

const TOPIC = topicOf(porchPackageKind);

/** Counters of a package, so that the cost of a change is independent of the number of its revisions. */
interface Tally {
  readonly repository: string;
  readonly path: string;
  readonly namespace: string;
  revisions: number;
  /** The revision that is the latest, and its number. */
  latest: { readonly name: string; readonly revision: number } | undefined;
  /** Creation time of its first revision, RFC 3339. It stays the same once clients have seen the object. */
  readonly since: string;
  object: Stored<Package> | undefined;
}

/** Packages as Kubernetes objects: what their revisions have in common. They come and go with the revisions. */
export class PorchPackageStorage implements Storage<Package> {
  readonly kind = porchPackageKind;
  readonly subResources: readonly string[] = [];
  readonly verbs: readonly Verb[] = ['get', 'list', 'watch'];
  readonly #store: RevisionStore;
  readonly #log: EventLog;
  readonly #tallies = new Map<string, Tally>();
  readonly #index = new ObjectIndex<Stored<Package>>((object) => sharedKeysOf(indexedObject(object), porchPackageKind));
  readonly #pages: ListPages<Stored<Package>, Package>;

  constructor(store: RevisionStore, log: EventLog, clock: Clock = systemClock) {
    this.#store = store;
    this.#log = log;
    this.#pages = new ListPages(clock, (object) => object);
    // No events exist for changes in Git while no process ran.
    log.expire(TOPIC);
    this.#take(store.list().map((after) => ({ before: undefined, after })));
    store.subscribe((changes) => this.#take(changes));
  }

  async get(_context: RequestContext, key: ObjectKey): Promise<Stored<Package>> {
    const found =
      key.namespace === undefined
        ? [...this.#tallies.values()].find(({ object }) => object?.metadata.name === key.name)?.object
        : this.#tallies.get(`${key.namespace}/${key.name}`)?.object;
    if (found === undefined) throw this.#store.openingError(keyText(key)) ?? notFound(this.kind, key.name);
    return found;
  }

  async list(_context: RequestContext, options: ListOptions = {}): Promise<ListResult<Package>> {
    const narrow = narrowestKey(options, this.kind);
    const selects = compileSelection(options, this.kind);
    return this.#pages.list(options, this.#log.version, () => this.#index.select(narrow), selects);
  }

  watch(_context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<Package>> {
    const { resourceVersion, signal } = options;
    const selects = compileSelection(options, this.kind);
    const indexKey = narrowestKey(options, this.kind);
    return this.#log.follow<Package>(TOPIC, { resourceVersion, signal, selects, indexKey });
  }

  async create(): Promise<never> {
    throw notSupported(this.kind, 'create');
  }

  async update(): Promise<never> {
    throw notSupported(this.kind, 'update');
  }

  async updateSubResource(_context: RequestContext, name: string): Promise<never> {
    throw new SluiceError('Unsupported', `${resourceName(this.kind)} have no sub-resource ${JSON.stringify(name)}`);
  }

  async delete(): Promise<never> {
    throw notSupported(this.kind, 'delete');
  }

  #take(changes: readonly IndexChange[]): void {
    const touched = new Set<Tally>();
    for (const { before, after } of changes) {
      const of = after ?? before;
      const tally = after === undefined ? of && this.#tallies.get(packageId(of)) : this.#tallyOf(after);
      if (tally === undefined) continue;
      touched.add(tally);
      tally.revisions += (after === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
      if (after?.latest === true) tally.latest = { name: after.name, revision: after.revision };
      else if (tally.latest?.name === of?.name) tally.latest = undefined;
    }
    // Only the result of all changes together is reported.
    for (const tally of touched) this.#settle(tally);
  }

  #tallyOf(revision: PackageRevision): Tally {
    const { key } = revision;
    const id = packageId(revision);
    const known = this.#tallies.get(id);
    if (known !== undefined) return known;
    const { namespace, index } = this.#store.repositoryOf(revision);
    const place = { repository: key.repository, path: key.package, namespace };
    // Uses all its revisions: when a repository is added, some may be announced later.
    const [since = ''] = [revision, ...index.ofPackage(key.package)].map(createdAt).sort();
    const tally: Tally = { ...place, revisions: 0, latest: undefined, since, object: undefined };
    this.#tallies.set(id, tally);
    return tally;
  }

  #settle(tally: Tally): void {
    const { object: before, latest, revisions } = tally;
    const name = packageName({ repository: tally.repository, package: tally.path });
    if (revisions > 0 && before !== undefined && before.status?.latestRevision === (latest?.revision ?? 0)) return;
    if (revisions <= 0) this.#tallies.delete(`${tally.namespace}/${name}`);
    if (revisions <= 0 && before === undefined) return;
    this.#log.append<Package>(TOPIC, (resourceVersion) => {
      const after = revisions > 0 ? packageObject(name, tally, resourceVersion) : undefined;
      tally.object = after;
      const key = { namespace: tally.namespace, name };
      if (after === undefined) this.#index.delete(key);
      else this.#index.set(key, after);
      return logged(before, after);
    });
  }
}

function packageId({ namespace, key }: PackageRevision): string {
  return `${namespace}/${packageName(key)}`;
}

function packageObject(name: string, tally: Tally, resourceVersion: string): Stored<Package> {
  const { namespace, repository, path, latest, since } = tally;
  return deepFreeze({
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PorchPackage',
    metadata: {
      name,
      namespace,
      uid: packageUid(name, namespace),
      resourceVersion,
      creationTimestamp: since,
    },
    spec: { packageName: path, repository },
    status: { latestRevision: latest?.revision ?? 0 },
  });
}

function logged(before: Stored<Package> | undefined, after: Stored<Package> | undefined): LoggedChange<Package> {
  const indexKeys = () => new Set([before, after].flatMap((object) => (object === undefined ? [] : keysOf(object))));
  return { before, after, indexKeys };
}

function keysOf(object: Stored<Package>): IndexKey[] {
  return indexKeysOf(indexedObject(object), porchPackageKind);
}
