import { loadAll } from 'js-yaml';
import { messageOf } from '../../../foundation/sluice-error.ts';

/** One KRM object of a package, as plain data. */
export interface KrmObject {
  /** Path below the package folder. */
  readonly file: string;
  /** Position of the document in its file, from 0. */
  readonly index: number;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly value: Readonly<Record<string, unknown>>;
}

export interface KrmFile {
  readonly objects: readonly KrmObject[];
  /** Reason why the file could not be parsed as YAML; often it is a template. */
  readonly problem: string | undefined;
}

const MAX_FILE_BYTES = 4 * 1024 * 1024;

export function isYamlPath(path: string): boolean {
  return path.endsWith('.yaml') || path.endsWith('.yml');
}

const prepared = new WeakMap<Uint8Array, { readonly path: string; readonly file: KrmFile }>();

/** True if the file was read before; see KrmReader. */
export function isPrepared(data: Uint8Array): boolean {
  return prepared.has(data);
}

/** Caches the parsed file as long as its bytes exist. */
export function keepPrepared(path: string, data: Uint8Array, file: KrmFile): void {
  prepared.set(data, { path, file });
}

/** `parseKrmFile` for bytes that may have been read before, under whatever path. */
export function readKrmFile(path: string, data: Uint8Array): KrmFile {
  const found = prepared.get(data);
  if (found?.path === path) return found.file;
  // A problem names the path.
  if (found === undefined || found.file.problem !== undefined) return parseKrmFile(path, data);
  return { ...found.file, objects: found.file.objects.map((object) => ({ ...object, file: path })) };
}

/** The KRM objects in one YAML file. Documents without apiVersion and kind are passed over; a file that is no YAML is a problem. */
export function parseKrmFile(file: string, data: Uint8Array): KrmFile {
  if (data.byteLength > MAX_FILE_BYTES) {
    return { objects: [], problem: `${file} has ${data.byteLength} bytes, at most ${MAX_FILE_BYTES} are read` };
  }
  let documents: unknown[];
  try {
    documents = loadAll(new TextDecoder('utf-8', { fatal: true }).decode(data)) as unknown[];
  } catch (error) {
    return { objects: [], problem: `${file}: ${messageOf(error).split('\n')[0]}` };
  }
  const objects: KrmObject[] = [];
  for (const [index, value] of documents.entries()) {
    const object = asObject(file, index, value);
    if (object !== undefined) objects.push(object);
  }
  return { objects, problem: undefined };
}

function asObject(file: string, index: number, value: unknown): KrmObject | undefined {
  if (!isRecord(value) || typeof value.apiVersion !== 'string' || typeof value.kind !== 'string') return undefined;
  const metadata = isRecord(value.metadata) ? value.metadata : {};
  return {
    file,
    index,
    apiVersion: value.apiVersion,
    kind: value.kind,
    name: typeof metadata.name === 'string' ? metadata.name : '',
    namespace: typeof metadata.namespace === 'string' ? metadata.namespace : undefined,
    value,
  };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
