import { existsSync } from 'node:fs';
import { lstat, mkdir, open, readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { load } from 'js-yaml';
import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { METADATA_FILE, type PulledState } from '../access/package-contents.ts';
import { printable } from '../output/printable.ts';
import { toYaml } from '../output/structured.ts';

const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
const MAX_FILES = 10_000;
const MAX_BYTES = 64 * 1024 * 1024;

const PULLED = 'name the folder that "sluice rpkg pull" wrote, as in "sluice rpkg push <revision> <folder>"';

/** The commit that was pulled, where the version is another text. */
export const COMMIT_ANNOTATION = 'sluice.dev/commit';
/** Says that binary files were pulled too, which porchctl leaves out. */
const BINARY_ANNOTATION = 'sluice.dev/has-binary-files';

const metadataSchema = z.object({
  kind: z.literal('KptRevisionMetadata'),
  metadata: z.object({
    name: z.string(),
    resourceVersion: z.string(),
    annotations: z.record(z.string(), z.string()).nullish(),
  }),
});

/** The revision that a folder was pulled from, and its state then. */
export interface PulledFrom {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly state: PulledState;
}

export function metadataText({ name, namespace, uid, state }: PulledFrom): string {
  const { resourceVersion, commit, hasBinary } = state;
  const annotations = {
    ...(commit === undefined || commit === resourceVersion ? {} : { [COMMIT_ANNOTATION]: commit }),
    ...(hasBinary ? { [BINARY_ANNOTATION]: 'true' } : {}),
  };
  return toYaml({
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'KptRevisionMetadata',
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion,
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
  });
}

/** Reads what `metadataText` wrote, or porchctl. InvalidInput if the folder was not pulled. */
export async function readPulledFrom(folder: string): Promise<Pick<PulledFrom, 'name' | 'state'>> {
  const path = join(folder, METADATA_FILE);
  const kind = await stat(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new SluiceError('NotFound', `there is no folder ${printable(folder)}; ${PULLED}`);
  });
  if (!kind.isDirectory()) throw new SluiceError('InvalidInput', `${printable(folder)} is not a folder; ${PULLED}`);
  if (!existsSync(path))
    throw new SluiceError('InvalidInput', `${printable(folder)} was not pulled: it has no ${METADATA_FILE}; ${PULLED}`);
  try {
    const { metadata } = metadataSchema.parse(load(await readFile(path, 'utf8')));
    const { name, resourceVersion, annotations } = metadata;
    const commit = annotations?.[COMMIT_ANNOTATION] ?? (COMMIT.test(resourceVersion) ? resourceVersion : undefined);
    const hasBinary = annotations?.[BINARY_ANNOTATION] === 'true';
    return { name, state: { resourceVersion, commit, hasBinary } };
  } catch (error) {
    throw new SluiceError(
      'InvalidInput',
      `${path} does not say which revision and version the folder is from; name the folder that "sluice rpkg pull" wrote, or get a fresh one with it`,
      { cause: error },
    );
  }
}

/**
 * Writes files into a folder that is new or empty. Every path is checked before the first byte is written: one that leaves
 * the folder or that Git uses itself is refused. No existing file is opened, so no link is followed.
 */
export async function writePackage(folder: string, files: ReadonlyMap<string, Uint8Array>): Promise<void> {
  for (const path of files.keys()) checkPath(path);
  await mkdir(folder, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST' && error.code !== 'ENOTDIR') throw error;
    throw new SluiceError('AlreadyExists', `${printable(folder)} is no folder; name one that does not exist yet`);
  });
  if ((await readdir(folder)).length > 0) {
    throw new SluiceError('AlreadyExists', `${folder} is not empty; name a folder that does not exist yet`);
  }
  for (const [path, data] of files) {
    const target = join(folder, path);
    await mkdir(dirname(target), { recursive: true });
    await writeNew(target, data);
  }
}

/** Replaces a file of the folder that is ours. */
export async function writeNew(target: string, data: Uint8Array | string): Promise<void> {
  const handle = await open(target, 'wx').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
    throw new SluiceError(
      'InvalidInput',
      `${printable(target)} exists already: two files of the package have the same name on this file system`,
    );
  });
  try {
    await handle.writeFile(data);
  } finally {
    await handle.close();
  }
}

function checkPath(path: string): void {
  const segments = path.split('/');
  const bad = segments.some((segment) => segment === '' || segment === '.' || segment === '..' || isGitName(segment));
  if (bad || path.includes('\0') || path.includes('\\')) {
    throw new SluiceError(
      'Refused',
      `the package has a file named "${printable(path)}", which is not written to a folder`,
    );
  }
}

/** `.git` in the forms that file systems take for the same name. */
function isGitName(segment: string): boolean {
  return /^(\.git|git~\d+)[. ]*$/i.test(segment.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, ''));
}

/**
 * Returns all files of a folder by their path in it, without the metadata file and `.git`. Links and devices are
 * refused.
 */
export async function readLocalPackage(folder: string): Promise<Map<string, Buffer>> {
  const stats = await lstat(folder).catch((error: NodeJS.ErrnoException) => {
    throw new SluiceError('NotFound', `cannot read ${folder}: ${error.message}`, { cause: error });
  });
  if (!stats.isDirectory()) throw new SluiceError('InvalidInput', `${folder} is not a folder`);
  const files = new Map<string, Buffer>();
  let bytes = 0;
  const visit = async (current: string): Promise<void> => {
    for (const entry of await readdir(current, { withFileTypes: true })) {
      const full = join(current, entry.name);
      const path = relative(folder, full).split(sep).join('/');
      if (path === METADATA_FILE || isGitName(entry.name)) continue;
      if (entry.isDirectory()) await visit(full);
      else if (entry.isFile()) {
        bytes += (await lstat(full)).size;
        if (files.size >= MAX_FILES || bytes > MAX_BYTES) {
          throw new SluiceError(
            'LimitExceeded',
            `${folder} has more than ${MAX_FILES} files or ${MAX_BYTES} bytes; it does not look like one package`,
          );
        }
        files.set(path, await readFile(full));
      } else {
        throw new SluiceError(
          'InvalidInput',
          `${printable(full)} is neither a file nor a folder; a package contains only files`,
        );
      }
    }
  };
  await visit(folder);
  return files;
}
