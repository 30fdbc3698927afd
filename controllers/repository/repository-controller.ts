import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import { specOrMetadataChanged } from '../../src/controller/predicates.ts';
import { TerminalError } from '../../src/controller/reconciler.ts';
import { toObject, triggerSource, watchKind } from '../../src/controller/source.ts';
import { isSluiceError, messageOf, SluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { MirrorRepair } from '../../src/git/git-repository.ts';
import { isHosted, localPath } from '../../src/git/open/open-location.ts';
import type { RepositoryOptions } from '../../src/git/open/open-repository.ts';
import { canonicalAddress } from '../../src/git/open/repository-address.ts';
import type { Finding } from '../../src/package/kernel/classify.ts';
import type { OpenOptions } from '../../src/package/store/opening/open-package-repository.ts';
import { RepositoryOpener } from '../../src/package/store/opening/repository-opener.ts';
import { Signers } from '../../src/package/store/opening/signing.ts';
import {
  allowedSignersOf,
  hostUsersNameOf,
  parseHostUsers,
  parsePeople,
} from '../../src/package/store/policies/user-lists.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import {
  type PoliciesReport,
  type Repository,
  repositoryKind,
  TRUST_CONDITION,
} from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import type { ObjectOf } from '../../src/resource/schema/kind.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { HostPauses } from './host-pauses.ts';
import { Maintainer } from './maintainer.ts';
import { OpenRepository } from './open-repository.ts';
import { DamageRepairs, repairMessage } from './repair-damage.ts';
import { conflictingRepository, leadingRepository } from './repository-conflict.ts';
import { RepositoryObjects } from './repository-objects.ts';
import { CANNOT_SIGN, type RepositoryReport } from './repository-status.ts';
import { REMOTE_INTERVALS, steady } from './sync-pace.ts';
import { SyncRequests } from './sync-requests.ts';
import { WorkerLimits } from './worker-limits.ts';

export const REPOSITORY_ACTOR = 'controller:repository';

const LATER = { requeueAfter: 500, reason: 'other repositories whose hosts may not respond are read first' };

export interface RepositoryControllerOptions
  extends Pick<
    OpenOptions,
    'renderer' | 'policyFor' | 'refreshPolicies' | 'dependentsOf' | 'dataFolder' | 'trust' | 'isRegistered'
  > {
  readonly client: Client;
  readonly store: RevisionStore;
  readonly clock: Clock;
  readonly git?: RepositoryOptions;
  /** Milliseconds between two syncs of a repository on this machine. Default 1,000. */
  readonly localInterval?: number;
  /** Milliseconds between two syncs of a remote repository. Default: adaptive, see `REMOTE_INTERVALS`. */
  readonly remoteInterval?: number;
  /**
   * The registered repositories whose address may be the same as this one, as an informer shows them. Default: a list of all for each repository
   * that is opened, which reads all objects as often as there are objects.
   */
  readonly registered?: (address: string) => readonly Stored<Repository>[];
  /** One of them, likewise. Default: a read from the storage. */
  readonly find?: (key: ObjectKey) => Stored<Repository> | undefined;
  /**
   * The ConfigMap of a name that a Repository mentions, as decisions read it; undefined if there is none. Throws Unavailable before it was
   * read, LimitExceeded if it is not. Default: a request.
   */
  readonly listOf?: (key: ObjectKey) => Stored<ObjectOf<typeof configMapKind>> | undefined;
  /** Reads the policies that a Repository names, and returns their state; undefined if it names none. Default: none do. */
  readonly readPolicies?: (object: Stored<Repository>) => Promise<PoliciesReport | undefined>;
  /** True if repositories whose hosts may not respond must leave workers to all others; see `WorkerLimits`. Default false. */
  readonly limitsSlow?: boolean;
  /** True if another process on the trust ledger writes too, and reports what it does. Default false. */
  readonly hasPeer?: boolean;
  /** Requests that come from no object, such as those of webhooks. Default: none. */
  readonly requests?: SyncRequests;
  /** Calls the listener with each repository that a request waits for; returns what ends that. Default: none does. */
  readonly onWanted?: ((listener: (key: ObjectKey) => void) => () => void) | undefined;
  /** Milliseconds that syncing one repository may take. Default 60,000. */
  readonly deadline?: number;
  /**
   * Milliseconds that opening one may take. Default 11 minutes: an aborted first fetch starts over, so it gets the whole time
   * limit of a fetch. The connection to a silent host is closed within a minute.
   */
  readonly openingDeadline?: number;
  /** Milliseconds between two writes of an index cache. Default 30,000. */
  readonly saveInterval?: number;
  /** Milliseconds between two packings of objects and refs, unless thresholds require one earlier. Default 6 hours. */
  readonly maintainInterval?: number;
  /** Bytes that mirrors and hosted repositories may use before unreachable objects are removed sooner. Default: no limit. */
  readonly diskBudget?: number;
  /** A number from 0 to below 1, for jitter. Default Math.random. */
  readonly random?: () => number;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** Opens registered repositories in the store, keeps them up to date, and reports their state. */
export function repositoryController(options: RepositoryControllerOptions): ControllerOptions {
  const { store, clock, dataFolder, renderer, policyFor, dependentsOf, trust } = options;
  const { deadline = 60_000, openingDeadline = 660_000, random = Math.random } = options;
  const client = options.client.as({ name: REPOSITORY_ACTOR }, 'controller');
  const objects = new RepositoryObjects({ client, clock, shown: options.find });
  const recorder = options.recorder ?? new EventRecorder({ client, clock, component: REPOSITORY_ACTOR });
  const events = new EventDeduplicator(recorder);
  const requests = options.requests ?? new SyncRequests(clock);
  const pauses = new HostPauses(clock);
  const workerLimits = new WorkerLimits();
  const signers = new Signers(client, clock);
  const opener = new RepositoryOpener({
    ...{ client, store, signers, dataFolder, renderer, policyFor, dependentsOf, clock, trust },
    ...(options.git === undefined ? {} : { git: options.git }),
    ...(options.refreshPolicies === undefined ? {} : { refreshPolicies: options.refreshPolicies }),
    ...(options.isRegistered === undefined ? {} : { isRegistered: options.isRegistered }),
  });
  const open = new Map<string, OpenRepository>();
  const { maintainInterval = 6 * 3_600_000, diskBudget } = options;
  const maintainer = new Maintainer({ clock, interval: maintainInterval, budget: diskBudget });
  const repairs = new DamageRepairs(clock);
  /** Keys of the repositories that are open or being opened. */
  const claimed = new Set<string>();
  /** Objects that wait until a conflicting object is deleted, or until they lead. */
  const inConflict = new Map<string, ObjectKey>();
  /** Canonical addresses by the address in the objects, dropped whenever a repository is opened again. */
  const addresses = new Map<string, Promise<string>>();

  return {
    name: 'repository',
    // A repository that does not respond occupies one worker until its deadline; other workers serve the other
    // repositories.
    maxConcurrentReconciles: 64,
    workerStart: { atOnce: 4, intervalMs: 25 },
    baseDelayMs: 1000,
    maxDelayMs: 300_000,
    sources: [
      watchKind(repositoryKind, {
        predicate: specOrMetadataChanged,
        map: (event) => (event.type === 'add' ? toObject(event) : [...toObject(event), ...inConflict.values()]),
      }),
      triggerSource((enqueue) => requests.subscribe(enqueue)),
      { start: ({ prioritize }) => options.onWanted?.(prioritize) ?? (() => undefined) },
    ],
    async reconcile(key, context) {
      const object = await objects.find(key);
      if (object === undefined || object.metadata.deletionTimestamp !== undefined) return forget(key);
      pauses.check(object);
      const isOpen = open.get(keyText(key))?.isFor(object) === true;
      const isSlow = workerLimits.isSuspect(key);
      let release = occupy(object, isOpen);
      if (release === undefined) return LATER;
      const limit = new AbortController();
      const cancel = clock.schedule(isOpen ? deadline : openingDeadline, () => limit.abort());
      try {
        const signal = AbortSignal.any([context.signal, limit.signal]);
        const request = requests.take(key);
        const state = await opened(object, signal);
        if (!isSlow && workerLimits.isSuspect(key)) {
          release();
          release = occupy(object, true);
          if (release === undefined) return LATER;
        }
        if (request !== undefined) state.addRequest(request);
        if (state.isDue(object)) await sync(object, state, signal);
        const problem = await signers.problem(object);
        const policies = await options.readPolicies?.(object);
        await objects.report(keyOf(object), { ...readiness(problem), policies, facts: state.facts() });
        recordPolicies(object, policies);
        recordSigning(object, state);
        await warnUnidentified(object);
        if (problem === undefined) events.forget(key, new Set(['signers', 'signing', 'policies']));
        else events.record(object, 'Warning', 'Error', problem);
        workerLimits.note(key, false);
        return { requeueAfter: state.nextSync(object), reason: 'the next sync of the repository' };
      } catch (error) {
        if (!open.has(keyText(key))) claimed.delete(keyText(key));
        // The process ends; the repository has no error.
        if (context.signal.aborted) throw error;
        const cause = limit.signal.aborted ? timeoutError(object, error) : error;
        workerLimits.note(key, true);
        pauses.note(object, cause);
        const facts = open.get(keyText(key))?.facts();
        await objects.report(keyOf(object), {
          reason: 'Error',
          message: messageOf(cause),
          ...(facts === undefined ? {} : { facts }),
        });
        events.record(object, 'Warning', 'Error', messageOf(cause));
        throw cause;
      } finally {
        cancel();
        release?.();
      }
    },
  };

  /** Records when this server cannot sign any more, and when it can again. */
  function recordSigning(object: Stored<Repository>, { repository }: OpenRepository): void {
    const problem = repository.trust.signingProblem();
    const before = findCondition(object.status?.conditions, TRUST_CONDITION)?.reason;
    if (problem !== undefined) events.record(object, 'Warning', CANNOT_SIGN, problem, 'signing');
    else if (before === CANNOT_SIGN)
      events.record(object, 'Normal', 'CanSign', 'statements are signed again', 'signing');
    else events.forgetTopic(keyOf(object), 'signing');
  }

  function recordPolicies(object: Stored<Repository>, report: PoliciesReport | undefined): void {
    if (report?.status === 'False') events.record(object, 'Warning', 'PoliciesInvalid', report.message, 'policies');
    else events.forgetTopic(keyOf(object), 'policies');
  }

  /** See `WorkerLimits.occupy`. */
  function occupy(object: Stored<Repository>, isOpen: boolean): (() => void) | undefined {
    return options.limitsSlow === true ? workerLimits.occupy(object, isOpen) : () => undefined;
  }

  /** Warns of problems in the lists of users' keys, and of their names at the Git host. */
  async function warnUnidentified(object: Stored<Repository>): Promise<void> {
    const { namespace } = keyOf(object);
    const find = async (name: string) => {
      const list = { name, ...(namespace === undefined ? {} : { namespace }) };
      return options.listOf === undefined ? client.find(configMapKind, list) : options.listOf(list);
    };
    const warn = (reason: 'AllowedSigners' | 'HostUsers', name: string, problems: readonly string[]) => {
      if (problems.length === 0) return;
      const message = `cannot attribute all pushes by ConfigMap ${name}: ${problems.slice(0, 3).join('; ')}`;
      events.record(object, 'Warning', reason, message, reason === 'HostUsers' ? 'users' : 'signers');
    };
    const problemsOf = async (read: () => Promise<readonly string[]>) => {
      try {
        return await read();
      } catch (error) {
        // A list that is not read yet is examined at the next sync.
        if (isSluiceError(error, 'Unavailable')) return [];
        if (isSluiceError(error, 'LimitExceeded')) return [error.message];
        throw error;
      }
    };
    const signers = allowedSignersOf(object);
    if (signers !== undefined) {
      const problems = await problemsOf(async () => {
        const listed = await find(signers);
        return listed === undefined ? ['it does not exist'] : parsePeople(listed).problems;
      });
      warn('AllowedSigners', signers, problems);
    }
    const users = hostUsersNameOf(object);
    if (users === undefined) return;
    warn('HostUsers', users, await problemsOf(async () => parseHostUsers(await find(users)).problems));
  }

  /** The repository as its object specifies it, opened if necessary. */
  async function opened(object: Stored<Repository>, signal: AbortSignal): Promise<OpenRepository> {
    const key = keyText(keyOf(object));
    const known = open.get(key);
    if (known?.isFor(object) === true) {
      if (known.repository.follows) await promoteIfFirst(known, object);
      return known;
    }
    const replaced = known?.isPlaceOf(object) === true ? known : undefined;
    // Its packages are gone: the object is another one, or names another place.
    if (replaced === undefined && known !== undefined) await forget(keyOf(object));
    const items = await registeredAt(object);
    // Its target may have changed since it was resolved.
    addresses.delete(object.spec.git?.repo ?? '');
    const isClaimed = (one: Stored<Repository>) => claimed.has(keyText(keyOf(one)));
    const other = replaced === undefined ? await conflictingRepository(object, items, isClaimed, addressOf) : undefined;
    if (other !== undefined) {
      inConflict.set(key, keyOf(object));
      throw new TerminalError(`Repository conflict with existing repository: ${keyText(keyOf(other))}`);
    }
    const leader = await leadingRepository(object, items, addressOf);
    // When the first one is deleted, this one replaces it.
    if (leader === undefined) inConflict.delete(key);
    else inConflict.set(key, keyOf(object));
    claimed.add(key);
    if (findCondition(object.status?.conditions, 'Ready')?.observedGeneration !== object.metadata.generation) {
      await objects.report(keyOf(object), { reason: 'Reconciling', message: 'opening the repository' });
    }
    const isLocal = localPath(object.spec.git?.repo ?? '') !== undefined;
    if (!isLocal && object.status?.lastFullSyncTime == null) maintainer.checkBudget();
    const { localInterval = 1000, remoteInterval } = options;
    const remote = remoteInterval === undefined ? REMOTE_INTERVALS : steady(remoteInterval);
    const intervals = isLocal ? steady(localInterval) : remote;
    if (replaced !== undefined) await maintainer.forget(key, replaced.repository.repository);
    const { repository, syncedAt } = await opener.openAvailable(object, {
      ...{ signal, follows: leader !== undefined, replaces: replaced?.syncedAt },
      isPatient: workerLimits.isSuspect(keyOf(object)),
      onRepair: (repair) => recordRepair(object, repair),
    });
    // Its remote failed.
    if (syncedAt !== undefined) workerLimits.note(keyOf(object), true);
    const { hasPeer = false } = options;
    const state = new OpenRepository(object, repository, { store, clock, intervals, random, syncedAt, hasPeer });
    open.set(key, state);
    repository.onRemoval(() => requests.addOwn(keyOf(object), 'branches'));
    // It may have been open already, from the time when it followed.
    if (leader === undefined) store.promote(repository.id);
    const { note } = repository;
    if (note !== undefined) recorder.record(object, 'Normal', 'IndexRebuilt', note);
    return state;
  }

  /** Lets controllers act for a repository once those of other namespaces that registered the same packages first are deleted. */
  async function promoteIfFirst({ repository }: OpenRepository, object: Stored<Repository>): Promise<void> {
    if ((await leadingRepository(object, await registeredAt(object), addressOf)) !== undefined) return;
    inConflict.delete(keyText(keyOf(object)));
    store.promote(repository.id);
  }

  async function sync(object: Stored<Repository>, state: OpenRepository, signal: AbortSignal): Promise<void> {
    const { git, index, layout } = state.repository;
    // A repository without its folder would count as empty, and all its packages as deleted.
    if (localPath(object.spec.git?.repo ?? '') !== undefined) expectFolder(git.path);
    const look = () => state.sync(object, signal);
    const findings = await repairs.around(state.repository, look, signal, (repair) => recordRepair(object, repair));
    for (const finding of findings) record(object, state, finding);
    if (index.mainHead === undefined) {
      throw new SluiceError(
        'NotFound',
        `branch ${layout.branch} does not exist in ${object.spec.git?.repo}; push it again`,
      );
    }
    await state.saveCache(options.saveInterval ?? 30_000);
    maintainer.startIfDue(keyText(keyOf(object)), {
      name: state.repository.repository,
      git,
      isOwn: state.repository.isMirror || isHosted(object.spec.git?.repo ?? ''),
      report: (reason, error) => events.record(object, 'Warning', reason, messageOf(error), reason),
    });
  }

  function recordRepair(object: Repository, repair: MirrorRepair): void {
    recorder.record(object, 'Warning', 'MirrorRepaired', repairMessage(repair));
  }

  /** Records an event on the revision, or on the repository if the revision is deleted. */
  function record(object: Repository, { repository }: OpenRepository, finding: Finding): void {
    const { kind, apiVersion } = packageRevisionKind;
    const rows = finding.package === undefined ? [] : repository.index.ofPackage(finding.package);
    const row = rows.find(({ ref, key }) => ref === finding.ref || key.workspace === finding.workspace);
    const metadata = { name: row?.name ?? '', namespace: repository.namespace, uid: row?.uid };
    const reason = finding.kind === 'Published' ? 'OutOfBand' : finding.kind;
    const about = row === undefined ? object : { apiVersion, kind, metadata };
    recorder.record(about, finding.inBand ? 'Normal' : 'Warning', reason, finding.message);
  }

  async function registeredAt({ spec }: Repository): Promise<readonly Stored<Repository>[]> {
    return options.registered?.(spec.git?.repo ?? '') ?? (await client.list(repositoryKind)).items;
  }

  /** Resolves each address once, not for every pair of repositories. */
  function addressOf(address: string): Promise<string> {
    const known = addresses.get(address) ?? canonicalAddress(address);
    addresses.set(address, known);
    return known;
  }

  async function forget(key: ObjectKey): Promise<void> {
    const state = open.get(keyText(key));
    addresses.clear();
    open.delete(keyText(key));
    claimed.delete(keyText(key));
    inConflict.delete(keyText(key));
    objects.forget(key);
    pauses.forget(key);
    workerLimits.note(key, false);
    requests.take(key);
    events.forget(key);
    await maintainer.forget(keyText(key), state?.repository.repository ?? key.name);
    await state?.close();
  }
}

/** A repository whose commits cannot be signed is read-only. */
function readiness(problem: string | undefined): Pick<RepositoryReport, 'reason' | 'message'> {
  return problem === undefined ? { reason: 'Ready', message: '' } : { reason: 'Error', message: problem };
}

/** Called every second, hence synchronous: a promise would cost a hundred times as much. */
function expectFolder(path: string): void {
  if (existsSync(join(path, 'HEAD'))) return;
  throw new SluiceError('NotFound', `there is no Git repository at ${path} any more; put it back, or unregister it`);
}

function timeoutError({ spec }: Repository, cause: unknown): SluiceError {
  const message = `${spec.git?.repo} did not answer in time; Sluice retries with exponential backoff`;
  return new SluiceError('Timeout', message, { cause });
}
