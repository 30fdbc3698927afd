import { runAtOnce } from '../../package/index/steps.ts';
import type { TargetSettings } from '../delivery-target.ts';
import { normalizeDirectory } from '../path-rules.ts';
import { BranchFiles, type PresentFile } from './branch-files.ts';
import type { Desired, DesiredRevision } from './desired-result.ts';
import { DesiredTree } from './desired-tree.ts';

/**
 * Computes the edits after which a target's branch contains exactly these revisions. Pure; equal inputs give equal bytes in
 * any order, and a second call after applying the edits gives none.
 *
 * `revisions` must be complete: the folders of other packages are removed, except those of packages from the repositories in
 * `unreadable`, whose packages are unknown at present. `present` has the files below the target's directory by path from the
 * root of the repository. The folders of packages in `kept` (by `packageKey`) stay as they are, although they differ. Throws
 * InvalidInput if the target's directory is no valid path.
 */
export function desired(
  target: TargetSettings,
  revisions: readonly DesiredRevision[],
  present: ReadonlyMap<string, PresentFile>,
  unreadable: ReadonlySet<string> = new Set(),
  kept: ReadonlySet<string> = new Set(),
): Desired {
  return runAtOnce(desiredInSteps(target, revisions, present, unreadable, kept));
}

/** As `desired`, with a pause after each package, so that a target with tens of thousands of packages does not block the event loop. */
export function desiredInSteps(
  target: TargetSettings,
  revisions: readonly DesiredRevision[],
  present: ReadonlyMap<string, PresentFile>,
  unreadable: ReadonlySet<string> = new Set(),
  kept: ReadonlySet<string> = new Set(),
): Generator<void, Desired> {
  const files = BranchFiles.of(normalizeDirectory(target.directory), present);
  return new DesiredTree(target, files).update(revisions, unreadable, kept);
}
