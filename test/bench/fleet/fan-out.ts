import { readFileSync, writeFileSync } from 'node:fs';
import { cp, writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeApi, KubeObject } from '../../support/api/kube-api.ts';
import { RunningUp } from '../../support/api/running-up.ts';
import { type GitTraffic, startServer } from '../git-server-process.ts';
import { processLoad } from '../process-load.ts';
import { git, manifest } from '../synthetic-repository.ts';
import { draftsAhead, fanOutFloor } from './fan-out-floor.ts';

export interface FanOut {
  readonly targets: number;
  readonly repositories: number;
  /** Milliseconds from the approval of the blueprint's next revision until each variant reports its new draft. */
  readonly elapsed: number;
  /** Milliseconds that git needs for the same drafts. */
  readonly floor: number;
  readonly commits: number;
  /** During the fan-out, without the requests for approvals of other packages. */
  readonly traffic: GitTraffic;
  /** Seconds of CPU of the fan-out. */
  readonly cpu: number;
  /** Most resident bytes during the fan-out. */
  readonly memory: number;
  /** Milliseconds of approvals of other packages meanwhile. */
  readonly approvals: readonly number[];
  /** Average number of processes of the machine that were ready to run, at the end. */
  readonly load: number;
  /** Milliseconds from the creation of the set until all first revisions are published; undefined if these are what was measured. */
  readonly first: number | undefined;
}

export interface FanOutSize {
  readonly targets: number;
  readonly perRepository: number;
  /** If true, the drafts of the first revisions are measured, so that none has to be published before. */
  readonly clones: boolean;
}

const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const RESOURCES = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisionresources';
const VARIANTS = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/packagevariants';
const SETS = '/apis/config.porch.kpt.dev/v1alpha2/namespaces/default/packagevariantsets';
const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
const MANIFESTS = 10;
const TEMPLATE = { packageContext: { dataExprs: [{ key: 'site', valueExpr: 'target.package' }] } };
/** Packages of other users that are approved during the fan-out, one after the other, and milliseconds between them. */
const APPROVALS = 60;
const APPROVAL_INTERVAL_MS = 150;
const MAX_ATTEMPTS = 20;
/** A thousand repositories are opened at the start. */
const START_MS = 600_000;
const MAX_REST_S = 60;

/** The next revision of a blueprint, or the first, becomes a draft in each target; meanwhile packages of another repository are approved. */
export async function fanOut(folder: string, { targets, perRepository, clones }: FanOutSize): Promise<FanOut> {
  const repositories = Math.ceil(targets / perRepository);
  const edges = Array.from({ length: repositories }, (_, index) => `edge-${index}`);
  await makeRepositories(folder, ['blueprints', 'other', ...edges]);
  const server = await startServer(folder);
  try {
    const config = join(folder, 'config.yaml');
    await writeFile(config, ['blueprints', 'other', ...edges].map((name) => repository(name, server.url)).join(''));
    await using up = await RunningUp.start(join(folder, 'data'), {
      words: ['--config', config],
      startsWithin: START_MS,
    });
    const { api } = up;
    const pid = up.child.pid ?? 0;
    await until(api, REPOSITORIES, ({ status }) => conditionOf(status, 'Ready') === 'True', repositories + 2);
    await draft(api, 'blueprints', 'web', 'v1', 1);
    await approve(api, 'blueprints.web.v1');
    for (let number = 0; number < APPROVALS; number++) await draft(api, 'other', `app-${number}`, 'v1', 1);
    const repositoryTargets = repositoriesOf(edges, targets, perRepository);
    const first = clones ? undefined : await publishFirst(api, repositoryTargets, targets);
    if (!clones) await nextRevision(api);
    for (const edge of edges)
      await cp(join(folder, `${edge}.git`), join(folder, `floor-${edge}.git`), { recursive: true });
    await rest(pid);
    await server.traffic();
    const ready = until(api, VARIANTS, (variant) => hasDraft(variant, clones ? 1 : 2), targets);
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
    const before = processLoad(pid).cpu;
    const began = performance.now();
    if (clones) await succeed(() => api.post(SETS, setOf(repositoryTargets, TEMPLATE)));
    else await approve(api, 'blueprints.web.v2');
    let over = false;
    const others = approvals(api, () => over);
    await ready;
    over = true;
    const elapsed = performance.now() - began;
    const cpu = processLoad(pid).cpu - before;
    const memory = peakMemory(pid);
    const [load = 0] = loadavg();
    const times = await others;
    const traffic = await server.traffic();
    await rest(pid);
    const drafts = await draftsAhead(folder, edges);
    const floor = await fanOutFloor(folder, edges, server.url);
    const code = await up.end();
    const failures = up.ownFailures();
    if (code !== 0 || failures.length > 0)
      throw new Error(`sluice up ended with ${code}:\n${failures.slice(0, 5).join('\n')}`);
    // An approval is one push; so is the publication of the blueprint.
    const pushes = traffic.pushes - times.length - (clones ? 0 : 1);
    return {
      ...{ targets, repositories, elapsed, floor, commits: drafts, cpu, memory, approvals: times, load, first },
      traffic: { ...traffic, pushes },
    };
  } finally {
    server.stop();
  }
}

async function makeRepositories(folder: string, names: readonly string[]): Promise<void> {
  const [first = '', ...others] = names.map((name) => join(folder, `${name}.git`));
  await git(['init', '--quiet', '--bare', '--initial-branch=main', first]);
  const commit = 'commit refs/heads/main\ncommitter bench <bench@example.com> 1767225600 +0000\ndata 5\nfirst\n';
  await git(['-C', first, 'fast-import', '--quiet'], `${commit}M 100644 inline README.md\ndata 5\nbench\n`);
  for (const other of others) await cp(first, other, { recursive: true });
}

function repository(name: string, url: string): string {
  const spec = { deployment: name.startsWith('edge-'), git: { repo: `${url}/${name}.git` } };
  return `---\n${JSON.stringify({ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name }, spec })}\n`;
}

function repositoriesOf(edges: readonly string[], targets: number, perRepository: number): object[] {
  return edges.map((name, index) => ({
    name,
    packageNames: Array.from(
      { length: Math.min(perRepository, targets - index * perRepository) },
      (_, number) => `site-${index * perRepository + number}`,
    ),
  }));
}

/** Returns the milliseconds until the first revisions, which are approved automatically, are published. */
async function publishFirst(api: KubeApi, repositories: readonly object[], targets: number): Promise<number> {
  const template = { ...TEMPLATE, annotations: { 'approval.nephio.org/policy': 'initial' } };
  const published = until(api, REVISIONS, isPublished, targets);
  const start = performance.now();
  await succeed(() => api.post(SETS, setOf(repositories, template)));
  await published;
  const first = performance.now() - start;
  // A change of the template; it lets the next drafts be written once each.
  await succeed(() => api.patch(`${SETS}/fleet`, { spec: { targets: [{ repositories, template: TEMPLATE }] } }));
  return first;
}

function setOf(repositories: readonly object[], template: object): object {
  return {
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name: 'fleet' } },
    spec: { upstream: { repo: 'blueprints', package: 'web' }, targets: [{ repositories, template }] },
  };
}

function resources(revision: number): Record<string, string> {
  const functions = [
    '    - {image: set-namespace:v0.4.1, configMap: {namespace: prod}}\n',
    '    - {image: set-labels:v0.2.0, configMap: {tier: web}}\n',
  ].join('');
  const kptfile = `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\npipeline:\n  mutators:\n${functions}`;
  const files = Array.from({ length: MANIFESTS }, (_, part) => [`config-${part}.yaml`, manifest(1, part, revision)]);
  return { Kptfile: kptfile, ...Object.fromEntries(files) };
}

/** A proposed package. */
async function draft(api: KubeApi, repository: string, packageName: string, workspaceName: string, revision: number) {
  const spec = { packageName, workspaceName, repository, tasks: [{ type: 'init', init: {} }] };
  const object = { apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', spec };
  const name = `${repository}.${packageName}.${workspaceName}`;
  await succeed(() => api.post(REVISIONS, object));
  await succeed(() => api.patch(`${RESOURCES}/${name}`, { spec: { resources: resources(revision) } }));
  await succeed(() => api.patch(`${REVISIONS}/${name}`, { spec: { lifecycle: 'Proposed' } }));
}

/** Proposes the next revision of the blueprint: a third of its files change. */
async function nextRevision(api: KubeApi): Promise<void> {
  const edit = { type: 'edit', edit: { sourceRef: { name: 'blueprints.web.v1' } } };
  const spec = { packageName: 'web', workspaceName: 'v2', repository: 'blueprints', tasks: [edit] };
  const object = { apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', spec };
  await succeed(() => api.post(REVISIONS, object));
  const { Kptfile: _same, ...changed } = resources(2);
  await succeed(() => api.patch(`${RESOURCES}/blueprints.web.v2`, { spec: { resources: changed } }));
  await succeed(() => api.patch(`${REVISIONS}/blueprints.web.v2`, { spec: { lifecycle: 'Proposed' } }));
}

function approve(api: KubeApi, name: string): Promise<void> {
  return succeed(() => api.patch(`${REVISIONS}/${name}/approval`, { spec: { lifecycle: 'Published' } }));
}

/** Milliseconds of each approval until the fan-out is over, and of one at least. */
async function approvals(api: KubeApi, isOver: () => boolean): Promise<number[]> {
  const times: number[] = [];
  for (let number = 0; number < APPROVALS && (number === 0 || !isOver()); number++) {
    const began = performance.now();
    await approve(api, `other.app-${number}.v1`);
    times.push(performance.now() - began);
    await delay(APPROVAL_INTERVAL_MS);
  }
  return times;
}

/** Controllers write to drafts too; after a conflict the request is repeated. */
async function succeed(send: () => ReturnType<KubeApi['post']>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { status, text } = await send();
    if (status < 300) return;
    if (status !== 409 || attempt > MAX_ATTEMPTS) throw new Error(`the server returned ${status}: ${text}`);
  }
}

/** Resolves when so many objects have been seen by a watch as `matches` requires. The watch is open when it returns the promise. */
async function until(
  api: KubeApi,
  path: string,
  matches: (object: KubeObject) => boolean,
  count: number,
): Promise<void> {
  const found = new Set<string>();
  const response = await api.open('GET', `${path}?watch=true`);
  if (response.statusCode !== 200) throw new Error(`the watch of ${path} returned ${response.statusCode}`);
  for await (const line of createInterface({ input: response })) {
    const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: KubeObject };
    if (type === 'ERROR') throw new Error(`the watch of ${path} ended: ${line}`);
    if (type !== 'BOOKMARK' && matches(object)) found.add(object.metadata.name);
    if (found.size >= count) break;
  }
  response.destroy();
  if (found.size < count) throw new Error(`the watch of ${path} ended with ${found.size} of ${count} objects`);
}

function conditionOf(status: unknown, type: string): string | undefined {
  const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string }[] };
  return conditions.find((condition) => condition.type === type)?.status;
}

function isPublished({ metadata: { name }, spec }: KubeObject): boolean {
  return name.startsWith('edge-') && (spec as { lifecycle: string }).lifecycle === 'Published' && name.endsWith('-1');
}

function hasDraft({ status }: KubeObject, number: number): boolean {
  const { downstreamTargets = [] } = (status ?? {}) as { downstreamTargets?: { name: string }[] };
  const isNumber = downstreamTargets[0]?.name.endsWith(`packagevariant-${number}`) === true;
  return isNumber && conditionOf(status, 'Ready') === 'True';
}

/** Resolves when the process has used little CPU for a second, or after a minute: of a thousand repositories, some are polled all the time. */
async function rest(pid: number): Promise<void> {
  let before = processLoad(pid).cpu;
  for (let second = 0; second < MAX_REST_S; second += 1) {
    await delay(1000);
    const { cpu } = processLoad(pid);
    if (cpu - before < 0.1) return;
    before = cpu;
  }
}

/** Most resident bytes since it was reset (Linux). */
function peakMemory(pid: number): number {
  const [, kilobytes] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
  return Number(kilobytes) * 1024;
}
