import { existsSync } from 'node:fs';
import { basename, delimiter, dirname } from 'node:path';
import { type DataFolder, DEFAULT_DATA_FOLDER, dataFolder } from '../../app/data/data-folder.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { DataOptions, PlaceOptions } from '../output/invocation.ts';

/** Of the installation in a cluster, where the command line names none. */
export const DEFAULT_LEDGER_NAMESPACE = 'sluice-system';

/** The target of a command: a data folder on this machine, or the server of a kubeconfig. */
export type Place =
  | { readonly kind: 'folder'; readonly folder: DataFolder }
  /** Without a path the files of KUBECONFIG count. */
  | { readonly kind: 'server'; readonly kubeconfig: string | undefined; readonly context: string | undefined };

/** --kubeconfig, else the data folder that is named, else KUBECONFIG, else the default data folder. Throws InvalidInput. */
export function placeOf(options: PlaceOptions, environment: NodeJS.ProcessEnv): Place {
  const { kubeconfig, context, data } = options;
  const named = data ?? (environment.SLUICE_DATA || undefined);
  if (kubeconfig !== undefined || (named === undefined && (environment.KUBECONFIG ?? '') !== ''))
    return { kind: 'server', kubeconfig, context };
  if (context === undefined) return { kind: 'folder', folder: folderOf(options, environment) };
  throw new SluiceError('InvalidInput', '--context is about a kubeconfig; name one with --kubeconfig or KUBECONFIG');
}

/**
 * The data folder of a place: that of the server, where its kubeconfig is the one of a data folder on this machine. Undefined for other
 * servers.
 */
export function localFolderOf(place: Place, environment: NodeJS.ProcessEnv): DataFolder | undefined {
  if (place.kind === 'folder') return place.folder;
  const file = kubeconfigOf(place, environment);
  const folder = dataFolder(dirname(file));
  return basename(file) === 'kubeconfig' && existsSync(folder.database) ? folder : undefined;
}

/** The first file that a place names. */
export function kubeconfigOf(place: Place & { readonly kind: 'server' }, environment: NodeJS.ProcessEnv): string {
  return place.kubeconfig ?? environment.KUBECONFIG?.split(delimiter).find((path) => path !== '') ?? '';
}

/** The data folder that a command line means. */
export function folderOf({ data }: DataOptions, environment: NodeJS.ProcessEnv): DataFolder {
  return dataFolder(data ?? (environment.SLUICE_DATA || DEFAULT_DATA_FOLDER));
}

/** The refusal of --ledger-namespace on a data folder. */
export function noCluster(): SluiceError {
  return new SluiceError(
    'InvalidInput',
    '--ledger-namespace is about an installation in a cluster; name its kubeconfig with --kubeconfig',
  );
}
