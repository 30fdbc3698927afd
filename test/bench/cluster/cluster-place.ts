import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { adminAccount } from '../../cluster/support/account-kubeconfig.ts';
import { ControlPlane } from '../../cluster/support/control-plane.ts';
import { installDefinitions } from '../../cluster/support/install-definitions.ts';
import type { ClusterPrograms } from '../../cluster/support/programs.ts';
import { Installation, NAMESPACE, type Replica } from '../../cluster/support/sluice-serve.ts';
import { BenchClient } from '../api-client.ts';
import { runSluice, startSluice } from '../api-processes.ts';
import { draft, REVISIONS } from '../api-rows.ts';
import { startServer } from '../git-server-process.ts';
import { NODE_FLAGS } from '../node-flags.ts';
import { synthesize } from '../synthetic-repository.ts';
import { AuditLog } from './audit-log.ts';
import type { Targets } from './cluster-rows.ts';
import { copyAsPlainObjects, PLAIN } from './plain-kind.ts';
import { ReadinessRoute } from './readiness-route.ts';

const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
const MAX_READY_MS = 120_000;
/** Packages of each further repository. */
const FURTHER_PACKAGES = 10;

/** Two replicas behind the aggregator of a control plane, and `sluice up`, each with a copy of one repository over HTTP. */
export interface ClusterPlace extends AsyncDisposable {
  readonly targets: Targets;
  readonly route: ReadinessRoute;
  readonly audit: AuditLog;
  readonly replicas: readonly Replica[];
  /** Milliseconds from the start of each replica until it was ready or warm. */
  readonly startMs: { readonly leader: number; readonly standby: number };
  readonly revisions: number;
  /** Replaces a replica that has ended by a new one with its cache, and resolves when it stands by. */
  startStandby(ended: Replica): Promise<void>;
}

/** Starts everything, with three revisions of so many packages in one repository, and so many small ones beside it. */
export async function openClusterPlace(
  programs: ClusterPrograms,
  { packages, repositories }: { readonly packages: number; readonly repositories: number },
): Promise<ClusterPlace> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  for (const name of ['git', 'logs']) await mkdir(join(folder, name));
  await synthesize({ path: join(folder, 'git/bench.git'), packages, revisions: 3, drafts: 0 });
  await cp(join(folder, 'git/bench.git'), join(folder, 'git/embedded.git'), { recursive: true });
  const further = Array.from({ length: repositories - 1 }, (_, number) => `further-${number}`);
  const [model, ...copies] = further.map((name) => join(folder, `git/${name}.git`));
  if (model !== undefined) await synthesize({ path: model, packages: FURTHER_PACKAGES, revisions: 3, drafts: 0 });
  for (const copy of copies) await cp(model ?? '', copy, { recursive: true });
  const git = await startServer(join(folder, 'git'));
  stack.defer(() => git.stop());

  const data = join(folder, 'data');
  await runSluice('repo', 'reg', `${git.url}/embedded.git`, '--name', 'bench', '--data', data);
  const embedded = await startSluice(data);
  stack.defer(() => embedded.stop());

  const audit = await AuditLog.prepare(folder, `system:serviceaccount:${NAMESPACE}:sluice`);
  const plane = await ControlPlane.start({ programs, apiServerFlags: audit.flags });
  stack.defer(() => plane.stop());
  await installDefinitions(plane.kubeconfig);
  const { server, authority, token } = await adminAccount(plane.kubeconfig, 'bench');
  const client = new BenchClient(server, authority, token);
  stack.defer(() => client.close());
  for (const name of ['bench', ...further])
    await client.send('POST', REPOSITORIES, repository(name, `${git.url}/${name}.git`));
  const installation = await Installation.create(plane);
  stack.use(installation);
  const caches = new Map<Replica, string>();
  const start = async (cacheDir: string) => {
    // As the command itself starts.
    const replica = await installation.start({ cacheDir, environment: { NODE_OPTIONS: NODE_FLAGS.join(' ') } });
    caches.set(replica, cacheDir);
    return replica;
  };
  const started = performance.now();
  const first = await start(join(folder, 'cache-1'));
  await until(first, () => first.isLeading());
  const leader = performance.now() - started;
  const route = new ReadinessRoute(client, installation);
  stack.defer(() => route.stop());
  await installation.served();
  const startedStandby = performance.now();
  await standsBy(await start(join(folder, 'cache-2')));
  const standby = performance.now() - startedStandby;

  for (const one of [client, embedded.client]) await createWatched(one);
  const revisions = await copyAsPlainObjects(client);
  const targets = {
    aggregated: { client, path: REVISIONS },
    embedded: { client: embedded.client, path: REVISIONS },
    plain: { client, path: PLAIN },
  };
  const opened = stack.move();
  return {
    ...{ targets, route, audit, revisions, startMs: { leader, standby } },
    replicas: installation.replicas,
    async startStandby(ended) {
      installation.replicas.splice(installation.replicas.indexOf(ended), 1);
      await standsBy(await start(caches.get(ended) ?? ''));
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Waits until leadership is all that a replica lacks. */
async function standsBy(replica: Replica): Promise<void> {
  await until(replica, () => replica.isWarm());
}

/** Polls until a condition of a replica holds. A loaded machine needs long to start a process. */
async function until(replica: Replica, holds: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + MAX_READY_MS;
  while (!(await holds())) {
    if (replica.child.exitCode !== null || Date.now() > end)
      throw new Error(`the replica is not ready:\n${replica.lines.join('\n')}`);
    await sleep(20);
  }
}

/** Creates the draft whose labels are changed, once the server has the repository. */
async function createWatched(client: BenchClient): Promise<void> {
  const end = Date.now() + MAX_READY_MS;
  for (;;)
    try {
      await client.send('POST', REVISIONS, draft('watched'));
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(200);
    }
}

function repository(name: string, address: string): object {
  return {
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name } },
    spec: { type: 'git', git: { repo: address, branch: 'main', directory: '/' } },
  };
}
