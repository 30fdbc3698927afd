import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { dump, load } from 'js-yaml';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Kind } from '../../resource/kind.ts';
import { readManifests } from '../../resource/manifests.ts';
import type { KubernetesObject, ObjectKey, Stored } from '../../resource/object.ts';

/** Temporary files begin like this; a process that was killed may leave one. */
export const TEMPORARY_PREFIX = '.tmp-';
const EXTENSION = '.yaml';
const MAX_FILE_BYTES = 4 * 1024 * 1024;
/** With the extension a file name has at most 255 bytes. */
const MAX_NAME_LENGTH = 240;

/** The version of a file on the disk; equal only if nobody wrote it in between. */
export type FileVersion = string;

/** Folder of a kind's objects below the objects folder. */
export function kindFolder(kind: Kind): string {
  return kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`;
}

/** `<plural>.<group>/<namespace>/<name>.yaml`; a cluster-scoped object has no namespace folder. */
export function objectPath(root: string, kind: Kind, key: ObjectKey): string {
  const parts = key.namespace === undefined ? [key.name] : [key.namespace, key.name];
  // The rules for names say so already; a path must not depend on that.
  if (parts.some((part) => !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(part) || part.length > MAX_NAME_LENGTH)) {
    throw new SluiceError(
      'InvalidInput',
      `${kind.kind} ${JSON.stringify(parts.join('/'))} cannot be kept as a file: use lower case letters, digits, "-" and ".", at most ${MAX_NAME_LENGTH} characters`,
    );
  }
  return `${join(root, kindFolder(kind), ...parts)}${EXTENSION}`;
}

/** The key that a file name stands for; undefined if it is none of an object. */
export function keyOfFile(kind: Kind, path: string): ObjectKey | undefined {
  const file = basename(path);
  if (!file.endsWith(EXTENSION) || file.startsWith('.')) return undefined;
  const name = file.slice(0, -EXTENSION.length);
  return kind.namespaced ? { namespace: basename(dirname(path)), name } : { name };
}

/** Undefined if there is no such file. */
export async function fileVersion(path: string): Promise<FileVersion | undefined> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** Reads an object; throws InvalidInput with file and line for whatever cannot be used as one of this kind and place. */
export async function readObjectFile(path: string, kind: Kind): Promise<KubernetesObject> {
  const stats = await stat(path);
  if (!stats.isFile()) throw new SluiceError('InvalidInput', `${path} is not a file`);
  if (stats.size > MAX_FILE_BYTES) {
    throw new SluiceError('InvalidInput', `${path} has ${stats.size} bytes, at most ${MAX_FILE_BYTES} are read`);
  }
  const text = await readFile(path, 'utf8');
  const object = parseFast(text, kind) ?? parseWithPlaces(path, text, kind);
  const key = keyOfFile(kind, path);
  const { name, namespace } = object.metadata;
  if (name !== key?.name || (kind.namespaced && namespace !== key.namespace)) {
    throw new SluiceError(
      'InvalidInput',
      `${path}:1:1: metadata says ${namespace === undefined ? '' : `${namespace}/`}${name}, which is not the name of the file`,
    );
  }
  return object;
}

/** Undefined for everything that is not flawless; the slower reader then tells where the flaw is. */
function parseFast(text: string, kind: Kind): KubernetesObject | undefined {
  // Aliases can expand without bound; the other reader limits them.
  if (/(^|[\s[{,:-])[&*][^\s,\]}]/m.test(text)) return undefined;
  try {
    const value = load(text);
    if (typeof value !== 'object' || value === null) return undefined;
    const { apiVersion, kind: name } = value as Record<string, unknown>;
    if (apiVersion !== kind.apiVersion || name !== kind.kind) return undefined;
    const { object, unknownFields } = kind.parse(value);
    return unknownFields.length > 0 ? undefined : object;
  } catch {
    // Told by parseWithPlaces.
    return undefined;
  }
}

function parseWithPlaces(path: string, text: string, kind: Kind): KubernetesObject {
  const manifests = readManifests([{ path, text }], [kind]);
  const [first] = manifests;
  if (first === undefined || manifests.length > 1) {
    throw new SluiceError('InvalidInput', `${path}:1:1: expected one ${kind.kind}, found ${manifests.length}`);
  }
  return first.object;
}

/** Writes an object without its status: complete and durable, or not at all. */
export async function writeObjectFile(path: string, object: Stored): Promise<void> {
  const { status: _status, ...kept } = object;
  const { resourceVersion: _version, generation: _generation, ...metadata } = kept.metadata;
  const plain: unknown = JSON.parse(JSON.stringify({ ...kept, metadata }));
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = join(folder, `${TEMPORARY_PREFIX}${randomUUID()}`);
  try {
    // Secrets are among the objects, so all files are for their owner only.
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(dump(plain, { lineWidth: -1, noRefs: true }));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
    await syncFolder(folder);
  } catch (error) {
    await rm(temporary, { force: true });
    throw new SluiceError('Unavailable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}

export async function removeObjectFile(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
    await syncFolder(dirname(path));
  } catch (error) {
    throw new SluiceError('Unavailable', `cannot remove ${path}: ${messageOf(error)}`, { cause: error });
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
