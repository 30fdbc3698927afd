import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { approvalExplainer } from '../../controllers/approval/explain-approval.ts';
import { gateExplainer } from '../../controllers/revision/explain-gates.ts';
import { FreezeTimes } from '../../src/app/policies/freeze-times.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import { Informer } from '../../src/controller/informer.ts';
import { Manager } from '../../src/controller/manager.ts';
import { type Clock, systemClock } from '../../src/foundation/time/clock.ts';
import type { GitCredentials } from '../../src/git/git-repository.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { holdFolder } from '../../src/git/refs/held-folders.ts';
import { explainRevision } from '../../src/package/api/explain/explain-revision.ts';
import { kernelExplainer } from '../../src/package/api/explain/explain-state.ts';
import { packageStorages } from '../../src/package/api/package-storages.ts';
import { NO_PEOPLE } from '../../src/package/model/policy/people.ts';
import type { EffectivePolicy } from '../../src/package/model/policy/policy.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import { openPackageRepository } from '../../src/package/store/opening/open-package-repository.ts';
import type { ServerTrust } from '../../src/package/store/opening/open-repository-trust.ts';
import { effectivePolicy } from '../../src/package/store/policies/effective-policy.ts';
import { freezeRuleOf } from '../../src/package/store/policies/freeze-objects.ts';
import { allowedSignersOf, parsePeople } from '../../src/package/store/policies/user-lists.ts';
import { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { SYSTEM_NAMESPACE } from '../../src/resource/kinds/core/namespace.ts';
import { OBJECT_KINDS } from '../../src/resource/kinds/index.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { freezeKind } from '../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { keyText } from '../../src/resource/object/object.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import { initBare } from './git/git-cli.ts';
import { bareWithCommit } from './git/write-objects.ts';
import { commitFiles, pusherAt } from './scratch-repository.ts';
import { serverTrust } from './trust.ts';

export const ANNA: RequestContext = { actor: { name: 'anna' }, face: 'cli' };
const RESOLVERS: RequestContext = { actor: { name: 'controller:revision' }, face: 'controller' };

/** Everything that controllers run on, without a process around it: real store, registry in memory, bare repositories. */
export interface Fixture extends AsyncDisposable {
  readonly folder: string;
  readonly clock: Clock;
  readonly trust: ServerTrust;
  readonly store: RevisionStore;
  readonly registry: Registry;
  /** Asks as anna. */
  readonly client: Client;
  /** Not started. */
  readonly manager: Manager;
  /** From the PackagePolicy and Repository objects; sees a new one a moment after it was written. */
  policyFor(revision: PackageRevision): EffectivePolicy;
  recorder(component: string): EventRecorder;
  /** Creates a bare repository, with a first commit unless it is to stay empty, and returns its path. */
  bare(name: string, options?: { readonly empty?: boolean }): Promise<string>;
  /**
   * Registers a bare repository under its name, unless it is registered, and opens it in the store, as the repository controller would. It is
   * created unless `repo` names one that is there.
   */
  register(
    name: string,
    spec?: {
      readonly deployment?: boolean;
      readonly repo?: string;
      readonly branch?: string;
      /** Of the remote that `repo` is the address of, possibly on this machine. */
      readonly credentials?: GitCredentials;
      /** Default: functions of packages do not run. */
      readonly renderer?: Renderer;
    },
  ): Promise<string>;
  /** Pushes to a bare repository as a user without Sluice; see commitFiles. */
  push(path: string, files: Readonly<Record<string, string | null>>, branch?: string, from?: string): Promise<string>;
  /** Creates a draft from files; a Kptfile without gates is added if there is none. */
  draft(name: `${string}/${string}/${string}`, files?: Readonly<Record<string, string>>): Promise<PackageRevision>;
  /** Says that all resolvers have reported at the present content. */
  settle(revision: string): Promise<PackageRevision>;
  /** Takes a draft through proposal and approval by people. */
  publish(revision: string): Promise<PackageRevision>;
  /** `reason: message` of the events on an object, in the order of their names' creation. */
  events(name: string): Promise<string[]>;
}

/** What outlives the processes on it. */
export interface KeptData {
  readonly folder: string;
  readonly log: EventLog;
  readonly storages: readonly MemoryStorage[];
}

/** Data of a server for `fixture`, in a folder that the caller removes. */
export function keptData(clock: Clock, folder: string): KeptData {
  const log = new EventLog({ clock });
  return { folder, log, storages: OBJECT_KINDS.map((kind) => new MemoryStorage(kind, { clock, log })) };
}

/** `kept`: data that the fixture uses and leaves behind; default: its own. */
export async function fixture(
  clock: Clock = systemClock,
  trust: ServerTrust = serverTrust,
  kept?: KeptData,
): Promise<Fixture> {
  const data = kept ?? keptData(clock, await mkdtemp(join(tmpdir(), 'sluice-fixture-')));
  const { folder, log } = data;
  // As a server holds its data folder, so that small repositories in it are written without processes.
  const release = holdFolder(folder);
  const registry = new Registry();
  for (const storage of data.storages) registry.register(storage);
  const store = new RevisionStore();
  const { revisions, resources, packages } = packageStorages({
    ...{ store, log, clock },
    explain: ({ actor }, key) => {
      const surroundings = { resolvers: [], disabled: [], running: true, now: clock.now(), actor: actor.name };
      const explainers = [kernelExplainer, gateExplainer, approvalExplainer({ store })];
      return explainRevision(store, store.get(keyText(key)), explainers, surroundings);
    },
  });
  registry.register(revisions);
  registry.register(resources);
  registry.register(packages);
  const client = new RegistryClient(registry, ANNA.actor, 'cli');
  const policies = new Informer({ client, kind: packagePolicyKind, clock });
  const repositories = new Informer({ client, kind: repositoryKind, clock });
  const configMaps = new Informer({ client, kind: configMapKind, clock });
  const freezes = new Informer({ client, kind: freezeKind, clock });
  const ended = new FreezeTimes(freezes, clock, SYSTEM_NAMESPACE);
  for (const informer of [policies, repositories, configMaps, freezes]) informer.start();
  const manager = new Manager({ client, clock });
  const policyFor = (revision: PackageRevision) => {
    const repository = repositories.get({ namespace: 'default', name: revision.key.repository });
    const name = repository === undefined ? undefined : allowedSignersOf(repository);
    const listed = name === undefined ? undefined : configMaps.get({ namespace: 'default', name });
    return effectivePolicy(revision, repository, policies.list(), {
      people: () => (listed === undefined ? NO_PEOPLE : parsePeople(listed)),
      freezes: () => [
        ...freezes.list().map((freeze) => freezeRuleOf(freeze)),
        ...ended.in(['default', SYSTEM_NAMESPACE]),
      ],
    });
  };
  const recorders: EventRecorder[] = [];

  const bare: Fixture['bare'] = async (name, options = {}) => {
    const path = join(folder, `${name}.git`);
    return options.empty === true
      ? initBare(path)
      : bareWithCommit(path, { 'README.md': `${name}\n` }, pusherAt(clock.now()));
  };
  const self: Fixture = {
    folder,
    clock,
    trust,
    store,
    registry,
    client,
    manager,
    policyFor,
    recorder: (component) => {
      const recorder = new EventRecorder({ client, clock, component });
      recorders.push(recorder);
      return recorder;
    },
    bare,
    register: async (name, { repo: present, branch, credentials, renderer, ...spec } = {}) => {
      const repo = present ?? (await bare(name));
      const known = await client.find(repositoryKind, { namespace: 'default', name });
      const object =
        known ??
        (await client.create(repositoryKind, { metadata: { name }, spec: { ...spec, git: { repo, branch } } }));
      let live = false;
      const repository = await openPackageRepository(object, {
        trust,
        dataFolder: join(folder, 'data'),
        clock,
        policyFor,
        ...(renderer === undefined ? {} : { renderer }),
        ...(credentials === undefined
          ? {}
          : { credentials: async () => credentials, git: { network: DEFAULT_NETWORK } }),
        dependentsOf: (revision) => store.dependentsOf(revision),
        onChange: (changes) => (live ? store.announce(changes) : undefined),
      });
      live = true;
      await store.add(repository);
      return repo;
    },
    push: async (path, files, branch = 'main', from) => {
      // The engine that starts no process.
      const git = await initRepository(path, { engine: 'isomorphic-git' });
      try {
        return await commitFiles(git, files, clock.now(), { branch, ...(from === undefined ? {} : { from }) });
      } finally {
        await git.close();
      }
    },
    draft: async (name, files = {}) => {
      const parts = name.split('/');
      const [repository = '', workspace = ''] = [parts[0], parts.at(-1)];
      const source = {
        type: 'init',
        files: new Map(Object.entries(files).map(([k, v]) => [k, Buffer.from(v)])),
      } as const;
      return store.create(repository, { package: parts.slice(1, -1).join('/'), workspace, source }, ANNA);
    },
    settle: (revision) => store.change(revision, { settled: { resolvers: [] } }, RESOLVERS),
    publish: async (revision) => {
      await store.update(revision, { action: 'propose' }, ANNA);
      await store.update(revision, { action: 'approve' }, { ...ANNA, actor: { name: 'berta' } });
      return store.get(revision);
    },
    events: async (name) => {
      for (const recorder of recorders) await recorder.flush();
      const { items } = await client.list(eventKind, { fieldSelector: `involvedObject.name=${name}` });
      const version = (event: (typeof items)[number]) => Number(event.metadata.resourceVersion);
      return items.toSorted((a, b) => version(a) - version(b)).map((event) => `${event.reason}: ${event.message}`);
    },
    [Symbol.asyncDispose]: async () => {
      await manager.stop(0);
      for (const recorder of recorders) await recorder.flush();
      for (const informer of [policies, repositories, configMaps, freezes]) await informer.stop();
      await store.close();
      release();
      if (kept === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
  return self;
}
