import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ArgoCd } from '../../cluster/support/gitops/argocd.ts';
import { ArgoCdEngine } from '../../cluster/support/gitops/argocd-engine.ts';
import { argoCdProgram } from '../../cluster/support/gitops/argocd-program.ts';
import { Flux } from '../../cluster/support/gitops/flux.ts';
import { FluxEngine } from '../../cluster/support/gitops/flux-engine.ts';
import { fluxDefinitions } from '../../cluster/support/gitops/flux-program.ts';
import { type DeliveredPlace, GitOpsWorld } from '../../cluster/support/gitops/gitops-world.ts';
import { ReceiverStandIn } from '../../cluster/support/gitops/receiver-stand-in.ts';
import { redisProgram } from '../../cluster/support/gitops/redis-program.ts';
import { configMap, deployment, Scenario } from '../../cluster/support/gitops/scenario.ts';
import {
  argoCdTriggers,
  fluxTriggers,
  isHealthy,
  readTarget,
  type TriggerSetup,
} from '../../cluster/support/gitops/triggers.ts';
import { type ClusterPrograms, clusterPrograms } from '../../cluster/support/programs.ts';
import { median, printTable } from '../table.ts';

/** Milliseconds: the resolution of the figures. */
const POLL_MS = 20;
const TRIGGERED_ROUNDS = 5;
/** Each starts at another time within the interval of the engine. */
const POLLED_ROUNDS = 2;
/** Seconds between two polls: what `sluice target init flux` prints; the shortest default of Argo CD, which adds up to 60 at random. */
const POLL_S = { flux: 60, argocd: 120 };

/** From the approval of a change to the report that it is healthy, with the real engines, with and without triggers. */
export async function engines(): Promise<void> {
  const cluster = await clusterPrograms((line) => console.error(line));
  if ('missing' in cluster) return console.log(`no engines: ${cluster.missing}`);
  const rows = [...(await withFlux(cluster)), ...(await withArgoCd(cluster))];
  printTable(['engine', 'starts by', 'delivered', 'read by the engine', 'Healthy in the target', 'longest'], rows);
}

async function withFlux(cluster: ClusterPrograms): Promise<string[][]> {
  const definitions = await fluxDefinitions();
  if ('missing' in definitions) return [['Flux', definitions.missing, '', '', '', '']];
  await using world = await GitOpsWorld.start(cluster);
  const { kubeconfig, folder } = world.plane;
  await using _flux = await Flux.start(
    cluster,
    kubeconfig,
    definitions,
    join(folder, 'logs', 'kustomize-controller.log'),
  );
  await using receiver = await ReceiverStandIn.start(kubeconfig);
  return await measure(new Scenario(world, new FluxEngine(world.cluster)), fluxTriggers(receiver), POLL_S.flux);
}

async function withArgoCd(cluster: ClusterPrograms): Promise<string[][]> {
  const argocd = await argoCdProgram((line) => console.error(line));
  const redis = await redisProgram();
  const missing = ('missing' in argocd && argocd.missing) || ('missing' in redis && redis.missing);
  if ('missing' in argocd || 'missing' in redis) return [['Argo CD', missing || '', '', '', '', '']];
  await using world = await GitOpsWorld.start(cluster);
  const programs = { pollInterval: `${POLL_S.argocd}s`, cluster, argocd, redis };
  await using engine = await ArgoCd.start(programs, world.plane.kubeconfig, join(world.plane.folder, 'logs'));
  return await measure(new Scenario(world, new ArgoCdEngine(world.cluster)), argoCdTriggers(engine), POLL_S.argocd);
}

interface Round {
  /** Seconds from the approval. */
  readonly delivered: number;
  readonly read: number;
  readonly healthy: number;
}

async function measure(site: Scenario, setup: TriggerSetup, pollS: number): Promise<string[][]> {
  const rows: string[][] = [];
  for (const trigger of ['Annotation', 'Webhook', undefined] as const) {
    const name = trigger?.toLowerCase() ?? 'polled';
    const follow = trigger === undefined ? { follow: { pollInterval: `${pollS}s` } } : {};
    const place = await readTarget(site, setup, { name, packages: [name], trigger, ...follow });
    await site.publish(place, name, 'v1', filesOf(name, 1), [`${name} v1`]);
    await site.synced(place, name);
    const rounds: Round[] = [];
    const count = trigger === undefined ? POLLED_ROUNDS : TRIGGERED_ROUNDS;
    for (let round = 0; round < count; round += 1) {
      if (trigger === undefined) await delay((pollS * 1000 * (round + 0.5)) / count);
      rounds.push(await approveAndWait(place, round + 2));
      console.error(site.engine.name, name, JSON.stringify(rounds.at(-1)));
    }
    rows.push([
      ...[site.engine.name, trigger ?? `its poll each ${pollS} s`],
      ...(['delivered', 'read', 'healthy'] as const).map((step) => seconds(median(rounds.map((one) => one[step])))),
      seconds(Math.max(...rounds.map(({ healthy }) => healthy))),
    ]);
  }
  return rows;

  async function approveAndWait(place: DeliveredPlace, number: number): Promise<Round> {
    const { author } = site.world;
    const draft = await author.draft(place.name, `v${number}`, filesOf(place.name, number));
    await author.propose(draft);
    const before = site.world.headOf(place);
    const start = performance.now();
    const since = () => (performance.now() - start) / 1000;
    const until = async (what: string, holds: () => Promise<boolean>) => {
      while (!(await holds())) {
        if (since() > 3 * pollS)
          throw new Error(`${site.engine.name}: ${place.name} not ${what} within ${3 * pollS} s`);
        await delay(POLL_MS);
      }
      return since();
    };
    await author.approve(draft);
    const delivered = await until('delivered', async () => site.world.headOf(place) !== before);
    const commit = site.world.headOf(place);
    const read = await until('read', async () => (await site.engine.report(place, place.name)).seen === commit);
    const healthy = await until('healthy', async () =>
      isHealthy((await site.world.targetObject(place.name)).status, commit),
    );
    return { delivered, read, healthy };
  }
}

function filesOf(name: string, number: number) {
  return {
    'cm.yaml': configMap(name, 'default', `${number}`),
    'main.yaml': deployment(name, {}, { replicas: number }),
  };
}

function seconds(value: number): string {
  return `${value.toFixed(2)} s`;
}
