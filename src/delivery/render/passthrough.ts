import { pathProblem } from '../path-rules.ts';
import { PackageRefused } from '../refusal.ts';
import { readOwner } from '../tree/kustomization.ts';
import { describeObject, isOpenSecret, objectsIn } from '../tree/manifest-object.ts';
import { MAX_PACKAGE_BYTES, type Manifests } from '../tree/manifests.ts';
import { readYaml, YamlProblem } from '../yaml/read-yaml.ts';
import { isMapping, isNull, isSequence, type Value } from '../yaml/yaml-value.ts';
import { checkKustomizations } from './check-kustomization.ts';
import { KUSTOMIZATION_FILES } from './render-mode.ts';

const MAX_OBJECTS = 10_000;
/** Files by which Argo CD overrides the parameters and images of an Application. */
const ENGINE_SETTINGS = /^\.argocd-source.*\.ya?ml$/i;

/**
 * The files of a kustomization or chart as they are, without Kptfiles. What the engine renders from them is unknown here: objects of
 * two packages are not compared, and a Secret is found only where it is written in a file. Remote resources are refused. Throws PackageRefused.
 */
export function passThrough(files: ReadonlyMap<string, Uint8Array>, buildFile: string): Manifests {
  // What the engine would fetch could change after the approval.
  checkKustomizations(files);
  const delivered = new Map<string, Uint8Array>();
  const openSecrets: string[] = [];
  const budget = { left: MAX_OBJECTS };
  let bytes = 0;
  for (const [path, data] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (name === 'Kptfile') continue;
    const problem = pathProblem(path);
    if (problem !== undefined) throw new PackageRefused('InvalidPath', `path ${JSON.stringify(path)} ${problem}`);
    if (ENGINE_SETTINGS.test(name))
      throw new PackageRefused('RemoteResource', `${path} changes what Argo CD renders; remove it from the package`);
    if (path !== buildFile && readOwner(data) !== undefined)
      throw new PackageRefused(
        'InvalidManifest',
        `${path} has the mark of a folder that Sluice delivered, which would give the folder another owner; remove its first line`,
      );
    bytes += data.length;
    if (bytes > MAX_PACKAGE_BYTES)
      throw new PackageRefused(
        'TooLarge',
        `${path}: the files of the package are larger than ${MAX_PACKAGE_BYTES} bytes`,
      );
    delivered.set(path, data);
    openSecrets.push(...openSecretsIn(path, name, data, budget));
  }
  return { files: delivered, objects: delivered.size, places: new Map(), openSecrets, buildFile };
}

/** A template that cannot be read as YAML counts as an open Secret if it has one at all. */
function openSecretsIn(path: string, name: string, data: Uint8Array, budget: { left: number }): string[] {
  const text = new TextDecoder().decode(data);
  try {
    const documents = readYaml(text);
    if ((KUSTOMIZATION_FILES as readonly string[]).includes(name))
      return documents.flatMap(({ value }) => (hasSecretGenerator(value) ? [`the secretGenerator at ${path}`] : []));
    // Files of any name: kustomize reads what its file lists.
    return documents
      .flatMap(({ value }) => [...objectsIn(value, path, budget)])
      .filter(isOpenSecret)
      .map((object) => `${describeObject(object)} at ${object.place}`);
  } catch (error) {
    if (!(error instanceof YamlProblem || error instanceof PackageRefused)) throw error;
    return /\bkind["']?\s*:\s*["']?Secret/.test(text) ? [`a Secret at ${path}`] : [];
  }
}

/** Kustomize ignores the case of field names. */
function hasSecretGenerator(value: Value): boolean {
  if (!isMapping(value)) return false;
  return [...value.entries].some(
    ([field, { value: generators }]) =>
      field.toLowerCase() === 'secretgenerator' &&
      (isSequence(generators) ? generators.length > 0 : !isNull(generators)),
  );
}
