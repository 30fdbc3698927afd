import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDataFolder, dataFolder } from '../../app/data/data-folder.ts';
import { packageRoot } from '../../app/package-root.ts';
import { gitNetworkOf } from '../../app/repositories/git-network.ts';
import { aborted } from '../../app/service/until-stopped.ts';
import { applyConfig, readConfig } from '../../app/session/apply-config.ts';
import type { Session } from '../../app/session/session.ts';
import { signingChoice } from '../../app/trust/signing-choice.ts';
import { deliveredOf } from '../../delivery/delivered/list-delivered.ts';
import { commandLine } from '../../foundation/text/command-line.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { hostedFolder } from '../../package/store/opening/open-package-repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { actorOf } from '../access/actor.ts';
import { commandFor } from '../access/hints/command-for.ts';
import { folderOf } from '../access/place.ts';
import { placedExplanation } from '../access/placed-explanation.ts';
import type { CommandResult, DataOptions, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { timelineSink } from '../up/log-sinks.ts';
import { type Running, runService } from '../up/run-service.ts';
import { printWaitReport } from '../up/wait-report.ts';
import { waitUntilIdle } from '../up/wait-until-idle.ts';
import { makeRepositories } from './quickstart-repositories.ts';

export interface DemoOptions extends DataOptions {
  readonly serve?: boolean;
}

/** The configuration of the quick start. Its packages are drafts, as if a user had pushed them. */
const CONFIG = ['1-repository.yaml', '2-network.yaml', '3-policy.yaml', '4-targets.yaml'];

/** `sluice demo`: examples/quickstart with all controllers, reported as a time line. */
export async function demo(options: DemoOptions, invocation: Invocation): Promise<CommandResult> {
  const { terminal, environment } = invocation;
  // The data of a demonstration stays so that users can examine it.
  const data = options.data ?? (options.serve === true ? undefined : await mkdtemp(join(tmpdir(), 'sluice-demo-')));
  const shown: DataOptions = data === undefined ? {} : { data };
  const folder = data === undefined ? folderOf({}, environment) : dataFolder(data);
  const source = new URL('examples/quickstart/', packageRoot());
  const start = systemClock.now();
  const log = timelineSink(terminal, start);
  const at = () => systemClock.now();
  await createDataFolder(folder);
  return runService(
    {
      folder,
      network: gitNetworkOf({}, environment),
      actor: actorOf({}, environment),
      terminal,
      log,
      resolvers: [],
      disabled: [],
      signing: signingChoice(environment),
      housekeeping: options.serve === true,
      serve: options.serve === true ? 'default' : undefined,
    },
    async (session) => {
      terminal.line(`Quick start in ${printable(folder.path)}`);
      terminal.line();
      const made = await makeRepositories({ source, folder: hostedFolder(folder.path), clock: session.clock });
      for (const name of made) {
        log({ at: at(), level: 'info', event: 'Pushed', subject: name, message: 'draft pushed to packages.git' });
      }
      const manifests = await readConfig(CONFIG.map((name) => fileURLToPath(new URL(name, source))));
      const applied = await applyConfig(session, manifests);
      const changed = applied.filter(({ outcome }) => outcome !== 'unchanged').length;
      const message = `${applied.length} objects of examples/quickstart, ${changed} of them new or changed`;
      log({ at: at(), level: 'info', event: 'Config', subject: 'config', message });
    },
    async (running) => {
      const ended = await printOutcome(running, shown, invocation);
      if (options.serve !== true || !ended) return 0;
      terminal.line();
      terminal.line('Serving until Ctrl-C; changes from now on are printed below.');
      await aborted(running.stop.signal);
      return 0;
    },
  );
}

/** Waits until no work remains and prints the result. Returns false if the user stopped it before. */
async function printOutcome(running: Running, options: DataOptions, invocation: Invocation): Promise<boolean> {
  const { terminal } = invocation;
  const { session } = running;
  const report = await waitUntilIdle(running, placedExplanation(options, invocation, { isDocument: false }));
  if (report === undefined) return false;
  terminal.line();
  await printDelivered(session, invocation);
  terminal.line();
  printWaitReport(terminal, report);
  terminal.line();
  terminal.line('Next commands:');
  const [waiting] = report.revisions;
  // The placeholder of a main branch has neither a history nor anything to wait for.
  const example = session.store.list().find(({ revision }) => revision >= 0);
  const shown = waiting ?? example;
  const command = commandFor(shown === undefined ? options : { ...options, namespace: shown.namespace }, invocation);
  const name = shown?.name;
  const lines = [command('rpkg', 'get')];
  if (name !== undefined) lines.push(command('why', name), command('rpkg', 'history', name));
  const east = join(hostedFolder(session.folder.path), 'edge-east.git');
  lines.push(commandLine(['git', '--git-dir', east, 'log', '--stat', 'main']));
  for (const line of lines) terminal.line(`  ${printable(line)}`);
  return true;
}

async function printDelivered(session: Session, { terminal }: Invocation): Promise<void> {
  const { items } = await session.client.list(deliveryTargetKind);
  terminal.line('Delivered:');
  for (const target of items) {
    const { metadata, spec, status } = target;
    const packages = (await deliveredOf(session.client, undefined, target)).map(
      (one) => `${one.package} v${one.revision}`,
    );
    const commit = status?.lastCommit === undefined ? 'nothing' : `commit ${status.lastCommit.slice(0, 12)}`;
    const what = packages.length === 0 ? '' : `: ${packages.join(', ')}`;
    terminal.line(`  ${printable(metadata.name)}  ${commit} on ${printable(spec.git.branch)}${printable(what)}`);
  }
}
