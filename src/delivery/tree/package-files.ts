import type { TargetSettings } from '../delivery-target.ts';
import { compareText } from '../path-rules.ts';
import type { DeliveryRefusal } from '../refusal.ts';
import type { BranchView } from './branch-view.ts';
import type { DesiredFile } from './desired-file.ts';
import type { DesiredRevision } from './desired-result.ts';
import { type FolderOwner, KUSTOMIZATION, markFile, writeKustomization } from './kustomization.ts';
import type { Manifests, ManifestsOutcome } from './manifests.ts';

/** The manifests to write, or why they must not be written; undefined if the manifests are not in memory. */
export function manifestsToWrite(
  target: TargetSettings,
  revision: DesiredRevision,
  folder: string,
  branch: BranchView,
): ManifestsOutcome<DesiredFile> | undefined {
  if (revision.outOfBand !== undefined && !target.allowOutOfBand)
    return refusedFor(
      'OutOfBand',
      `v${revision.revision} was published out of band (${revision.outOfBand}), and the target does not allow that`,
    );
  const { built } = revision;
  if (built?.manifests === undefined) return built;
  const [secret] = built.manifests.openSecrets;
  if (secret !== undefined && !target.allowSecrets)
    return refusedFor(
      'UnencryptedSecret',
      `${secret} is not encrypted: seal or encrypt it, refer to an external Secret, or set allowSecrets: true on the target`,
    );
  const foreign = branch.foreignReason(folder, revision);
  if (foreign === undefined) return built;
  const { why, ...owner } = foreign;
  const advice = 'move it away or choose another directory';
  const { refused } = refusedFor('ForeignFolder', `folder ${folder} must not be written: ${why}; ${advice}`);
  return { refused: { ...refused, ...owner } };
}

export function refusedFor(reason: DeliveryRefusal['reason'], message: string) {
  return { refused: { reason, message } } as const;
}

/** The files of a folder, one of which names its owner. */
export function withOwner(owner: FolderOwner, { files, buildFile }: Manifests<DesiredFile>): Map<string, DesiredFile> {
  const build = buildFile === undefined ? undefined : files.get(buildFile);
  if (buildFile === undefined || !(build instanceof Uint8Array))
    return new Map([...files, [KUSTOMIZATION, listOf(owner, files)]]);
  return new Map([...files, [buildFile, markFile(owner, build)]]);
}

/** Lists by the files that they name: the list of an unchanged package is computed once. */
const lists = new WeakMap<ReadonlyMap<string, DesiredFile>, Map<string, Uint8Array>>();
/** Lists that are cached for one revision: one for each target that delivers it. */
const MAX_LISTS_PER_REVISION = 16;

function listOf(owner: FolderOwner, files: ReadonlyMap<string, DesiredFile>): Uint8Array {
  const key = JSON.stringify([owner.target, owner.repository, owner.package, owner.revision]);
  const kept = lists.get(files) ?? new Map<string, Uint8Array>();
  const known = kept.get(key);
  if (known !== undefined) return known;
  const list = writeKustomization(owner, [...files.keys()].sort(compareText));
  if (kept.size < MAX_LISTS_PER_REVISION) lists.set(files, kept.set(key, list));
  return list;
}
