import { posix } from 'node:path';
import { isMap, isScalar, isSeq } from 'yaml';
import { readKptfile } from '../../../kptfile-schema/index.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { checkPath } from '../../git/objects/paths.ts';
import { isKptfilePath } from '../../package/merge/package-files.ts';
import type { FunctionLimits } from '../model/pipeline.ts';
import type { Resource } from '../resource/resource.ts';
import { isResourcePath } from '../resource/resource-path.ts';
import { originOf } from '../resource/selection.ts';
import { fileOf } from '../resource/write-resources.ts';

/** A deeper tree was never read, so a function made it. */
const MAX_DEPTH = 200;

export interface Expectation {
  /** The resources before the function, all of the package. */
  readonly before: readonly Place[];
  /** Whether existing Kptfiles must still exist afterwards. */
  readonly keepsKptfiles: boolean;
  readonly limits: FunctionLimits;
}

/** The place of a resource before a function ran, and whether it was complete. */
export interface Place {
  readonly resource: Resource;
  readonly file: string;
  readonly index: number;
  readonly isComplete: boolean;
}

/** The places of resources before a function, which changes them in place. */
export function placesOf(resources: readonly Resource[]): Place[] {
  return resources.map((resource) => {
    const { file, index } = resource;
    return { resource, file, index, isComplete: isComplete(resource) };
  });
}

/**
 * Checks the output of a function, and assigns every new resource its place. Throws InvalidInput for what kpt refuses, and for a
 * package without its Kptfiles; LimitExceeded above the limits. Returns the new resources with a kind and name that the package has
 * already, which kpt accepts.
 */
export function acceptOutput(
  output: readonly Resource[],
  { before, keepsKptfiles, limits }: Expectation,
): readonly Resource[] {
  if (output.length > limits.resources)
    throw new SluiceError(
      'LimitExceeded',
      `it returned ${output.length} resources; the maximum is ${limits.resources}`,
    );
  checkSize(output, limits.outputBytes);
  const incomplete = new Set(before.filter((place) => !place.isComplete).map(({ file, index }) => `${file}\0${index}`));
  const known = new Map(before.map((place) => [place.resource, place]));
  const origins = new Set(before.map(({ resource }) => originOf(resource)));
  const taken = new Map<string, Resource>();
  const fresh: Resource[] = [];
  for (const resource of output) {
    if (!isComplete(resource) && !incomplete.has(`${resource.file}\0${resource.index}`))
      throw new SluiceError(
        'InvalidInput',
        `it created a resource without apiVersion, kind or name: ${resource.describe()}`,
      );
    const was = known.get(resource);
    if (was === undefined && (resource.origin === undefined || !origins.has(originOf(resource)))) fresh.push(resource);
    else {
      if (was?.file !== resource.file) resource.file = checkedFile(resource);
      const place = `${resource.file}\0${resource.index}`;
      const other = taken.get(place);
      if (other !== undefined)
        throw new SluiceError(
          'InvalidInput',
          `it put ${resource.describe()} in the place of ${other.kind} ${other.name} (document ${resource.index} of the file)`,
        );
      taken.set(place, resource);
    }
  }
  settle(fresh, taken);
  if (keepsKptfiles)
    checkKptfiles(
      output,
      before.flatMap(({ file }) => (isKptfilePath(file) ? [file] : [])),
    );
  return repeated(output, fresh);
}

/** New resources whose place is taken are appended to the file. */
function settle(fresh: readonly Resource[], taken: Map<string, Resource>): void {
  const ends = new Map<string, number>();
  for (const { file, index } of taken.values()) ends.set(file, Math.max(ends.get(file) ?? 0, index + 1));
  for (const resource of fresh) {
    resource.file = fileOf(resource);
    resource.file = checkedFile(resource);
    if (taken.has(`${resource.file}\0${resource.index}`)) resource.index = ends.get(resource.file) ?? 0;
    taken.set(`${resource.file}\0${resource.index}`, resource);
    ends.set(resource.file, Math.max(ends.get(resource.file) ?? 0, resource.index + 1));
  }
}

function repeated(output: readonly Resource[], fresh: readonly Resource[]): Resource[] {
  if (fresh.length === 0) return [];
  const isFresh = new Set(fresh);
  const known = new Set(output.filter((resource) => !isFresh.has(resource)).map(identityOf));
  return fresh.filter((resource) => {
    const identity = identityOf(resource);
    if (known.has(identity)) return true;
    known.add(identity);
    return false;
  });
}

function identityOf({ apiVersion, kind, namespace, name }: Resource): string {
  return JSON.stringify([apiVersion, kind, namespace, name]);
}

function checkedFile(resource: Resource): string {
  const file = posix.normalize(resource.file);
  try {
    checkPath(file);
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    throw new SluiceError(
      'InvalidInput',
      `it put ${resource.kind} ${resource.name} where it cannot be: ${error.message}`,
    );
  }
  if (!isResourcePath(file))
    throw new SluiceError(
      'InvalidInput',
      `it put ${resource.kind} ${resource.name} into ${JSON.stringify(file)}: resources go into .yaml and .yml files`,
    );
  return file;
}

function checkKptfiles(output: readonly Resource[], kptfiles: readonly string[]): void {
  const found = new Map<string, Resource>();
  for (const resource of output) if (resource.kind === 'Kptfile') found.set(resource.file, resource);
  for (const file of kptfiles) {
    const kptfile = found.get(file);
    if (kptfile === undefined)
      throw new SluiceError('InvalidInput', `it removed ${JSON.stringify(file)}, which every package needs`);
    if (!kptfile.isChanged) continue;
    const read = readKptfile(kptfile.toText());
    if (!read.ok)
      throw new SluiceError('InvalidInput', `it made ${JSON.stringify(file)} unreadable: ${read.error.message}`);
  }
}

/** As kpt has it, kustomizations need no name. */
function isComplete({ apiVersion, kind, name, group }: Resource): boolean {
  if (group === 'kustomize.config.k8s.io' || kind === 'Kustomization') return true;
  return apiVersion !== '' && kind !== '' && name !== '';
}

/** Counts the characters of all keys and values, as a bound for memory. */
function checkSize(resources: readonly Resource[], limit: number): void {
  let left = limit;
  const visit = (node: unknown, depth: number): void => {
    left -= isScalar(node) ? String(node.value).length + 1 : 1;
    if (left < 0) throw new SluiceError('LimitExceeded', `it returned more than ${limit} bytes of resources`);
    if (depth > MAX_DEPTH)
      throw new SluiceError('LimitExceeded', `it created a resource that nests deeper than ${MAX_DEPTH} levels`);
    if (isMap(node))
      for (const { key, value } of node.items) {
        visit(key, depth + 1);
        visit(value, depth + 1);
      }
    else if (isSeq(node)) for (const item of node.items) visit(item, depth + 1);
  };
  for (const { root } of resources) visit(root, 0);
}
