import { existsSync } from 'node:fs';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { parseDuration } from '../../resource/object/duration.ts';
import type { Access } from '../access/access.ts';
import { inAccess } from '../access/in-access.ts';
import { placeOf } from '../access/place.ts';
import type { ActorOptions, CommandResult, DataOptions, Invocation } from '../output/invocation.ts';
import { Migration } from './migration.ts';
import { exitCodeOf } from './migration-report.ts';
import { printMigration } from './print-migration.ts';

export interface MigratePorchOptions extends DataOptions, ActorOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
  readonly only?: readonly string[];
  readonly toKubeconfig?: string;
  readonly toContext?: string;
  readonly yes?: boolean;
  readonly includeSecrets?: boolean;
  readonly sameCluster?: boolean;
  readonly contents: boolean;
  readonly wait?: string;
  readonly verbose?: boolean;
  readonly output: 'table' | 'json' | 'yaml';
}

const DEFAULT_WAIT_MS = 60_000;

/** `sluice migrate porch`: prints what would be done, and does it with `--yes`. It writes to Sluice only. */
export function migratePorch(options: MigratePorchOptions, invocation: Invocation): Promise<CommandResult> {
  const { kubeconfig, context, namespace, verbose, yes = false } = options;
  if (kubeconfig === undefined && (invocation.environment.KUBECONFIG ?? '') === '')
    throw new SluiceError('InvalidInput', 'name the kubeconfig of the cluster with Porch: --kubeconfig <file>');
  if (options.toKubeconfig === undefined && options.toContext !== undefined)
    throw new SluiceError('InvalidInput', '--to-context is about a kubeconfig; name it with --to-kubeconfig');
  const waitMs = options.wait === undefined ? DEFAULT_WAIT_MS : parseDuration(options.wait);
  if (waitMs === undefined)
    throw new SluiceError(
      'InvalidInput',
      `--wait must be a duration such as 30s or 5m, not ${JSON.stringify(options.wait)}`,
    );
  // The data folder of the environment is the target.
  const source = { ...invocation, environment: { ...invocation.environment, SLUICE_DATA: '' } };
  return inAccess(onlyGiven({ kubeconfig, context, namespace, verbose }), source, (porch) =>
    inTarget(options, invocation, async (sluice) => {
      if (sluice?.server !== undefined && sluice.server === porch.server)
        throw new SluiceError('InvalidInput', `both kubeconfigs name ${porch.server}: name the server of Sluice`);
      const report = await new Migration(porch, sluice, { ...options, waitMs, applied: yes }).run();
      printMigration(invocation.terminal, report, options.output);
      return exitCodeOf(report);
    }),
  );
}

/** Undefined for a data folder that does not exist, which a dry run does not create. */
function inTarget<Result>(
  { toKubeconfig, toContext, data, as, asGroup, verbose, yes = false }: MigratePorchOptions,
  { terminal, environment }: Invocation,
  run: (sluice: Access | undefined) => Promise<Result>,
): Promise<Result> {
  // KUBECONFIG names the cluster with Porch.
  const target = { terminal, environment: { ...environment, KUBECONFIG: '' } };
  const options = onlyGiven({ kubeconfig: toKubeconfig, context: toContext, data, as, asGroup, verbose });
  const place = placeOf(options, target.environment);
  if (!yes && place.kind === 'folder' && !existsSync(place.folder.database)) return run(undefined);
  return inAccess(options, target, run, yes);
}

type Given<T> = { readonly [Key in keyof T]?: Exclude<T[Key], undefined> };

function onlyGiven<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>;
}
