import { type Kptfile, type Pipeline, readKptfile } from '../../../kptfile-schema/index.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { isKptfilePath } from '../../package/merge/package-files.ts';
import type { SingleFunction } from '../model/pipeline.ts';

/** A package of the tree that is rendered: the root package, or one in a folder of it. */
export interface PipelinePackage {
  /** Its folder below the root package; empty for that. */
  readonly path: string;
  readonly kptfilePath: string;
  readonly pipeline: Pipeline;
  /** The packages directly in it, in the order of their paths. */
  readonly nested: readonly PipelinePackage[];
}

export interface PackageTree {
  /** Every package before those in it. Resources of packages are in this order. */
  readonly parentsFirst: readonly PipelinePackage[];
  /** The order in which the pipelines run. */
  readonly runs: readonly PipelinePackage[];
  /** Whether results from before a failure are kept. */
  readonly savesOnFailure: boolean;
}

/** Reads all Kptfiles. Throws InvalidInput if there is none for the root package, or if one cannot be read. */
export function readPackages(files: ReadonlyMap<string, string>): PackageTree {
  const kptfiles = new Map<string, Kptfile>();
  for (const path of [...files.keys()].filter(isKptfilePath).sort())
    kptfiles.set(path.slice(0, -'/Kptfile'.length), readable(path, files.get(path) ?? ''));
  const rootKptfile = kptfiles.get('');
  if (rootKptfile === undefined)
    throw new SluiceError('InvalidInput', 'the folder is not a package: it has no Kptfile');
  const children = Map.groupBy([...kptfiles.keys()].filter((path) => path !== '').sort(), (path) =>
    parentOf(path, kptfiles),
  );
  const build = (path: string): PipelinePackage => ({
    path,
    kptfilePath: path === '' ? 'Kptfile' : `${path}/Kptfile`,
    pipeline: kptfiles.get(path)?.pipeline ?? {},
    nested: (children.get(path) ?? []).map(build),
  });
  const root = build('');
  const breadthFirst = isOn(rootKptfile, 'kpt.dev/bfs-rendering');
  return {
    parentsFirst: walk(root),
    runs: breadthFirst ? byLevels(root) : nestedFirst(root),
    savesOnFailure: isOn(rootKptfile, 'kpt.dev/save-on-render-failure'),
  };
}

/** A tree for one function that no Kptfile names, which gets all resources. */
export function singlePackage({ list, function: fn }: SingleFunction): PackageTree {
  const root = { path: '', kptfilePath: 'Kptfile', pipeline: { [list]: [fn] }, nested: [] };
  return { parentsFirst: [root], runs: [root], savesOnFailure: false };
}

function readable(path: string, text: string): Kptfile {
  const read = readKptfile(text);
  if (read.ok) return read.kptfile;
  const { message, line } = read.error;
  throw new SluiceError('InvalidInput', `${path}${line === undefined ? '' : `:${line}`}: ${message}`);
}

/** The folder of the package around a nested one. */
function parentOf(path: string, packages: ReadonlyMap<string, unknown>): string {
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
    const folder = path.slice(0, at);
    if (packages.has(folder)) return folder;
  }
  return '';
}

function isOn({ metadata }: Kptfile, annotation: string): boolean {
  return metadata?.annotations?.[annotation]?.toLowerCase() === 'true';
}

function walk(from: PipelinePackage): PipelinePackage[] {
  return [from, ...from.nested.flatMap(walk)];
}

function nestedFirst(from: PipelinePackage): PipelinePackage[] {
  return [...from.nested.flatMap(nestedFirst), from];
}

function byLevels(root: PipelinePackage): PipelinePackage[] {
  const order = [root];
  for (const each of order) order.push(...each.nested);
  return order;
}
