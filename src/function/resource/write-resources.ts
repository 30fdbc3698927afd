import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { checkPath } from '../../git/objects/paths.ts';
import { isBlankDocument, joinDocuments, splitDocuments } from '../../package/merge/split-documents.ts';
import type { PackageResources } from './read-resources.ts';
import type { Resource } from './resource.ts';
import { isResourcePath } from './resource-path.ts';

/** The place of a part of a file, and its text. */
interface Slot {
  readonly position: number;
  readonly isBlank: boolean;
  text(): string;
}

/**
 * The files of a package for these resources: contents of files that differ, by path; null removes one. What
 * did not change stays byte for byte. Throws InvalidInput, with the resource and the path, for one that has no place: outside of the
 * package, where another one is, or in a file that would not be read again.
 */
export function writeResources(
  before: Pick<PackageResources, 'files' | 'resources'>,
  after: readonly Resource[],
): Map<string, string | null> {
  const was = byFile(before.resources, ({ origin, file }) => origin?.file ?? file);
  const is = byFile(after, fileOf);
  const edits = new Map<string, string | null>();
  for (const file of new Set([...was.keys(), ...is.keys()])) {
    const old = before.files.get(file);
    const resources = is.get(file) ?? [];
    if (old !== undefined && isUntouched(was.get(file) ?? [], resources)) continue;
    const text = old === undefined ? newFile(file, resources) : changedFile(file, old, was.get(file) ?? [], resources);
    if (text !== old) edits.set(file, text);
  }
  refuseCollisions(before.files, edits, is);
  return edits;
}

/** The file of a resource, or the one that it gets. */
export function fileOf(resource: Resource): string {
  if (resource.file !== '') return resource.file;
  // As kyaml names them; names of some kinds have colons and slashes.
  const [namespace, kind, name] = [resource.namespace ?? '', resource.kind.toLowerCase(), resource.name].map((part) =>
    part.replace(/[^\w.-]/g, '_').replace(/^\.+/, '_'),
  );
  const file = name === '' ? `${kind}.yaml` : `${kind}_${name}.yaml`;
  return namespace === '' ? file : `${namespace}/${file}`;
}

function byFile(resources: readonly Resource[], name: (resource: Resource) => string): Map<string, Resource[]> {
  const found = new Map<string, Resource[]>();
  for (const resource of resources) {
    const file = name(resource);
    const list = found.get(file);
    if (list === undefined) found.set(file, [resource]);
    else list.push(resource);
  }
  return found;
}

function isUntouched(was: readonly Resource[], is: readonly Resource[]): boolean {
  if (was.length !== is.length) return false;
  const places = new Set(was.map(({ origin }) => origin?.index));
  return is.every(({ origin, file, index, isChanged }) => {
    return origin !== undefined && origin.file === file && origin.index === index && places.delete(index) && !isChanged;
  });
}

function newFile(file: string, resources: readonly Resource[]): string {
  const [first] = resources;
  if (first === undefined) return '';
  try {
    checkPath(file);
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    throw refused(first, error.message);
  }
  if (!isResourcePath(file))
    throw refused(first, `path ${JSON.stringify(file)} is refused: resources go into .yaml and .yml files`);
  return joined(placed(resources, new Map()));
}

/** Returns the file without removed resources and with new ones; null if no document remains. */
function changedFile(file: string, text: string, was: readonly Resource[], is: readonly Resource[]): string | null {
  const managed = new Set(was.map(({ origin }) => origin?.index));
  const slots: Slot[] = [];
  const taken = new Map<number, string>();
  let index = 0;
  for (const part of splitDocuments(text)) {
    if (isBlankDocument(part)) {
      // Placed before the document that it precedes.
      if (part !== '') slots.push({ position: index - 0.5, isBlank: true, text: () => part });
      continue;
    }
    if (!managed.has(index)) {
      slots.push({ position: index, isBlank: false, text: () => part });
      taken.set(index, `a document of ${file} that that is not a resource`);
    }
    index++;
  }
  slots.push(...placed(is, taken));
  if (slots.every(({ isBlank }) => isBlank)) return null;
  return joined(slots);
}

/** Assigns every resource its place; new ones whose place is taken are appended. `taken` describes the existing ones by index. */
function placed(resources: readonly Resource[], taken: Map<number, string>): Slot[] {
  const slots: Slot[] = [];
  const place = (resource: Resource, position: number) => {
    taken.set(position, resource.describe());
    slots.push({ position, isBlank: false, text: () => resource.toText() });
  };
  const homeless: Resource[] = [];
  for (const resource of resources.toSorted(
    (a, b) => Number(a.origin === undefined) - Number(b.origin === undefined),
  )) {
    const other = taken.get(resource.index);
    if (other === undefined) place(resource, resource.index);
    else if (resource.origin === undefined) homeless.push(resource);
    else throw refused(resource, `path ${JSON.stringify(resource.file)}, index ${resource.index} is taken by ${other}`);
  }
  let last = Math.max(-1, ...taken.keys());
  for (const resource of homeless) place(resource, ++last);
  return slots;
}

function joined(slots: readonly Slot[]): string {
  const parts = slots.toSorted((a, b) => a.position - b.position).map((slot) => slot.text());
  return joinDocuments(parts.map((part, at) => (at > 0 && part.startsWith('\ufeff') ? part.slice(1) : part)));
}

/** A path cannot be a file and a folder. */
function refuseCollisions(
  before: ReadonlyMap<string, string>,
  edits: ReadonlyMap<string, string | null>,
  resources: ReadonlyMap<string, readonly Resource[]>,
): void {
  const added = [...edits].flatMap(([path, text]) => (text !== null && !before.has(path) ? [path] : []));
  if (added.length === 0) return;
  const paths = new Set([...before.keys(), ...added].filter((path) => edits.get(path) !== null));
  const folders = new Set([...paths].flatMap(foldersOf));
  for (const path of added) {
    const resource = resources.get(path)?.[0];
    const file = foldersOf(path).find((folder) => paths.has(folder));
    if (resource === undefined || (!folders.has(path) && file === undefined)) continue;
    const why = file === undefined ? 'there is a folder of that name' : `${JSON.stringify(file)} is a file`;
    throw refused(resource, `path ${JSON.stringify(path)} is refused: ${why}`);
  }
}

function foldersOf(path: string): string[] {
  const found: string[] = [];
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) found.push(path.slice(0, at));
  return found;
}

function refused(resource: Resource, why: string): SluiceError {
  const { namespace, kind, name } = resource;
  return new SluiceError('InvalidInput', `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}: ${why}`);
}
