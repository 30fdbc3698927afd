import { readYaml, YamlProblem } from '../yaml/read-yaml.ts';
import { isScalar, isSequence, valueAt } from '../yaml/yaml-value.ts';
import { sourcePath } from './engine-values.ts';

/** Names of a kustomization, in the order in which kustomize looks for them. */
export const KUSTOMIZATION_NAMES = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'];

/** The paths that the kustomization of a folder lists, from the root; null if it has none, undefined if it is not read yet. */
export type ListedPaths = (folder: string) => ReadonlySet<string> | null | undefined;

/** The files and folders that a kustomization lists, from the root of the repository; none of a text that is no kustomization. */
export function listedPaths(folder: string, text: string): ReadonlySet<string> {
  const found = new Set<string>();
  try {
    for (const { value } of readYaml(text))
      for (const field of ['resources', 'bases', 'components']) {
        const entries = valueAt(value, field);
        if (!isSequence(entries)) continue;
        for (const entry of entries) {
          const path = isScalar(entry) ? joined(folder, entry.text) : undefined;
          if (path !== undefined) found.add(path);
        }
      }
  } catch (error) {
    // The engine cannot read it either.
    if (!(error instanceof YamlProblem)) throw error;
  }
  return found;
}

/** Undefined for a path that leaves the repository. */
function joined(folder: string, entry: string): string | undefined {
  const segments = folder === '' ? [] : folder.split('/');
  for (const segment of entry.split('/')) {
    if (segment !== '..') segments.push(segment);
    else if (segments.pop() === undefined) return undefined;
  }
  return sourcePath(segments.join('/'));
}

/**
 * Whether kustomize renders `folder`, which is below `path`, if it builds `path`; the folder to read next if that is not known yet. Only
 * kustomizations on the way to the folder are read, since a list can have thousands of entries. With
 * `isSearched`, the kustomization of `path` is generated if there is none: it lists the first folders on the way that have one, and all
 * manifests of the others.
 */
export function includesFolder(
  listed: ListedPaths,
  path: string,
  folder: string,
  isSearched: boolean,
): boolean | { readonly unread: string } {
  const onTheWay = pathsTo(path, folder);
  const seen = new Set([path]);
  const searched = new Set(isSearched ? [path] : []);
  for (const present of seen) {
    if (present === folder) return true;
    const paths = listed(present);
    if (paths === undefined) return { unread: present };
    if (paths !== null) for (const one of onTheWay) if (paths.has(one)) seen.add(one);
    const next = onTheWay.find((one) => one.length > present.length);
    if (paths === null && searched.has(present) && next !== undefined) {
      seen.add(next);
      searched.add(next);
    }
  }
  return false;
}

/** The folders from below `path` to `folder`, which is the last one. */
function pathsTo(path: string, folder: string): string[] {
  const paths: string[] = [];
  for (let end = folder.length; end > path.length; end = folder.lastIndexOf('/', end - 1))
    paths.push(folder.slice(0, end));
  return paths.reverse();
}
