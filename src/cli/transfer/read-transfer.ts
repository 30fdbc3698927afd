import { open } from 'node:fs/promises';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type Manifest, type ManifestFile, readManifests } from '../../resource/client/manifests.ts';
import {
  type CustomResourceDefinition,
  customResourceDefinitionKind,
} from '../../resource/kinds/apiextensions/custom-resource-definition.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { MAX_TRANSFER_CHARACTERS, MAX_TRANSFER_DOCUMENTS } from './transfer-limits.ts';
import { TRANSFERRED_KINDS, userKinds } from './transferred-kinds.ts';

const LIMITS = { maxCharacters: MAX_TRANSFER_CHARACTERS, maxDocuments: MAX_TRANSFER_DOCUMENTS };

/** Reads the files of an import, without ever holding more than the limit of one. Throws InvalidInput. */
export async function readTransferFiles(paths: readonly string[]): Promise<ManifestFile[]> {
  const files: ManifestFile[] = [];
  for (const path of paths) files.push({ path, text: await readBounded(path) });
  return files;
}

async function readBounded(path: string): Promise<string> {
  try {
    const file = await open(path, 'r');
    try {
      const { size } = await file.stat();
      if (size > MAX_TRANSFER_CHARACTERS)
        throw new SluiceError('InvalidInput', `it has ${size} bytes, at most ${MAX_TRANSFER_CHARACTERS} are possible`);
      return await file.readFile('utf8');
    } finally {
      await file.close();
    }
  } catch (error) {
    throw new SluiceError('InvalidInput', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

export interface Transfer {
  /** In the order in which they are created. */
  readonly manifests: readonly Manifest[];
  /** Kinds of definitions that are in the files; a server without them has no objects of theirs. */
  readonly newKinds: ReadonlySet<Kind>;
}

/** Reads the objects of files. `known` are the definitions of the server. Throws InvalidInput with file, line and field of every problem. */
export function readTransfer(files: readonly ManifestFile[], known: readonly CustomResourceDefinition[]): Transfer {
  const serverNames = new Set(known.map(({ metadata }) => metadata.name));
  const added = files.flatMap(definitionsIn).filter(({ metadata }) => !serverNames.has(metadata.name));
  const newKinds = userKinds(added);
  const kinds = [...TRANSFERRED_KINDS, ...userKinds(known), ...newKinds];
  const rank = new Map(kinds.map((kind, index) => [kind, index]));
  const manifests = readManifests(files, kinds, LIMITS).toSorted(
    (a, b) => (rank.get(a.kind) ?? 0) - (rank.get(b.kind) ?? 0),
  );
  return { manifests, newKinds: new Set(newKinds) };
}

/** The definitions in a file. Problems are reported when all of it is read. */
function definitionsIn({ path, text }: ManifestFile): CustomResourceDefinition[] {
  // A line that begins so starts a document, whatever it contains.
  const documents = text.split(/^---(?=\s)/m).filter((part) => /\bCustomResourceDefinition\b/.test(part));
  return documents.flatMap((part) => {
    try {
      const read = readManifests([{ path, text: part }], [customResourceDefinitionKind], LIMITS);
      return read.map(({ object }) => object as CustomResourceDefinition);
    } catch (error) {
      if (isSluiceError(error, 'InvalidInput')) return [];
      throw error;
    }
  });
}
