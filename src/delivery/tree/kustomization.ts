import { writeYaml } from '../yaml/write-yaml.ts';
import type { Scalar } from '../yaml/yaml-value.ts';

export const KUSTOMIZATION = 'kustomization.yaml';

/** The files by which engines build a folder: the first line of one of them names its owner; an earlier one takes precedence. */
export const OWNER_FILES: ReadonlySet<string> = new Set([
  'kustomization.yml',
  KUSTOMIZATION,
  'Kustomization',
  'Chart.yaml',
]);

/** The owner of a folder: the target that writes it and the package that it contains. */
export interface FolderOwner {
  readonly target: string;
  readonly repository: string;
  readonly package: string;
  /** The published revision that it contains. */
  readonly revision?: number;
}

const MARK = '# Written by Sluice; changes here are overwritten. ';

/**
 * The list by which Argo CD and Flux build a folder. Its first line names the owner of the folder, so that the tree alone shows what may
 * be changed or removed.
 */
export function writeKustomization(owner: FolderOwner, files: readonly string[]): Uint8Array {
  const entry = (key: string, value: Scalar | readonly Scalar[]) => [key, { key: string(key), value }] as const;
  const list = {
    entries: new Map([
      entry('apiVersion', string('kustomize.config.k8s.io/v1beta1')),
      entry('kind', string('Kustomization')),
      entry('resources', files.map(string)),
    ]),
    line: 1,
  };
  return new TextEncoder().encode(markOf(owner) + writeYaml([list], Number.POSITIVE_INFINITY));
}

/** Puts the line with the owner above a build file of a package, which is otherwise delivered as it is. */
export function markFile(owner: FolderOwner, data: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(markOf(owner)), data]);
}

/** True for a path of a file that may name an owner. */
export function mayNameOwner(path: string): boolean {
  return OWNER_FILES.has(path.slice(path.lastIndexOf('/') + 1)) && path.includes('/');
}

function markOf(owner: FolderOwner): string {
  return `${MARK}${JSON.stringify(fieldsOf(owner))}\n`;
}

/** The owner that a `kustomization.yaml` names; undefined if Sluice did not write it. */
export function readOwner(data: Uint8Array): FolderOwner | undefined {
  const text = new TextDecoder().decode(data.subarray(0, 8192));
  const line = text.slice(0, text.indexOf('\n'));
  if (!line.startsWith(MARK)) return undefined;
  let fields: unknown;
  try {
    fields = JSON.parse(line.slice(MARK.length));
  } catch {
    // A mark that a user changed does not count.
    return undefined;
  }
  if (!Array.isArray(fields) || (fields.length !== 3 && fields.length !== 4)) return undefined;
  const [target, repository, path, revision] = fields as unknown[];
  if (typeof target !== 'string' || typeof repository !== 'string' || typeof path !== 'string') return undefined;
  const owner = { target, repository, package: path };
  return typeof revision === 'number' ? { ...owner, revision } : owner;
}

function fieldsOf({ target, repository, package: path, revision }: FolderOwner): (string | number)[] {
  return [target, repository, path, ...(revision === undefined ? [] : [revision])];
}

function string(text: string): Scalar {
  return { text, plain: false };
}
