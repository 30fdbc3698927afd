import type { Informer } from '../../../controller/informer.ts';
import type { InformerEvent } from '../../../controller/informer-store.ts';
import { SharedCall } from '../../../foundation/concurrency/shared-call.ts';
import { messageOf } from '../../../foundation/sluice-error.ts';
import { type Clock, timestamp } from '../../../foundation/time/clock.ts';
import type { RuleProblem } from '../../../package/model/policy/approval-rules.ts';
import type { PolicyChange } from '../../../package/store/policies/concerned-revisions.ts';
import type { SourcedPolicy } from '../../../package/store/policies/effective-policy.ts';
import {
  POLICIES_ANNOTATION,
  type PoliciesReport,
  type PolicyInForce,
  policyFolderOf,
  policyFolderProblem,
  type Repository,
} from '../../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type Stored } from '../../../resource/object/object.ts';
import { type FolderState, type PolicySource, readPolicyFolder } from './policy-folder.ts';

export interface RepositoryPoliciesOptions {
  /** Of all Repositories; this adds an index and a handler to it. */
  readonly repositories: Informer<Repository>;
  readonly clock: Clock;
}

/** Each costs one look at its main branch in each decision in its namespace. */
export const MAX_REPOSITORIES_PER_NAMESPACE = 16;
const INDEX = 'policies';
const MAX_SHOWN_CHARACTERS = 256 * 1024;
const SHOWN_COMMIT_CHARACTERS = 10;

interface State {
  readonly uid: string;
  readonly folder: string;
  read?: FolderState | undefined;
  /** Why it could not be read, apart from its content. */
  failure?: string | undefined;
  /** Since when nothing is known of its policies. */
  since: string;
}

/** What is known of the policies of a namespace. */
interface Known {
  readonly policies: readonly SourcedPolicy[];
  readonly problems: ReadonlyMap<string, RuleProblem>;
}

const NONE: Known = { policies: [], problems: new Map() };

/**
 * The policies that Repositories name by the annotation `sluice.dev/policies`, from their main branches as last fetched. They apply in the
 * namespace of the Repository. As long as none are known of one that is named, there is a problem for its namespace, which permits no approval.
 */
export class RepositoryPolicies {
  /** Set by the session, which has the repositories. */
  source: PolicySource = async () => undefined;
  readonly #options: RepositoryPoliciesOptions;
  /** By the id of the repository. */
  readonly #states = new Map<string, State>();
  readonly #reads = new Map<string, SharedCall>();
  readonly #known = new Map<string, Known>();
  readonly #listeners = new Set<(change: PolicyChange) => void>();

  constructor(options: RepositoryPoliciesOptions) {
    this.#options = options;
    const { repositories } = options;
    repositories.addIndex(INDEX, (object) => (policyFolderOf(object) === undefined ? [] : [namespaceOf(object)]));
    repositories.addHandler((event) => this.#note(event));
  }

  /** The policies of the Repositories of a namespace. */
  policiesIn(namespace: string): readonly SourcedPolicy[] {
    return this.#of(namespace).policies;
  }

  /** Why those of some are not known, by the text that names them. */
  problemsIn(namespace: string): ReadonlyMap<string, RuleProblem> {
    return this.#of(namespace).problems;
  }

  /** Reads the present state of the main branches again; call it when the Repositories are current. */
  async refresh(namespaces: Iterable<string>): Promise<void> {
    const named = [...namespaces].flatMap((namespace) => this.#namedIn(namespace));
    await Promise.all(named.map((object) => this.#read(object)));
  }

  /** Reads those of one Repository again, and returns their state; undefined if it names none. */
  async report(object: Stored<Repository>): Promise<PoliciesReport | undefined> {
    const folder = policyFolderOf(object);
    if (folder === undefined) return undefined;
    const namespace = namespaceOf(object);
    const invalid = folderProblem(object) ?? this.#excess(object);
    if (invalid !== undefined) return notValid(invalid, undefined, namespace);
    await this.#read(object);
    const { read, failure } = this.#stateOf(object);
    const problem = failure ?? read?.problem;
    const inForce = read?.good === undefined ? {} : { inForce: shownPolicies(read.good.policies) };
    if (problem !== undefined) return { ...notValid(problem, read?.good?.commit, namespace), ...inForce };
    if (read?.good === undefined)
      return { status: 'Unknown', reason: 'NotRead', message: 'the repository has not been read yet' };
    const { policies, commit } = read.good;
    const count = policies.length === 1 ? '1 policy' : `${policies.length} policies`;
    const message = `${count} in ${folder} at commit ${shown(commit)}`;
    return { status: 'True', reason: 'Read', message, ...inForce };
  }

  /** Calls the listener with every change of these policies from now on; returns what ends that. */
  onChange(listener: (change: PolicyChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #of(namespace: string): Known {
    const known = this.#known.get(namespace) ?? this.#collect(namespace);
    this.#known.set(namespace, known);
    return known;
  }

  #collect(namespace: string): Known {
    const all = this.#allIn(namespace);
    if (all.length === 0) return NONE;
    const policies: SourcedPolicy[] = [];
    const problems = new Map<string, RuleProblem>();
    for (const object of all) {
      const { read, failure, since } = this.#stateOf(object);
      const invalid = folderProblem(object) ?? this.#excess(object);
      if (invalid === undefined && read?.good !== undefined) {
        policies.push(...read.good.policies);
        continue;
      }
      const { name } = object.metadata;
      const cause = invalid ?? failure ?? read?.problem ?? 'the repository has not been read yet';
      problems.set(`of Repository ${name}`, {
        since,
        message: `no approval is permitted in namespace ${namespace}, since the policies of Repository ${name} are not known: ${cause}`,
        resolvedBy: `users who may push to branch ${object.spec.git?.branch ?? 'main'} of Repository ${name}, or change that Repository`,
      });
    }
    return { policies, problems };
  }

  /** The Repositories of a namespace that name policies. The oldest come first, so that further ones take nothing from them. */
  #allIn(namespace: string): Stored<Repository>[] {
    return this.#options.repositories.byIndex(INDEX, namespace).sort(byAge);
  }

  #namedIn(namespace: string): Stored<Repository>[] {
    return this.#allIn(namespace)
      .slice(0, MAX_REPOSITORIES_PER_NAMESPACE)
      .filter((object) => folderProblem(object) === undefined);
  }

  #excess(object: Stored<Repository>): string | undefined {
    const position = this.#allIn(namespaceOf(object)).findIndex(({ metadata }) => metadata.uid === object.metadata.uid);
    if (position < MAX_REPOSITORIES_PER_NAMESPACE) return undefined;
    return `more than ${MAX_REPOSITORIES_PER_NAMESPACE} Repositories of the namespace have the annotation ${POLICIES_ANNOTATION}; remove it from some`;
  }

  #stateOf(object: Stored<Repository>): State {
    const id = keyText(keyOf(object));
    const { uid } = object.metadata;
    const folder = policyFolderOf(object) ?? '';
    const known = this.#states.get(id);
    if (known?.uid === uid && known.folder === folder) return known;
    const state: State = { uid, folder, since: timestamp(this.#options.clock.now()) };
    this.#states.set(id, state);
    return state;
  }

  /** Callers at the same time share the reads. */
  async #read(object: Stored<Repository>): Promise<void> {
    const id = keyText(keyOf(object));
    const shared = this.#reads.get(id) ?? new SharedCall(() => this.#readNow(id, keyOf(object)));
    this.#reads.set(id, shared);
    try {
      await shared.call();
    } finally {
      if (shared.isIdle && this.#reads.get(id) === shared) this.#reads.delete(id);
    }
  }

  async #readNow(id: string, key: ReturnType<typeof keyOf>): Promise<void> {
    const object = this.#options.repositories.get(key);
    if (object === undefined || policyFolderOf(object) === undefined) return;
    const state = this.#stateOf(object);
    const { folder } = state;
    const namespace = namespaceOf(object);
    const before = { read: state.read, failure: state.failure };
    try {
      const branch = await this.source(id);
      // What was read before stays in force while the repository is opened again.
      if (branch === undefined) return;
      const isRead = state.read !== undefined && state.read.head === branch.head;
      const place = { namespace, repository: object.metadata.name };
      if (!isRead) state.read = await readPolicyFolder(branch, folder, place, state.read);
      state.failure = undefined;
    } catch (error) {
      state.failure = `the repository cannot be read: ${messageOf(error)}`;
    }
    if (this.#states.get(id) !== state) return;
    this.#announce(namespace, before, state);
  }

  #announce(namespace: string, before: Pick<State, 'read' | 'failure'>, state: State): void {
    const [old, next] = [before.read?.good, state.read?.good];
    const cause = (of: Pick<State, 'read' | 'failure'>) => of.failure ?? of.read?.problem;
    if (old === next && (next !== undefined || cause(before) === cause(state))) return;
    this.#known.delete(namespace);
    const isKnown = old !== undefined && next !== undefined;
    this.#notify({ namespace, policies: isKnown ? [...old.policies, ...next.policies] : undefined });
  }

  #note(event: InformerEvent<Repository>): void {
    const { object } = event;
    const old = event.type === 'update' ? event.old : undefined;
    const folder = policyFolderOf(object);
    if (folder === undefined && (old === undefined || policyFolderOf(old) === undefined)) return;
    const namespace = namespaceOf(object);
    // The limit of a namespace may have let another one in.
    this.#known.delete(namespace);
    if (event.type === 'delete' || folder === undefined) this.#states.delete(keyText(keyOf(object)));
    if (event.type === 'update' && old !== undefined && policyFolderOf(old) === folder) return;
    this.#notify({ namespace, policies: undefined });
  }

  #notify(change: PolicyChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}

/** For the status of the Repository, which must not become too large to be stored. */
function shownPolicies(policies: readonly SourcedPolicy[]): PolicyInForce[] {
  const text = JSON.stringify(policies.flatMap((policy) => shownPolicy(policy) ?? []));
  const all = JSON.parse(text) as PolicyInForce[];
  if (text.length <= MAX_SHOWN_CHARACTERS) return all;
  return all.map(({ name, file, commit }) => ({ name, file, commit }));
}

/** The fields that a policy of a repository can have. */
function shownPolicy({ spec, origin }: SourcedPolicy): PolicyInForce | undefined {
  if (origin === undefined) return undefined;
  const { name, file, commit } = origin;
  const { selector, requiredGates, validFor, pushDenied, pushMayGive, gateDeadlines, commitBudgetPerHour } = spec;
  const { dependencies } = spec;
  const { forbidSelfApproval, quorum, windows, freezes, maxInFlight, soak } = spec.approval;
  return {
    ...{ name, file, commit },
    spec: {
      ...{ selector, requiredGates, validFor, pushDenied, pushMayGive, gateDeadlines, dependencies },
      // JSON has no Infinity, which stands for no limit.
      ...(Number.isFinite(commitBudgetPerHour) ? { commitBudgetPerHour } : {}),
      approval: { forbidSelfApproval, quorum, windows, freezes, maxInFlight, soak },
    },
  };
}

function folderProblem(object: Stored<Repository>): string | undefined {
  const folder = policyFolderOf(object);
  return folder === undefined ? undefined : policyFolderProblem(folder);
}

function notValid(problem: string, commit: string | undefined, namespace: string): PoliciesReport {
  const effect =
    commit === undefined
      ? `no approval is permitted in namespace ${namespace} until they are valid`
      : `those of commit ${shown(commit)} stay in force`;
  return { status: 'False', reason: 'Invalid', message: `${problem}; ${effect}` };
}

function shown(commit: string): string {
  return commit.slice(0, SHOWN_COMMIT_CHARACTERS);
}

function namespaceOf({ metadata }: Stored<Repository>): string {
  return metadata.namespace ?? '';
}

function byAge({ metadata: one }: Stored<Repository>, { metadata: two }: Stored<Repository>): number {
  const [left = '', right = ''] = [one, two].map(({ creationTimestamp = '', name }) => `${creationTimestamp} ${name}`);
  return left < right ? -1 : 1;
}
