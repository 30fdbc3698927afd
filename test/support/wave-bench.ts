import type { AnalysisRequest, AnalysisRuns } from '../../controllers/wave-plan/analysis-runs.ts';
import { type WavePlanOptions, wavePlanController } from '../../controllers/wave-plan/wave-plan-controller.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { type WaveTarget, waveTargetKind } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import type { AnalysisObservation } from '../../src/rollout/wave/observation.ts';
import { ANNA, type Fixture } from './fixture.ts';

/** A plan of Proposed revisions, and a controller that tests run by hand. */
export interface WaveBench {
  readonly world: Fixture;
  /** Milliseconds of the clock that never jumps. */
  monotonicMs: number;
  readonly runs: Map<string, AnalysisObservation>;
  readonly requests: AnalysisRequest[];
  /** Proposes the first revision of each of these packages, of the repository `apps`. */
  propose(...packages: readonly string[]): Promise<void>;
  /** Proposes the second revision of a package whose first one is published, with another content. Returns its name. */
  proposeNext(packageName: string): Promise<string>;
  plan(spec: object, name?: string): Promise<void>;
  change(spec: object, name?: string): Promise<void>;
  /** Reconciles until the plan waits for something. */
  settle(name?: string): Promise<number | undefined>;
  /** As after a kill of the process: what it remembered is lost. */
  restart(): void;
  read(name?: string): Promise<Stored<WavePlan>>;
  targets(name?: string): Promise<Stored<WaveTarget>[]>;
  /** `package phase` of the targets, by package. */
  phases(name?: string): Promise<string[]>;
  /** Sets the condition `example.com/Ok` of the targets of these packages, or of all that are published. */
  verify(packages?: readonly string[], status?: 'True' | 'False' | 'Unknown'): Promise<void>;
  published(): string[];
}

const KEY = { namespace: 'default' };
const CONDITION = 'example.com/Ok';
export const BY_CONDITION = { verification: { condition: { type: CONDITION } } };
/** A wave of one package, and one of the others. */
export const TWO = {
  waves: [
    { name: 'canary', count: 1 },
    { name: 'all', percent: 100 },
  ],
  ...BY_CONDITION,
};
export const PACKAGES = ['a', 'b', 'c', 'd'];
export type Plan = [spec?: object, packages?: readonly string[]];

/** Proposes packages, and lets a plan of them begin. */
export async function startPlan(bench: WaveBench, ...[spec = TWO, packages = PACKAGES]: Plan): Promise<void> {
  await bench.propose(...packages);
  await bench.plan(spec);
  await bench.settle();
}

export async function waveBench(world: Fixture, options: Partial<WavePlanOptions> = {}): Promise<WaveBench> {
  const { client, store, clock } = world;
  await world.register('apps');
  const runs = new Map<string, AnalysisObservation>();
  const requests: AnalysisRequest[] = [];
  const analyses: AnalysisRuns = {
    read: async ({ name }) => runs.get(name),
    start: async (request) => {
      requests.push(request);
      runs.set(request.name, { phase: 'Running', message: '' });
    },
  };
  const bench: WaveBench = {
    ...{ world, monotonicMs: 0, runs, requests },
    propose: async (...packages) => {
      for (const name of packages) {
        const draft = await world.draft(`apps/${name}/w1`, { 'a.yaml': `a: ${name}\n` });
        await world.settle(draft.name);
        await store.update(draft.name, { action: 'propose' }, ANNA);
      }
    },
    proposeNext: async (packageName) => {
      const source = { type: 'copy', source: `apps.${packageName}.w1` } as const;
      const { name } = await store.create('apps', { package: packageName, workspace: 'w2', source }, ANNA);
      await store.change(name, { files: new Map([['a.yaml', Buffer.from('a: changed\n')]]) }, ANNA);
      await world.settle(name);
      await store.update(name, { action: 'propose' }, ANNA);
      return name;
    },
    plan: async (spec, name = 'web') => {
      await client.create(wavePlanKind, { metadata: { name }, spec: spec as WavePlan['spec'] });
    },
    change: async (spec, name = 'web') => {
      await client.patch(wavePlanKind, { ...KEY, name }, { spec: spec as never });
    },
    settle: async (name = 'web') => {
      for (let rounds = 0; rounds < 20; rounds += 1) {
        const context = { signal: new AbortController().signal, failures: 0 };
        const { requeueAfter } = (await controller.reconcile({ ...KEY, name }, context)) ?? {};
        if (requeueAfter === undefined || requeueAfter > 50) return requeueAfter;
      }
      throw new Error(`plan ${name} does not settle`);
    },
    restart: () => {
      controller = start();
    },
    read: (name = 'web') => client.get(wavePlanKind, { ...KEY, name }),
    targets: async (name = 'web') => {
      const { items } = await client.list(waveTargetKind, { ...KEY, fieldSelector: `spec.plan=${name}` });
      return items.toSorted((a, b) => (a.spec.package < b.spec.package ? -1 : 1));
    },
    phases: async (name) => (await bench.targets(name)).map(({ spec, record }) => `${spec.package} ${record?.phase}`),
    verify: async (packages, status = 'True') => {
      for (const target of await bench.targets()) {
        const isMeant = packages?.includes(target.spec.package) ?? target.record?.published !== undefined;
        const lastTransitionTime = new Date(clock.now()).toISOString();
        const condition = { type: CONDITION, status, reason: 'Checked', message: '', lastTransitionTime };
        if (isMeant) await client.updateStatus(waveTargetKind, { ...target, status: { conditions: [condition] } });
      }
    },
    published: () =>
      store
        .list({ repository: 'apps' })
        .filter(({ revision }) => revision > 0)
        .map(({ key, revision }) => `${key.package} v${revision}`),
  };
  const start = () =>
    wavePlanController({
      ...{ client, store, clock, analyses, recorder: world.recorder('controller:wave-plan') },
      monotonic: () => bench.monotonicMs,
      probe: async () => 200,
      ...options,
    });
  let controller = start();
  return bench;
}
