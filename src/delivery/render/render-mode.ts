import { readYaml, YamlProblem } from '../yaml/read-yaml.ts';
import { textAt } from '../yaml/yaml-value.ts';

/** How a target delivers packages that are kustomizations or Helm charts. Packages of plain manifests are the same in every mode. */
export type RenderMode = 'none' | 'kustomize' | 'helm' | 'passthrough';

export type PackageKind = 'manifests' | 'kustomization' | 'chart';

/** The names under which kustomize reads its file, in the order of preference. */
export const KUSTOMIZATION_FILES = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'] as const;
export const CHART_FILE = 'Chart.yaml';

/** The kind of a package, and the file at its root that shows it. */
export function kindOfPackage(files: ReadonlyMap<string, Uint8Array>): {
  readonly kind: PackageKind;
  readonly file?: string;
} {
  const file = KUSTOMIZATION_FILES.find((name) => isMeant(files.get(name)));
  if (file !== undefined) return { kind: 'kustomization', file };
  return files.has(CHART_FILE) ? { kind: 'chart', file: CHART_FILE } : { kind: 'manifests' };
}

/** False for a kustomization that is marked as a local file of the package, and for none. */
function isMeant(data: Uint8Array | undefined): boolean {
  if (data === undefined) return false;
  try {
    const documents = readYaml(new TextDecoder().decode(data));
    return !documents.every(
      ({ value }) => textAt(value, 'metadata', 'annotations', 'config.kubernetes.io/local-config') === 'true',
    );
  } catch (error) {
    // The file is reported when it is read as a kustomization.
    if (error instanceof YamlProblem) return true;
    throw error;
  }
}
