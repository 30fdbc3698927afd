import type { RenderMode } from '../../../src/delivery/render/render-mode.ts';
import { packageKey } from '../../../src/delivery/selection/select-revisions.ts';
import type { BranchFiles } from '../../../src/delivery/tree/branch-files.ts';
import { readYaml, YamlProblem } from '../../../src/delivery/yaml/read-yaml.ts';
import { isMapping, isSequence, textAt, type Value } from '../../../src/delivery/yaml/yaml-value.ts';
import type { GitRepository } from '../../../src/git/git-repository.ts';
import type { ComparedFiles } from '../../../src/package/model/diff/compared-files.ts';
import { fileChanges } from '../../../src/package/model/diff/file-diff.ts';
import { editedFiles } from '../edited-files.ts';
import type { Drift } from './find-drift.ts';

/** Packages whose difference is described; the others are only named. */
const MAX_DESCRIBED = 10;
/** Bytes of the patches of one package, as JSON: an event has room for 1024 characters. */
const MAX_PATCH_BYTES = 2048;
const MAX_LIST_BYTES = 4096;
/** Bytes of a file that is searched for Secrets; larger ones are not shown. */
const MAX_READ_BYTES = 65_536;

export interface DriftText {
  /** Key of the package. */
  readonly key: string;
  /** The author of the change, and its difference from the delivered files. */
  readonly text: string;
}

/**
 * Describes changes by other writers. `edits` are those that repair them. Only manifests without a Secret are shown: events and conditions
 * have more readers than the branch.
 */
export async function describeDrifts(
  git: GitRepository,
  present: BranchFiles,
  edits: ReadonlyMap<string, Uint8Array | null>,
  drifts: readonly Drift[],
  render: RenderMode | undefined,
): Promise<DriftText[]> {
  const texts: DriftText[] = [];
  for (const { of, change } of drifts.slice(0, MAX_DESCRIBED)) {
    const prefix = `${of.folder}/`;
    const own = new Map([...edits].filter(([path]) => path.startsWith(prefix)));
    const { present: now, edited } = await editedFiles(git, present, own);
    // The values of charts and the files of generators can be secret as well.
    const hidden = render === 'passthrough' ? undefined : await hiddenPaths(now, edited);
    const budget = { patchBytes: MAX_PATCH_BYTES, listBytes: MAX_LIST_BYTES };
    // From the delivered state to that of the branch: the change that the user made.
    const { files, omittedFiles = 0 } = await fileChanges(edited, now, undefined, budget);
    const shown = files.map(({ path, change: kind, patch }) => {
      if (hidden === undefined) return `${kind} ${path}\n`;
      if (hidden.has(path)) return `${kind} ${path} (not shown: it may contain a Secret)\n`;
      return patch === '' ? `${kind} ${path}\n` : patch;
    });
    const more = omittedFiles > 0 ? `and ${omittedFiles} more files\n` : '';
    const by = change === undefined ? 'an earlier commit' : `commit ${change.commit} by ${change.author.name}`;
    const text = `${of.folder} (v${of.revision}) was changed by ${by}:\n${shown.join('')}${more}`;
    texts.push({ key: packageKey(of), text: withoutControls(text) });
  }
  return texts;
}

/** Names and files of other writers may contain characters that mislead a terminal. */
function withoutControls(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]|[\p{Cf}\u2028\u2029]/gu, '\ufffd');
}

/** Paths of files that are not certainly free of Secrets on both sides. */
async function hiddenPaths(...sides: readonly ComparedFiles[]): Promise<Set<string>> {
  const hidden = new Set<string>();
  for (const { files, read } of sides)
    for (const [path, { id, bytes }] of files) {
      const [data] = bytes > MAX_READ_BYTES ? [] : await read([id]);
      if (data === undefined || !isFreeOfSecrets(data)) hidden.add(path);
    }
  return hidden;
}

/** False also for what cannot be read as manifests. */
function isFreeOfSecrets(data: Uint8Array): boolean {
  try {
    return readYaml(new TextDecoder('utf-8', { fatal: true }).decode(data)).every(
      ({ value }) => textAt(value, 'kind') !== undefined && !mentionsSecret(value, new Set()),
    );
  } catch (error) {
    if (error instanceof YamlProblem || error instanceof TypeError) return false;
    throw error;
  }
}

/** True if a Secret, or a generator of Secrets, is anywhere in a value. */
function mentionsSecret(value: Value, seen: Set<Value>): boolean {
  if (seen.has(value)) return false;
  seen.add(value);
  if (isSequence(value)) return value.some((item) => mentionsSecret(item, seen));
  if (!isMapping(value)) return false;
  if (/^secret(list)?$/i.test(textAt(value, 'kind') ?? '')) return true;
  return [...value.entries].some(
    ([key, entry]) => key.toLowerCase() === 'secretgenerator' || mentionsSecret(entry.value, seen),
  );
}
