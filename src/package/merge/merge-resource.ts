import { listKeysOf } from './list-keys.ts';
import { markedLike, withoutMergeKey } from './merge-key-comment.ts';
import { mergeParts } from './merge-parts.ts';
import type { OverwrittenParts } from './overwritten.ts';
import type { ResourceIdentity } from './resource-file.ts';
import { writeDocument } from './write-document.ts';
import { readYamlDocument, samePart } from './yaml-document.ts';

/** Larger resources are data; one that was changed on both sides stays as it is locally. */
const MAX_LENGTH = 256 * 1024;

/** True if two texts of one resource have the same meaning. */
export function sameResource(a: string, b: string): boolean {
  if (withoutMergeKey(a) === withoutMergeKey(b)) return true;
  const [first, second] = [readYamlDocument(a), readYamlDocument(b)];
  return first !== undefined && second !== undefined && samePart(first.contents, second.contents);
}

/**
 * Merges the text of one resource three ways; `original` is undefined if both sides added it. Returns exactly the local text if
 * upstream has no relevant change, and upstream's if there is no local change. Undefined if the result cannot be written in the
 * style of the local text, or is too large. Adds the local changes that are not in the result to `overwritten`.
 */
export function mergeResource(
  { group, kind }: ResourceIdentity,
  local: string,
  original: string | undefined,
  updated: string,
  overwritten: OverwrittenParts,
): string | undefined {
  if (original !== undefined && withoutMergeKey(local) === withoutMergeKey(original)) return markedLike(updated, local);
  if (local.length > MAX_LENGTH || updated.length > MAX_LENGTH) return undefined;
  const [mine, before, after] = [local, original, updated].map((text) =>
    text === undefined ? undefined : readYamlDocument(text),
  );
  if (mine === undefined || after === undefined) return undefined;
  mergeParts(mine.contents, before?.contents, after.contents, { listKeys: listKeysOf(group, kind), overwritten });
  return writeDocument(mine, local);
}
