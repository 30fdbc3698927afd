import type { Informer } from '../../../controller/informer.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { canonicalAddressNow } from '../../../git/open/repository-address.ts';
import type { RevisionStore } from '../../../package/store/revision-store.ts';
import type { Repository } from '../../../resource/kinds/porch/repository.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type ObjectKey, type Stored } from '../../../resource/object/object.ts';

/** Annotation of a Repository: with the value `true`, lists leave its packages out while it cannot be read, instead of failing. */
const OMIT_ANNOTATION = 'sluice.dev/omit-while-unreachable';

const RETRY_SECONDS = 2;

export interface UnreadRepositoriesOptions {
  /** Synced. */
  readonly repositories: Pick<Informer<Repository>, 'addHandler' | 'get'>;
  readonly store: Pick<RevisionStore, 'findRepository' | 'onArrival' | 'onDeparture'>;
  /** True if the repository was read before this process; see `wasRead`. */
  readonly wasRead: (repository: Stored<Repository>) => boolean;
  /** True if clients may have been shown packages of the repository at an address. */
  readonly wasShownAt: (address: string) => boolean;
}

/** The repositories that a list is about; absent parts mean all. */
interface Scope {
  readonly namespace?: string | undefined;
  readonly repository?: string | undefined;
}

/**
 * The repositories whose packages clients may have read from an earlier process, or from this one before, and which are not open: which
 * packages they have is unknown. A list without them would say that the packages are deleted, and the garbage collector of the cluster
 * would delete what they own. A repository that was never read is not among them, so nothing waits for it.
 */
export class UnreadRepositories {
  readonly #options: UnreadRepositoriesOptions;
  /** The uid of each repository that was read, by its id. */
  readonly #read = new Map<string, string | undefined>();
  /** Names by namespace, so that the cost of a request does not grow with the repositories. */
  readonly #unread = new Map<string, Set<string>>();
  readonly #unsubscribe: () => void;

  constructor(options: UnreadRepositoriesOptions) {
    this.#options = options;
    const { repositories, store } = options;
    let isStart = true;
    this.#unsubscribe = repositories.addHandler(({ type, object }) => {
      const key = keyOf(object);
      const id = keyText(key);
      if (isStart && options.wasRead(object)) this.#read.set(id, object.metadata.uid);
      if (type === 'delete') this.#read.delete(id);
      this.#update(id, type === 'delete' ? undefined : object);
    });
    isStart = false;
    store.onArrival((id) => {
      const object = this.#find(id);
      this.#read.set(id, object?.metadata.uid);
      this.#update(id, object);
    });
    store.onDeparture((id) => this.#update(id, this.#find(id)));
  }

  /** Ids, for the metrics. */
  *ids(): Generator<string> {
    for (const [namespace, names] of this.#unread) for (const name of names) yield `${namespace}/${name}`;
  }

  /** Throws Unavailable if one of the repositories of a scope is unread. */
  expectNone({ namespace, repository }: Scope): void {
    const namespaces = namespace === undefined ? this.#unread.keys() : [namespace];
    for (const one of namespaces) {
      const names = this.#unread.get(one);
      if (names === undefined) continue;
      const [first] = names;
      const name = repository === undefined ? first : repository;
      if (name !== undefined && names.has(name)) throw unread({ namespace: one, name });
    }
  }

  close(): void {
    this.#unsubscribe();
  }

  #find(id: string): Stored<Repository> | undefined {
    const [namespace = '', name = ''] = id.split('/');
    return this.#options.repositories.get({ namespace, name });
  }

  #update(id: string, object: Stored<Repository> | undefined): void {
    const [namespace = DEFAULT_NAMESPACE, name = ''] = id.split('/');
    const names = this.#unread.get(namespace) ?? new Set();
    if (object !== undefined && this.#isUnread(id, object)) names.add(name);
    else names.delete(name);
    if (names.size === 0) this.#unread.delete(namespace);
    else this.#unread.set(namespace, names);
  }

  #isUnread(id: string, { metadata, spec, status }: Stored<Repository>): boolean {
    if (metadata.deletionTimestamp !== undefined || metadata.annotations?.[OMIT_ANNOTATION] === 'true') return false;
    // One of this name that was registered later was never read.
    if (!this.#read.has(id) || this.#read.get(id) !== metadata.uid) return false;
    if (this.#options.store.findRepository(id) !== undefined) return false;
    // Without packages there is nothing that could look deleted. Those that appeared since are in the ledger, which is searched last.
    return status?.packageCount !== 0 || this.#options.wasShownAt(spec.git?.repo ?? '');
  }
}

/**
 * True if an earlier process has read a repository: it wrote the status, or clients were shown the repository before a status could be written,
 * as the ledger knows. Not one whose address has another registration that was read: what was shown may be of that one, and a second one
 * of the same place is refused, so that lists would wait for it for ever.
 */
export function wasRead(
  repository: Stored<Repository>,
  all: () => readonly Stored<Repository>[],
  wasShownAt: (address: string) => boolean,
): boolean {
  if (repository.status?.lastFullSyncTime != null) return true;
  const address = repository.spec.git?.repo ?? '';
  if (!wasShownAt(address)) return false;
  const canonical = canonicalAddressNow(address);
  return !all().some(
    ({ spec, status }) => status?.lastFullSyncTime != null && canonicalAddressNow(spec.git?.repo ?? '') === canonical,
  );
}

function unread({ namespace, name }: ObjectKey): SluiceError {
  return new SluiceError(
    'Unavailable',
    `cannot list packages: repository "${name}" in namespace "${namespace}" was read before and cannot be read now, so its packages are unknown; try again, see the condition Ready of the Repository for the cause, and for lists without its packages delete it or annotate it with ${OMIT_ANNOTATION}=true`,
    { details: { retryAfterSeconds: RETRY_SECONDS } },
  );
}
