import type { RenderMode } from '../../../src/delivery/render/render-mode.ts';
import { packageKey } from '../../../src/delivery/selection/select-revisions.ts';
import type { BranchFiles } from '../../../src/delivery/tree/branch-files.ts';
import type { GitRepository } from '../../../src/git/git-repository.ts';
import { fileChanges } from '../../../src/package/model/diff/file-diff.ts';
import { editedFiles } from '../edited-files.ts';
import { hiddenPaths } from '../hidden-paths.ts';
import type { Drift } from './find-drift.ts';

/** Packages whose difference is described; the others are only named. */
const MAX_DESCRIBED = 10;
/** Bytes of the patches of one package, as JSON: an event has room for 1024 characters. */
const MAX_PATCH_BYTES = 2048;
const MAX_LIST_BYTES = 4096;
/** Files of one package whose mode is described. */
const MAX_MODES = 3;

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
    const patched = new Set(
      files.flatMap(({ path, patch }) => (patch === '' || hidden?.has(path) !== false ? [] : [path])),
    );
    const modes = [...own.keys()].flatMap((path) => {
      // A patch that is shown names the mode.
      const mode = patched.has(path) ? undefined : present.get(path)?.mode;
      return mode === undefined ? [] : [`${path} has mode ${mode}\n`];
    });
    const list = [...modes.slice(0, MAX_MODES), ...(modes.length > MAX_MODES ? ['and others\n'] : []), ...shown];
    const more = omittedFiles > 0 ? `and ${omittedFiles} more files\n` : '';
    const by = change === undefined ? 'an earlier commit' : `commit ${change.commit} by ${change.author.name}`;
    const text = `${of.folder} (v${of.revision}) was changed by ${by}:\n${list.join('')}${more}`;
    texts.push({ key: packageKey(of), text: withoutControls(text) });
  }
  return texts;
}

/** Names and files of other writers may contain characters that mislead a terminal. */
function withoutControls(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]|[\p{Cf}\u2028\u2029]/gu, '\ufffd');
}
