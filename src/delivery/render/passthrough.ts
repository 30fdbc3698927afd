import { pathProblem } from '../path-rules.ts';
import { PackageRefused } from '../refusal.ts';
import { describeObject, isOpenSecret, objectsIn } from '../tree/manifest-object.ts';
import { MAX_PACKAGE_BYTES, type Manifests } from '../tree/manifests.ts';
import { readYaml, YamlProblem } from '../yaml/read-yaml.ts';
import { isSequence, valueAt } from '../yaml/yaml-value.ts';
import { KUSTOMIZATION_FILES } from './render-mode.ts';

const MAX_OBJECTS = 10_000;

/**
 * The files of a kustomization or chart as they are, without Kptfiles. What the engine renders from them is unknown here: objects of
 * two packages are not compared, and a Secret is found only where it is written in a file. Throws PackageRefused.
 */
export function passThrough(files: ReadonlyMap<string, Uint8Array>, buildFile: string): Manifests {
  const delivered = new Map<string, Uint8Array>();
  const openSecrets: string[] = [];
  const budget = { left: MAX_OBJECTS };
  let bytes = 0;
  for (const [path, data] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (name === 'Kptfile') continue;
    const problem = pathProblem(path);
    if (problem !== undefined) throw new PackageRefused('InvalidPath', `path ${JSON.stringify(path)} ${problem}`);
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
  const isSuspect = /\bkind["']?\s*:\s*["']?Secret\b/.test(text);
  const isKustomization = (KUSTOMIZATION_FILES as readonly string[]).includes(name);
  if (!isSuspect && !isKustomization) return [];
  try {
    const documents = readYaml(text);
    if (isKustomization)
      return documents.flatMap(({ value }) => {
        const generators = valueAt(value, 'secretGenerator');
        return isSequence(generators) && generators.length > 0 ? [`the secretGenerator at ${path}`] : [];
      });
    return documents
      .flatMap(({ value }) => [...objectsIn(value, path, budget)])
      .filter(isOpenSecret)
      .map((object) => `${describeObject(object)} at ${object.place}`);
  } catch (error) {
    if (!(error instanceof YamlProblem || error instanceof PackageRefused)) throw error;
    return isSuspect ? [`a Secret at ${path}`] : [];
  }
}
