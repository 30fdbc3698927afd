import { PackageRefused } from '../refusal.ts';
import { readYaml, YamlProblem } from '../yaml/read-yaml.ts';
import { isMapping, isScalar, isSequence, type Value } from '../yaml/yaml-value.ts';
import { KUSTOMIZATION_FILES } from './render-mode.ts';

/** Fields whose entries kustomize reads as a file or folder, or fetches; in lower case, since it ignores the case of names. */
const FILE_LISTS = new Set(['resources', 'bases', 'components', 'crds', 'configurations']);
/** Fields that run plugins or Helm. */
const PLUGINS = new Set(['generators', 'transformers', 'validators', 'helmcharts', 'helmchartinflationgenerator']);
/** Fields with text that kustomize does not read as an address. */
const FREE_TEXT = new Set([
  'patch',
  'literals',
  'annotations',
  'commonAnnotations',
  'labels',
  'commonLabels',
  'images',
]);
/** Fields of generators, whose entries are paths, or `<key>=<path>`. */
const GENERATED_LISTS = new Set(['files', 'envs']);
const GENERATORS = new Set(['configmapgenerator', 'secretgenerator']);
/**
 * How kustomize recognizes a remote file, also behind `<key>=`; any other scheme is for its remote folders. A proxy does not keep it from
 * addresses of this machine.
 */
const ADDRESS = /(?:^|=)\s*(?:[a-z][a-z0-9+.-]*::?\/\/|https?:|git@|git::)/i;

/**
 * Refuses what kustomize would fetch or execute: every file or folder that a kustomization of the package lists must be in the package.
 * Throws PackageRefused.
 */
export function checkKustomizations(files: ReadonlyMap<string, Uint8Array>): void {
  const folders = new Set<string>(['']);
  for (const path of files.keys())
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1))
      folders.add(path.slice(0, end));
  for (const [path, data] of files) {
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (!(KUSTOMIZATION_FILES as readonly string[]).includes(name)) continue;
    const folder = path.slice(0, Math.max(0, path.length - name.length - 1));
    const isThere = (entry: string): boolean => {
      const resolved = resolvePath(folder, entry);
      return resolved !== undefined && (files.has(resolved) || folders.has(resolved));
    };
    for (const { value } of read(path, data)) checkDocument(path, value, isThere);
  }
}

function checkDocument(path: string, document: Value, isThere: (entry: string) => boolean): void {
  if (!isMapping(document)) return;
  for (const [field, { value }] of document.entries) {
    if (PLUGINS.has(field.toLowerCase()) && !(isSequence(value) && value.length === 0))
      throw new PackageRefused('RemoteResource', `${path}: field ${field} is not supported: plugins are not run`);
    if (FILE_LISTS.has(field.toLowerCase()))
      for (const entry of isSequence(value) ? value : []) {
        if (isScalar(entry) && isThere(entry.text)) continue;
        const shown = JSON.stringify(isScalar(entry) ? entry.text.slice(0, 200) : field);
        throw new PackageRefused(
          'RemoteResource',
          `${path}: ${shown} in ${field} is no file or folder of the package, and nothing is fetched; copy it into the package`,
        );
      }
    if (GENERATORS.has(field.toLowerCase())) checkGenerators(path, field, value, isThere);
    checkAddresses(path, field, value, new Set());
  }
}

function checkGenerators(path: string, field: string, value: Value, isThere: (entry: string) => boolean): void {
  for (const generator of isSequence(value) ? value : [])
    for (const [name, { value: entries }] of isMapping(generator) ? generator.entries : [])
      for (const entry of GENERATED_LISTS.has(name.toLowerCase()) && isSequence(entries) ? entries : []) {
        const file = isScalar(entry) ? entry.text.slice(entry.text.indexOf('=') + 1) : '';
        if (isThere(file)) continue;
        throw new PackageRefused(
          'RemoteResource',
          `${path}: ${JSON.stringify(file.slice(0, 200))} in ${field} is no file of the package, and nothing is fetched; copy it into the package`,
        );
      }
}

/** `seen` are the values that were checked: aliases refer to a few of them very often. */
function checkAddresses(path: string, field: string, value: Value, seen: Set<Value>): void {
  if (FREE_TEXT.has(field) || seen.has(value)) return;
  seen.add(value);
  if (isScalar(value)) {
    if (!ADDRESS.test(value.text)) return;
    const shown = JSON.stringify(value.text.slice(0, 200));
    throw new PackageRefused(
      'RemoteResource',
      `${path}: ${shown} in ${field} is a remote address, and nothing is fetched; copy the file into the package`,
    );
  }
  if (isSequence(value)) for (const item of value) checkAddresses(path, field, item, seen);
  else if (isMapping(value)) for (const [key, entry] of value.entries) checkAddresses(path, key, entry.value, seen);
}

/** The path of an entry from the root of the package; undefined if it leaves the package. */
function resolvePath(folder: string, entry: string): string | undefined {
  if (entry.startsWith('/')) return undefined;
  const parts = folder === '' ? [] : folder.split('/');
  for (const part of entry.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined) return undefined;
  }
  return parts.join('/');
}

function read(path: string, data: Uint8Array) {
  try {
    return readYaml(new TextDecoder('utf-8', { fatal: true }).decode(data));
  } catch (error) {
    if (error instanceof YamlProblem)
      throw new PackageRefused('InvalidManifest', `${path}:${error.line}: ${error.message}`);
    if (error instanceof TypeError) throw new PackageRefused('InvalidManifest', `${path}: is not valid UTF-8`);
    throw error;
  }
}
