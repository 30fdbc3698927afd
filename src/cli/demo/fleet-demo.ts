import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createDataFolder, dataFolder } from '../../app/data/data-folder.ts';
import { packageRoot } from '../../app/package-root.ts';
import { gitNetworkOf } from '../../app/repositories/git-network.ts';
import type { LogSink } from '../../app/service/log/log-entry.ts';
import { applyConfig, readConfig } from '../../app/session/apply-config.ts';
import { signingChoice } from '../../app/trust/signing-choice.ts';
import { deliveredOf } from '../../delivery/delivered/list-delivered.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { commandLine } from '../../foundation/text/command-line.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { hostedFolder } from '../../package/store/opening/open-package-repository.ts';
import { eventKind } from '../../resource/kinds/core/event.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { type WavePlan, wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import type { Stored } from '../../resource/object/object.ts';
import { actorOf } from '../access/actor.ts';
import { commandFor } from '../access/hints/command-for.ts';
import type { CommandResult, DataOptions, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { timelineSink } from '../up/log-sinks.ts';
import { type Running, runService } from '../up/run-service.ts';
import { FleetPackages } from './fleet-packages.ts';

/** The cluster whose way is shown step by step. */
const SHOWN = 'eu-west-01';
/** In these a user changes the package before the upgrade; in the last one the text that upstream changes too. */
const EDITED = ['eu-west-02', 'us-east-03'] as const;
const CONFLICTING = 'ap-south-01';
const EXIT_INTERRUPTED = 130;
const POLL_MS = 50;
/** For one step: 25 packages take seconds. */
const STEP_TIMEOUT_MS = 120_000;
const NAMESPACE = 'default';
/** The address of the metrics in the manifests of examples/fleet. */
const METRICS = 'http://127.0.0.1:18999';

type Manifests = Awaited<ReturnType<typeof readConfig>>;

/** `sluice demo fleet`: examples/fleet, from the blueprint to all clusters in three waves, and an upgrade. */
export async function fleetDemo(options: DataOptions, invocation: Invocation): Promise<CommandResult> {
  const { terminal, environment } = invocation;
  const data = options.data ?? (await mkdtemp(join(tmpdir(), 'sluice-fleet-')));
  const folder = dataFolder(data);
  const source = new URL('examples/fleet/', packageRoot());
  const start = systemClock.now();
  const { startMetrics } = (await import(new URL('metrics.mjs', source).href)) as {
    startMetrics: (port: number) => Promise<{ address: string; close: () => Promise<void> }>;
  };
  await createDataFolder(folder);
  const timeline = timelineSink(terminal, start);
  const report: Report = (subject, message) =>
    timeline({ at: systemClock.now(), level: 'info', event: 'Demo', subject, message });
  const log: LogSink = (entry) => {
    if (entry.subject.includes(SHOWN)) timeline(entry);
  };
  const network = gitNetworkOf({}, { ...environment, SLUICE_ALLOW_GIT_HOST: '127.0.0.1' });
  const metrics = await startMetrics(0);
  try {
    return await runService(
      {
        folder,
        network,
        actor: actorOf({}, environment),
        ...{ terminal, log, resolvers: [], disabled: [], signing: signingChoice(environment) },
        ...{ housekeeping: false, serve: undefined },
      },
      async () => {
        terminal.line(`Fleet in ${printable(folder.path)}; the steps of ${SHOWN} are shown for all clusters`);
        terminal.line();
      },
      async (running) => {
        const command = commandFor({ data }, invocation);
        await refuseUsed(running.session, command('up'));
        try {
          await story(running, { source, address: metrics.address, report });
        } catch (error) {
          if (!running.stop.signal.aborted) throw error;
          terminal.line();
          const again = commandFor({}, invocation)('demo', 'fleet');
          const where = options.data === undefined ? '' : ' in another --data';
          // The plans judge the clusters by metrics that this process serves.
          terminal.line(
            `Stopped before the end. The metrics of the clusters ended with it, so that only a new run${where} finishes it: ${printable(again)}`,
          );
          return EXIT_INTERRUPTED;
        }
        terminal.line();
        terminal.line('Next commands:');
        const clusters = join(hostedFolder(folder.path), 'clusters.git');
        for (const line of [
          command('rpkg', 'tree'),
          command('wave', 'get'),
          command('rpkg', 'history', `fleet.${CONFLICTING}.packagevariant-2`),
          commandLine(['git', '--git-dir', clusters, 'log', '--oneline', SHOWN]),
        ])
          terminal.line(`  ${printable(line)}`);
        return 0;
      },
    );
  } finally {
    await metrics.close();
  }
}

type Report = (subject: string, message: string) => void;

interface Story {
  readonly source: URL;
  /** Address of the metrics. */
  readonly address: string;
  readonly report: Report;
}

/** The demo creates everything that it shows. */
async function refuseUsed({ client, folder }: Running['session'], up: string): Promise<void> {
  if ((await client.list(repositoryKind)).items.length === 0) return;
  throw new SluiceError(
    'AlreadyExists',
    `${folder.path} has repositories already, and the demo needs a new data folder: use another --data, or look at what is there with "${up}"`,
  );
}

async function story(running: Running, { source, address, report }: Story): Promise<void> {
  const { session } = running;
  const packages = new FleetPackages(session.client);
  const apply = async (...names: string[]) =>
    applyConfig(session, at(address, await readConfig(names.map((name) => fileURLToPath(new URL(name, source))))));
  const until = <Value>(what: string, read: () => Promise<Value | undefined>) => poll(running, what, read);
  const count = async (what: string, text: string, wanted: number, read: () => Promise<number>) => {
    const found = await until(what, async () => ((await read()) >= wanted ? wanted : undefined));
    report(what, `${found} ${text}`);
  };

  await apply('1-repositories.yaml', '2-network.yaml', '3-clusters.yaml');
  const files = await filesOf(new URL('blueprint/', source));
  await until('blueprint', () => packages.publishNew('blueprints', 'web', files));
  report('blueprints.web.v1', 'published: the blueprint of all clusters');
  await apply('4-set.yaml', '5-targets.yaml', '6-analysis.yaml');
  const clusters = (await session.client.list(deliveryTargetKind)).items.length;
  await count('set web', 'drafts, one for each cluster', clusters, () => packages.number('packagevariant-1'));
  await count('gates', 'addresses allocated, and proposed', clusters, () =>
    packages.number('packagevariant-1', 'Proposed'),
  );

  await apply('7-waves.yaml');
  await wavesOf(running, 'web-v1', report);
  await delivered(running, report);

  await packages.edit('fleet', EDITED[0], { 'deployment.yaml': (text) => text.replace('replicas: 2', 'replicas: 5') });
  await packages.edit('fleet', EDITED[1], { 'notes.txt': () => 'This cluster has a second load balancer.\n' });
  await packages.edit('fleet', CONFLICTING, { 'motd.txt': () => 'Welcome to the shop of the south.\n' });
  report('users', `change ${EDITED.join(' and ')}, and the text of ${CONFLICTING}`);
  await packages.edit('blueprints', 'web', {
    'deployment.yaml': (text) => text.replace('web:1.0.0', 'web:1.1.0'),
    'motd.txt': () => 'Welcome to our new shop.\n',
  });
  report('blueprints.web', 'v2 published: another image, and another text');
  await count('set web', 'drafts of the upgrade proposed', clusters, () =>
    packages.number('packagevariant-2', 'Proposed'),
  );
  const [replicas, notes] = await Promise.all([
    packages.text(`fleet.${EDITED[0]}.packagevariant-2`, 'deployment.yaml'),
    packages.text(`fleet.${EDITED[1]}.packagevariant-2`, 'notes.txt'),
  ]);
  const image = /image: \S+/.exec(replicas)?.[0] ?? '';
  report(EDITED[0], `keeps ${/replicas: \d+/.exec(replicas)?.[0]}, with the new ${image}`);
  report(EDITED[1], `keeps notes.txt: ${notes.trim()}`);
  const conflict = await until('conflict', async () => {
    const { items } = await session.client.list(eventKind, { namespace: NAMESPACE });
    return items.find(({ reason, message }) => reason === 'LocalChangesKept' && message?.includes('motd.txt'))?.message;
  });
  report(CONFLICTING, `conflict: ${conflict}`);
  await apply('upgrade.yaml');
  await wavesOf(running, 'web-v2', report);
  await delivered(running, report);
}

/** Prints each wave once it is complete. */
async function wavesOf(running: Running, name: string, report: Report): Promise<void> {
  const { client } = running.session;
  const shown = new Set<string>();
  await poll(running, `wave plan ${name}`, async () => {
    const plan = await client.get(wavePlanKind, { namespace: NAMESPACE, name });
    for (const wave of plan.status?.waves ?? []) {
      if (wave.completedMs === undefined || shown.has(wave.name)) continue;
      shown.add(wave.name);
      const judged = plan.spec.waves.find((one) => one.name === wave.name)?.analysis.length ?? 0;
      const analysis = judged === 0 ? '' : ', analysis successful';
      report(`wave ${wave.name}`, `${wave.verified} of ${wave.targets} approved clusters are healthy${analysis}`);
    }
    return endOf(plan);
  });
}

/** Undefined while a plan goes on; an error if it does not end well. */
function endOf({ metadata, status }: Stored<WavePlan>): true | undefined {
  if (status?.phase === 'Completed') return true;
  if (status?.phase === undefined || status.phase === 'Pending' || status.phase === 'Running') return undefined;
  throw new SluiceError('Unavailable', `wave plan ${metadata.name} is ${status.phase}: ${status.message ?? ''}`);
}

/** Waits until every cluster has the latest revision of its package. */
async function delivered(running: Running, report: Report): Promise<void> {
  const { client } = running.session;
  const count = await poll(running, 'deliveries', async () => {
    const { items } = await client.list(deliveryTargetKind);
    for (const target of items) {
      const [one] = await deliveredOf(client, undefined, target);
      if (one === undefined) return undefined;
      const { items: revisions } = await client.list(packageRevisionKind, {
        ...{ namespace: NAMESPACE, fieldSelector: `spec.repository=fleet,spec.packageName=${one.package}` },
      });
      if (revisions.some(({ spec }) => (spec.revision ?? 0) > one.revision)) return undefined;
    }
    return items.length;
  });
  report('delivery', `${count} clusters have their latest revision, each in its branch of clusters.git`);
}

/** Waits until `read` returns a value. */
async function poll<Value>({ stop }: Running, what: string, read: () => Promise<Value | undefined>): Promise<Value> {
  const end = systemClock.now() + STEP_TIMEOUT_MS;
  for (;;) {
    const value = await read();
    if (value !== undefined) return value;
    stop.signal.throwIfAborted();
    if (systemClock.now() > end)
      throw new SluiceError(
        'Timeout',
        `${what}: not done in ${STEP_TIMEOUT_MS / 1000} s; the data folder shows why with "sluice why"`,
      );
    await pause(POLL_MS);
  }
}

/** The manifests with the address at which the metrics are served now. */
function at(address: string, manifests: Manifests): Manifests {
  return manifests.map((one) => {
    const text = JSON.stringify(one.object).replaceAll(METRICS, address);
    return { ...one, object: JSON.parse(text) as typeof one.object };
  });
}

async function filesOf(folder: URL): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const name of await readdir(folder)) files.set(name, await readFile(new URL(name, folder), 'utf8'));
  return files;
}
