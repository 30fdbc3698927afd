import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { compareText, joinPath, pathProblem } from '../path-rules.ts';
import { type DeliveryRefusal, PackageRefused, refusalOf } from '../refusal.ts';
import { readYaml, type YamlDocument, YamlProblem } from '../yaml/read-yaml.ts';
import { Unwritable, writeYaml } from '../yaml/write-yaml.ts';
import { isSequence, textAt, valueAt } from '../yaml/yaml-value.ts';
import { describeObject, identityOf, isOpenSecret, type ManifestObject, objectsIn } from './manifest-object.ts';

/** Limit of the bytes of YAML in a package, and of the characters that are written for it. */
export const MAX_PACKAGE_BYTES = 4 * 1024 * 1024;
const MAX_OBJECTS = 10_000;

type RenderMode = NonNullable<DeliveryTarget['spec']['render']>;

/** The parts of a package that are delivered to clusters. */
export interface Manifests<File = Uint8Array> {
  /** By path in the package, in order; without `kustomization.yaml`. */
  readonly files: ReadonlyMap<string, File>;
  readonly objects: number;
  /** Name and place of each object, by its identity in a cluster. */
  readonly places: ReadonlyMap<string, string>;
  /** Name and place of Secrets whose content is readable. */
  readonly openSecrets: readonly string[];
  /** The file of `files` by which the engines build the folder, and which carries the owner; default: a list of the files. */
  readonly buildFile?: string;
}

export type ManifestsOutcome<File = Uint8Array> =
  | { readonly manifests: Manifests<File>; readonly refused?: undefined; readonly isTemporary?: undefined }
  | {
      readonly refused: DeliveryRefusal;
      readonly manifests?: undefined;
      /** True if another attempt may succeed with the same files. */
      readonly isTemporary?: true;
    };

/** File names that make Argo CD, Flux or Helm build a folder otherwise than by the delivered list. */
const BUILD_FILES = new Set(['kustomization.yaml', 'kustomization.yml', 'Kustomization', 'Chart.yaml']);

/**
 * The manifests of a package: one file for each source file that has objects for a cluster, documents in order, lists replaced by
 * their items, JSON as `<file>.json.yaml`. Comments are dropped, since readers disagree on where some of them end. It depends on
 * the files alone, so a result may be cached by the id of their tree.
 */
export function manifestsOf(files: ReadonlyMap<string, Uint8Array>, render: RenderMode = 'none'): ManifestsOutcome {
  try {
    return { manifests: build(files, render) };
  } catch (error) {
    return { refused: refusalOf(error) };
  }
}

function build(files: ReadonlyMap<string, Uint8Array>, render: RenderMode): Manifests {
  const paths = [...files.keys()].sort(compareText);
  for (const path of paths) {
    const problem = pathProblem(path);
    if (problem !== undefined) throw new PackageRefused('InvalidPath', `path ${JSON.stringify(path)} ${problem}`);
  }
  const size = { left: MAX_PACKAGE_BYTES };
  const functionConfigs = new Set<string>();
  for (const path of paths)
    if (baseName(path) === 'Kptfile')
      for (const config of configPaths(path, read(path, files, size))) functionConfigs.add(config);

  const written = new Map<string, Uint8Array>();
  const seen = new Map<string, ManifestObject>();
  const openSecrets: string[] = [];
  const budget = { left: MAX_OBJECTS };
  const room = { left: MAX_PACKAGE_BYTES };
  for (const path of paths) {
    if (BUILD_FILES.has(baseName(path))) {
      checkBuildFile(path, read(path, files, size), render);
      continue;
    }
    if (!/\.(?:ya?ml|json)$/.test(path) || functionConfigs.has(path)) continue;
    const objects = read(path, files, size).flatMap(({ value }) => [...objectsIn(value, path, budget)]);
    if (objects.length === 0) continue;
    for (const object of objects) {
      const other = seen.get(identityOf(object));
      if (other !== undefined)
        throw new PackageRefused(
          'DuplicateObject',
          `${object.place}: ${describeObject(object)} is also at ${other.place}`,
        );
      seen.set(identityOf(object), object);
      if (isOpenSecret(object)) openSecrets.push(`${describeObject(object)} at ${object.place}`);
    }
    const target = path.endsWith('.json') ? `${path}.yaml` : path;
    if (files.has(target) && target !== path)
      throw new PackageRefused('InvalidPath', `${path} is delivered as ${target}, which is also a file of the package`);
    written.set(target, write(path, objects, room));
  }
  const places = new Map(
    [...seen].map(([identity, object]) => [identity, `${describeObject(object)} at ${object.place}`]),
  );
  return {
    files: new Map([...written].sort(([a], [b]) => compareText(a, b))),
    objects: seen.size,
    places,
    openSecrets,
  };
}

/** The output of a kustomization or a chart differs from its files, so neither can be delivered or ignored. */
function checkBuildFile(path: string, documents: readonly YamlDocument[], render: RenderMode): void {
  const isLocal = ({ value }: YamlDocument): boolean =>
    textAt(value, 'metadata', 'annotations', 'config.kubernetes.io/local-config') === 'true';
  const name = baseName(path);
  const isChart = name === 'Chart.yaml';
  if (!isChart && documents.every(isLocal)) return;
  // The mode concerns the file at the root of a package alone.
  const fitting = isChart ? 'helm' : 'kustomize';
  const mode =
    path === name && render !== fitting
      ? `set spec.render: ${fitting} on the target (now ${render}), `
      : 'spec.render applies to a file at the root of the package only; ';
  const mark = isChart ? '' : ', or mark it with annotation config.kubernetes.io/local-config: "true"';
  throw new PackageRefused(
    'OwnBuildFile',
    `${path}: cannot deliver the output of a ${name}; ${mode}render it into plain manifests and remove it${mark}`,
  );
}

function read(path: string, files: ReadonlyMap<string, Uint8Array>, size: { left: number }): YamlDocument[] {
  const data = files.get(path) ?? new Uint8Array();
  size.left -= data.length;
  if (size.left < 0)
    throw new PackageRefused('TooLarge', `${path}: the YAML of the package is larger than ${MAX_PACKAGE_BYTES} bytes`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(data);
  } catch {
    // The error of the decoder has no details.
    throw new PackageRefused('InvalidManifest', `${path}: is not valid UTF-8`);
  }
  try {
    return readYaml(text);
  } catch (error) {
    if (error instanceof YamlProblem)
      throw new PackageRefused('InvalidManifest', `${path}:${error.line}: ${error.message}`);
    throw error;
  }
}

function write(path: string, objects: readonly ManifestObject[], room: { left: number }): Uint8Array {
  try {
    const text = writeYaml(
      objects.map(({ value }) => value),
      room.left,
    );
    room.left -= text.length;
    return new TextEncoder().encode(text);
  } catch (error) {
    if (!(error instanceof Unwritable)) throw error;
    throw new PackageRefused('TooLarge', `${objects[0]?.place ?? path}: cannot be written: ${error.message}`);
  }
}

/** The configuration files of the functions in a Kptfile: paths from the root of the package. */
function configPaths(kptfile: string, documents: readonly YamlDocument[]): string[] {
  const folder = kptfile.split('/').slice(0, -1);
  const found: string[] = [];
  for (const { value } of documents)
    for (const list of ['mutators', 'validators']) {
      const functions = valueAt(value, 'pipeline', list);
      for (const entry of isSequence(functions) ? functions : []) {
        const config = textAt(entry, 'configPath');
        if (config !== undefined) found.push(joinPath(...folder, config.replace(/^(?:\.\/)+/, '')));
      }
    }
  return found;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
